package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a member of the classic protocol does in a consumer group: it joins without
// waiting for others, is given its partitions by the broker when it syncs, and
// learns from its heartbeats that it has to join again.

func (s *step) joinConsumer(e Event, r *kmsg.JoinGroupRequest) {
	if err := s.tryJoinConsumer(e, r); err != nil {
		s.out = Out{}
		s.joinError(e.Call, "", err.code)
	}
}

func (s *step) tryJoinConsumer(e Event, r *kmsg.JoinGroupRequest) *refusal {
	c := &change{step: s, id: r.Group, g: s.consumer(r.Group)}
	if !s.cfg.Consumer.Upgrade && !s.cfg.Consumer.Downgrade {
		return refuse(kerr.InconsistentGroupProtocol, "")
	}
	isNew, id := r.MemberID == "", r.MemberID
	if isNew {
		id = s.newID()
	}
	if err := c.admit(id, r.InstanceID); err != nil {
		return err
	}
	if !c.supportsClassic(r) {
		return refuse(kerr.InconsistentGroupProtocol, "")
	}
	if isNew && r.InstanceID == nil && r.Version >= memberIDRequired {
		s.joinError(e.Call, id, kerr.MemberIDRequired)
		return nil
	}
	subscription, err := readConsumerSubscription(r.Protocols[0].Metadata)
	if err != nil {
		return refuse(kerr.InconsistentGroupProtocol, "")
	}
	old := c.g.static(r.InstanceID)
	m, refused := c.joining(r, id, old, isNew)
	if refused != nil {
		return refused
	}
	downgrade := old != nil && old.classic == nil && c.downgrades(map[string]bool{old.id: true, m.id: true}, len(c.g.members))
	now := *m
	now.memberMetadata = m.joinedAs(e.Client, r, subscription)
	changed := c.update(m, &now)
	c.refreshEpoch()
	after := &now
	rebalance := downgrade && c.g.targetEpoch < c.g.epoch
	if !downgrade {
		c.divide()
	}
	if !rebalance {
		if after, refused = c.reconcile(now.id, changed, c.heldBy(subscription)); refused != nil {
			return refused
		}
	}
	if downgrade && !c.toClassic(nil, rebalance) {
		return refuse(kerr.UnknownServerError, "")
	}
	if err := c.settle(); err != nil {
		return err
	}
	if !downgrade {
		s.expectSync(r, after)
	}
	s.answer(e.Call, joinedConsumer(after))
	return nil
}

// expectSync gives a member that has joined its session and the time to sync.
func (s *step) expectSync(r *kmsg.JoinGroupRequest, m *consumerMember) {
	s.cancel(timerKey(timerMemberJoin, r.Group, m.id))
	delete(s.remember(r.Group).joining, m.id)
	s.expectConsumer(r.Group, m)
	s.timer(timerKey(timerMemberSync, r.Group, m.id), rebalanceTimeoutMs(r))
}

// joinedConsumer is the good answer to a JoinGroup: nobody is made the leader,
// because the broker assigns.
func joinedConsumer(m *consumerMember) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	protocolType, protocol := protocolConsumer, m.classic.protocol().Name
	resp.MemberID, resp.Generation = m.id, m.epoch
	resp.ProtocolType, resp.Protocol = &protocolType, &protocol
	return resp
}

// supportsClassic tells whether a joining member has a protocol that all the
// group's classic members know.
func (c *change) supportsClassic(r *kmsg.JoinGroupRequest) bool {
	if r.ProtocolType != protocolConsumer || len(r.Protocols) == 0 {
		return false
	}
	var common commonProtocols
	for _, m := range c.g.members {
		if m.classic != nil {
			common.add(m.classic.protocols)
		}
	}
	return common.hasOne(r.Protocols)
}

// joining is the member of a JoinGroup; a static one that comes without its member
// id takes the place of old.
func (c *change) joining(r *kmsg.JoinGroupRequest, id string, old *consumerMember, isNew bool) (*consumerMember, *refusal) {
	switch {
	case r.InstanceID == nil, isNew && old == nil:
		if m := c.g.members[id]; m != nil {
			return m, nil
		}
		return newConsumerMember(id), nil
	case isNew:
		return c.replace(old, id), nil
	}
	return c.identified(id, r.InstanceID)
}

// joinedAs is what a member is after a JoinGroup.
func (m *consumerMember) joinedAs(who Client, r *kmsg.JoinGroupRequest, s *kmsg.ConsumerMemberMetadata) memberMetadata {
	v := m.memberMetadata
	v.clientID, v.clientHost = who.ID, who.Host
	v.topics, v.regex, v.classic = sortedNames(s.Topics), "", ofJoin(r)
	if r.InstanceID != nil {
		v.instanceID = r.InstanceID
	}
	if rack := noneIfEmpty(s.Rack); rack != nil {
		v.rackID = rack
	}
	if ms := rebalanceTimeoutMs(r); ms != -1 {
		v.rebalanceTimeoutMs = ms
	}
	return v
}

