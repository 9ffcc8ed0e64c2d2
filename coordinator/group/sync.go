package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// protocolFields is the SyncGroup version whose clients must name the protocol.
const protocolFields = 5

func (s *step) sync(e Event, r *kmsg.SyncGroupRequest) {
	if r.Group == "" {
		s.syncError(e.Call, kerr.InvalidGroupID)
		return
	}
	if r.Version >= protocolFields && (r.ProtocolType == nil || r.Protocol == nil) {
		s.syncError(e.Call, kerr.InconsistentGroupProtocol)
		return
	}
	if s.consumer(r.Group) != nil {
		s.syncConsumer(e, r)
		return
	}
	g := s.view(r.Group)
	if g == nil || g.state == Empty {
		s.syncError(e.Call, kerr.UnknownMemberID)
		return
	}
	m, err := g.validate(r.MemberID, r.InstanceID)
	switch {
	case err != nil:
		s.syncError(e.Call, err)
	case r.Generation != g.generation:
		s.syncError(e.Call, kerr.IllegalGeneration)
	case differs(r.ProtocolType, &g.protocolType) || differs(r.Protocol, g.protocol):
		s.syncError(e.Call, kerr.InconsistentGroupProtocol)
	case g.state == PreparingRebalance:
		s.syncError(e.Call, kerr.RebalanceInProgress)
	case g.state == CompletingRebalance && e.Client.Hasty && !g.isLeader(m):
		// Only the leader's, which does not wait, is large with clients that are honest.
		s.syncError(e.Call, kerr.RebalanceInProgress)
	case g.state == CompletingRebalance:
		s.synced(g, m)
		if m.sync != 0 {
			s.syncError(m.sync, kerr.RebalanceInProgress)
		}
		m.sync = e.Call
		if g.isLeader(m) {
			s.assign(g, r.GroupAssignment)
		}
	default:
		s.synced(g, m)
		s.answer(e.Call, assigned(g, m))
	}
}

func differs(asked, have *string) bool { return asked != nil && have != nil && *asked != *have }

// synced notes that a member's SyncGroup has come.
func (s *step) synced(g *classic, m *member) {
	if _, pending := g.pendingSync[m.id]; !pending {
		return
	}
	delete(g.pendingSync, m.id)
	if len(g.pendingSync) == 0 {
		s.cancel(syncKey(g.id))
	}
}

// assign stores what the leader decided and tells the members that wait. The
// answers go out once the record is committed.
func (s *step) assign(g *classic, assignments []kmsg.SyncGroupRequestGroupAssignment) {
	byMember := make(map[string][]byte, len(assignments))
	for i := range assignments {
		byMember[assignments[i].MemberID] = assignments[i].MemberAssignment
	}
	for _, m := range g.members {
		m.assignment = byMember[m.id]
	}
	r := g.metadataRecord()
	if encodedBytes(r) > s.cfg.MaxBatchBytes {
		s.failSyncs(g, kerr.UnknownServerError)
		s.prepareRebalance(g)
		return
	}
	s.record(r)
	g.transition(Stable, s.nowMs())
	s.tally.rebalances++
	for _, m := range g.members {
		if m.sync == 0 {
			continue
		}
		s.answer(m.sync, assigned(g, m))
		m.sync = 0
		s.expectHeartbeat(g, m, m.sessionTimeoutMs)
	}
}

// failSyncs takes all assignments back and answers the waiting SyncGroups with
// an error.
func (s *step) failSyncs(g *classic, code *kerr.Error) {
	for _, m := range g.members {
		m.assignment = nil
		if m.sync == 0 {
			continue
		}
		s.syncError(m.sync, code)
		m.sync = 0
		s.expectHeartbeat(g, m, m.sessionTimeoutMs)
	}
}

func assigned(g *classic, m *member) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	protocolType := g.protocolType
	resp.ProtocolType, resp.Protocol, resp.MemberAssignment = &protocolType, g.protocol, m.assignment
	return resp
}

func (s *step) syncError(call uint64, code *kerr.Error) { s.answer(call, SyncError(code)) }

// SyncError is the response to a SyncGroup that failed.
func SyncError(code *kerr.Error) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.ErrorCode = code.Code
	return resp
}
