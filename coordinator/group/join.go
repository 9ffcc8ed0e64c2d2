package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// memberIDRequired is the JoinGroup version from which a dynamic member first
// gets an id and then joins with it (KIP-394).
const memberIDRequired = 4

// skipAssignmentVersion is the JoinGroup version from which a returning leader
// is told that there is nothing to assign (KIP-814).
const skipAssignmentVersion = 9

// maxPendingMembers bounds the ids of a group that were given out and not used.
const maxPendingMembers = 1 << 14

func (s *step) join(e Event, r *kmsg.JoinGroupRequest) {
	if code := checkJoin(&s.cfg, r); code != nil {
		s.joinError(e.Call, r.MemberID, code)
		return
	}
	if tooLongToJoin(e.Client, r) {
		s.joinError(e.Call, "", kerr.InvalidRequest)
		return
	}
	st := s.groups[r.Group]
	if g := s.consumer(r.Group); g != nil && len(g.members) > 0 {
		s.joinConsumer(e, r)
		return
	}
	if !s.hasRoom(r) {
		// There is no code for it: this one has a client wait a little and try again.
		s.joinError(e.Call, r.MemberID, kerr.CoordinatorLoadInProgress)
		return
	}
	if r.MemberID != "" && (st == nil || st.consumer != nil) {
		s.joinError(e.Call, r.MemberID, kerr.UnknownMemberID)
		return
	}
	if st != nil && st.consumer != nil {
		// A consumer group without members is whatever is joined next.
		s.forgetConsumer(r.Group, st.consumer)
	}
	g := s.hold(r.Group)
	if st == nil || st.metadata == nil {
		// The log must know the group from its first sign of life, or a restart
		// would forget that it was ever listed.
		s.record(g.metadataRecord())
	}
	switch {
	case !s.admits(g, r.MemberID):
		s.expectNothing(g, r.MemberID)
		if m := g.member(r.MemberID); m != nil {
			s.remove(g, m)
		}
		delete(g.pendingJoin, r.MemberID)
		s.joinError(e.Call, "", kerr.GroupMaxSizeReached)
		s.completeJoinIfAll(g)
	case !g.supports(r.ProtocolType, r.Protocols):
		s.joinError(e.Call, r.MemberID, kerr.InconsistentGroupProtocol)
	case r.MemberID == "":
		s.joinNew(e, r, g)
	default:
		s.joinKnown(e, r, g)
	}
	s.settle(g)
}

// admits holds a joining member against group.max.size. While members rejoin
// only those count that did, so that the last ones are kept out after the limit
// was lowered.
func (s *step) admits(g *classic, memberID string) bool {
	m := g.member(memberID)
	switch g.state {
	case PreparingRebalance:
		return m != nil && m.join != 0 || g.awaitingJoin() < s.cfg.MaxSize
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < s.cfg.MaxSize
	}
	return true
}

func (s *step) joinNew(e Event, r *kmsg.JoinGroupRequest, g *classic) {
	if r.InstanceID != nil {
		id := *r.InstanceID + "-" + s.newID()
		if old := g.static(*r.InstanceID); old != nil {
			s.replaceStatic(e, r, g, old, id)
			return
		}
		s.addMember(e, r, g, id)
		return
	}
	id := e.Client.ID + "-" + s.newID()
	if r.Version < memberIDRequired {
		s.addMember(e, r, g, id)
		return
	}
	if len(g.pendingJoin) >= maxPendingMembers {
		s.joinError(e.Call, "", kerr.GroupMaxSizeReached)
		return
	}
	g.pendingJoin[id] = struct{}{}
	s.timer(heartbeatKey(g.id, id), r.SessionTimeoutMillis)
	s.joinError(e.Call, id, kerr.MemberIDRequired)
}

func (s *step) joinKnown(e Event, r *kmsg.JoinGroupRequest, g *classic) {
	if _, pending := g.pendingJoin[r.MemberID]; pending && r.InstanceID == nil {
		s.addMember(e, r, g, r.MemberID)
		return
	}
	m, err := g.validate(r.MemberID, r.InstanceID)
	if err != nil {
		s.joinError(e.Call, r.MemberID, err)
		return
	}
	switch g.state {
	case PreparingRebalance:
		s.updateMember(e, r, g, m)
		s.rebalance(g)
	case CompletingRebalance:
		// With unchanged metadata the member has only missed its JoinGroup
		// response.
		if m.matches(r.Protocols) {
			s.answer(e.Call, s.joined(g, m))
			return
		}
		s.updateMember(e, r, g, m)
		s.rebalance(g)
	case Stable:
		// A leader that joins again asks for a rebalance: it may have seen
		// changes (new partitions) that no member's metadata shows.
		if !g.isLeader(m) && m.matches(r.Protocols) {
			s.answer(e.Call, s.joined(g, m))
			return
		}
		s.updateMember(e, r, g, m)
		s.rebalance(g)
	default:
		s.joinError(e.Call, r.MemberID, kerr.UnknownMemberID)
	}
}