// heldBy is what a classic member says it has.
func (c *change) heldBy(s *kmsg.ConsumerMemberMetadata) held {
	h := held{}
	for _, o := range s.OwnedPartitions {
		if t, ok := c.world.Image.Topic(o.Topic); ok {
			h[t.ID] = append(h[t.ID], o.Partitions...)
		}
	}
	return h
}

// classicMember is the member of a Heartbeat or SyncGroup in a consumer group.
func (c *change) classicMember(memberID string, instanceID *string, generation int32) (*consumerMember, *kerr.Error) {
	m, err := c.identified(memberID, instanceID)
	switch {
	case err != nil:
		return nil, err.code
	case m.classic == nil:
		return nil, kerr.UnknownMemberID
	case m.epoch != generation:
		return nil, kerr.IllegalGeneration
	}
	return m, nil
}

// syncConsumer answers a SyncGroup with what the broker has assigned.
func (s *step) syncConsumer(e Event, r *kmsg.SyncGroupRequest) {
	c := &change{step: s, id: r.Group, g: s.consumer(r.Group)}
	if len(c.g.members) == 0 {
		s.syncError(e.Call, kerr.UnknownMemberID)
		return
	}
	m, code := c.classicMember(r.MemberID, r.InstanceID, r.Generation)
	if code != nil {
		s.syncError(e.Call, code)
		return
	}
	protocol := m.classic.protocol()
	protocolType := protocolConsumer
	switch {
	case differs(r.ProtocolType, &protocolType) || differs(r.Protocol, &protocol.Name):
		s.syncError(e.Call, kerr.InconsistentGroupProtocol)
		return
	case c.g.targetEpoch > m.epoch && m.state != stateUnrevoked:
		s.expectJoin(r.Group, m)
		s.syncError(e.Call, kerr.RebalanceInProgress)
		return
	}
	s.cancel(timerKey(timerMemberSync, r.Group, m.id))
	s.expectConsumer(r.Group, m)
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.ProtocolType, resp.Protocol = r.ProtocolType, r.Protocol
	resp.MemberAssignment = c.classicAssignment(m.assigned.partitions(), protocol.Metadata)
	s.answer(e.Call, resp)
}

// expectJoin gives a member the time to join again, which a second request does
// not stretch.
func (s *step) expectJoin(group string, m *consumerMember) {
	soft := s.remember(group)
	if _, armed := soft.joining[m.id]; armed {
		return
	}
	soft.joining[m.id] = struct{}{}
	s.timer(timerKey(timerMemberJoin, group, m.id), m.rebalanceTimeoutMs)
}

// beatConsumer keeps a classic member's session alive and tells it when it has to
// join again: for a new epoch, to give partitions back, or to fetch those that
// others have given back.
func (s *step) beatConsumer(r *kmsg.HeartbeatRequest) *kerr.Error {
	c := &change{step: s, id: r.Group, g: s.consumer(r.Group)}
	m, code := c.classicMember(r.MemberID, r.InstanceID, r.Generation)
	if code != nil {
		return code
	}
	s.expectConsumer(r.Group, m)
	if m.epoch < c.g.targetEpoch || m.state == stateUnrevoked || m.state == stateUnreleased && !c.g.waits(m) {
		s.expectJoin(r.Group, m)
		return kerr.RebalanceInProgress
	}
	return nil
}

// waits tells whether others still have partitions of a member's part.
func (g *consumerGroup) waits(m *consumerMember) bool {
	for topic, partitions := range g.target[m.id] {
		for _, p := range partitions {
			if _, taken := g.owners[ownedPartition{topic, p}]; taken && !m.assigned.has(topic, p) {
				return true
			}
		}
	}
	return false
}

// leaveConsumer takes members out of a consumer group by a LeaveGroup, of either
// protocol, static ones by their instance alone if the member id is empty.
func (s *step) leaveConsumer(group string, members []kmsg.LeaveGroupRequestMember) ([]kmsg.LeaveGroupResponseMember, *refusal) {
	c := &change{step: s, id: group, g: s.consumer(group)}
	var out []kmsg.LeaveGroupResponseMember
	var leaving []*consumerMember
	for i := range members {
		rm := kmsg.NewLeaveGroupResponseMember()
		rm.MemberID, rm.InstanceID = members[i].MemberID, members[i].InstanceID
		m, err := c.identified(rm.MemberID, rm.InstanceID)
		if static := c.g.static(rm.InstanceID); static != nil && rm.MemberID == "" {
			m, err = static, nil
		}
		if err != nil {
			rm.ErrorCode = err.code.Code
		} else {
			leaving = append(leaving, m)
		}
		out = append(out, rm)
	}
	c.fence(leaving...)
	return out, c.settle()
}