// validate finds the member of a request. A static member is known by its
// instance; an older incarnation with another member id is fenced (KIP-345).
func (g *classic) validate(memberID string, instanceID *string) (*member, *kerr.Error) {
	if instanceID != nil {
		m := g.static(*instanceID)
		if m == nil {
			return nil, kerr.UnknownMemberID
		}
		if m.id != memberID {
			return nil, kerr.FencedInstanceID
		}
	}
	m := g.member(memberID)
	if m == nil {
		return nil, kerr.UnknownMemberID
	}
	return m, nil
}

func rebalanceTimeoutMs(r *kmsg.JoinGroupRequest) int32 {
	if r.Version == 0 {
		return r.SessionTimeoutMillis
	}
	return r.RebalanceTimeoutMillis
}

func (s *step) addMember(e Event, r *kmsg.JoinGroupRequest, g *classic, id string) {
	m := &member{
		id: id, instanceID: r.InstanceID, clientID: e.Client.ID, clientHost: e.Client.Host,
		rebalanceTimeoutMs: rebalanceTimeoutMs(r), sessionTimeoutMs: r.SessionTimeoutMillis,
		protocols: ownProtocols(r.Protocols), join: e.Call, isNew: true,
	}
	if g.state == PreparingRebalance && g.previous == Empty {
		g.newMember = true
	}
	g.add(m, r.ProtocolType)
	// A new member cannot heartbeat before it has its response, and a client
	// that gave up would leave a dead member in every rebalance.
	s.expectHeartbeat(g, m, s.cfg.NewMemberJoinTimeoutMs)
	s.rebalance(g)
}

func (s *step) updateMember(e Event, r *kmsg.JoinGroupRequest, g *classic, m *member) {
	if m.join != 0 {
		s.joinError(m.join, m.id, kerr.RebalanceInProgress)
	}
	g.common.remove(m.protocols)
	m.protocols, m.join = ownProtocols(r.Protocols), e.Call
	g.common.add(m.protocols)
	m.rebalanceTimeoutMs, m.sessionTimeoutMs = rebalanceTimeoutMs(r), r.SessionTimeoutMillis
}

// replaceStatic gives a static member that came back without its member id a
// new one, and fences whoever still uses the old one (KIP-345).
func (s *step) replaceStatic(e Event, r *kmsg.JoinGroupRequest, g *classic, m *member, id string) {
	if m.join != 0 {
		s.joinError(m.join, m.id, kerr.FencedInstanceID)
		m.join = 0
	}
	if m.sync != 0 {
		s.syncError(m.sync, kerr.FencedInstanceID)
		m.sync = 0
	}
	oldLeader := g.leader
	s.expectNothing(g, m.id)
	delete(g.pendingSync, m.id)
	if g.isLeader(m) {
		g.leader = id
	}
	// Another member from here on: the old object may still be named in the
	// record that was written last.
	replaced := *m
	replaced.id = id
	for i := range g.members {
		if g.members[i] == m {
			g.members[i] = &replaced
		}
	}
	m = &replaced
	s.updateMember(e, r, g, m)
	s.expectHeartbeat(g, m, m.sessionTimeoutMs)
	switch g.state {
	case Stable:
		s.replaceInStable(e, r, g, m, oldLeader)
	case CompletingRebalance:
		// The leader may be assigning to the old member id at this moment.
		s.prepareRebalance(g)
	default:
		s.completeJoinIfAll(g)
	}
}

// replaceInStable keeps a stable group together when the static member's return
// does not change which protocol the group would choose.
func (s *step) replaceInStable(e Event, r *kmsg.JoinGroupRequest, g *classic, m *member, oldLeader string) {
	rec := g.metadataRecord()
	if g.protocol == nil || g.selectProtocol() != *g.protocol || encodedBytes(rec) > s.cfg.MaxBatchBytes {
		s.rebalance(g)
		return
	}
	g.topics = g.subscribedTopics()
	s.record(rec)
	m.join = 0
	resp := s.joined(g, m)
	if r.Version >= skipAssignmentVersion {
		resp.SkipAssignment = g.isLeader(m)
	} else {
		// Before KIP-814 the returning leader must take itself for a follower,
		// or it would assign anew.
		resp.LeaderID, resp.Members = oldLeader, nil
	}
	s.answer(e.Call, resp)
}

// joined is the good answer to a member's JoinGroup; the leader learns of all
// the members.
func (s *step) joined(g *classic, m *member) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.Generation, resp.LeaderID, resp.MemberID = g.generation, g.leader, m.id
	resp.Protocol = g.protocol
	if g.protocolType != "" {
		protocolType := g.protocolType
		resp.ProtocolType = &protocolType
	}
	if !g.isLeader(m) {
		return resp
	}
	var protocol string
	if g.protocol != nil {
		protocol = *g.protocol
	}
	for _, other := range g.members {
		rm := kmsg.NewJoinGroupResponseMember()
		rm.MemberID, rm.InstanceID = other.id, other.instanceID
		rm.ProtocolMetadata, _ = other.metadata(protocol)
		resp.Members = append(resp.Members, rm)
	}
	return resp
}

func (s *step) joinError(call uint64, memberID string, code *kerr.Error) {
	s.answer(call, JoinError(memberID, code))
}

// JoinError is the response to a JoinGroup that failed.
func JoinError(memberID string, code *kerr.Error) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode, resp.MemberID, resp.Generation = code.Code, memberID, -1
	return resp
}
