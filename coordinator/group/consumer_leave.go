package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumerLeave takes a member out of its group, or lets a static one go that will
// be back: it keeps its partitions until its session ends.
func (s *step) consumerLeave(r *kmsg.ConsumerGroupHeartbeatRequest) (*kmsg.ConsumerGroupHeartbeatResponse, *refusal) {
	c, err := s.changeConsumer(r.Group, false)
	if err != nil {
		return nil, err
	}
	m, err := c.identified(r.MemberID, r.InstanceID)
	if err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	id := r.MemberID
	resp.MemberID, resp.MemberEpoch = &id, r.MemberEpoch
	if r.MemberEpoch == staticLeaveEpoch && r.InstanceID != nil {
		gone := *m
		gone.epoch, gone.revoking = staticLeaveEpoch, nil
		// What it committed with its last epoch may still come, whatever it was.
		gone.assigned = ownedAt(m.assigned.partitions(), 0)
		c.write(gone.currentRecord())
	} else {
		c.fence(m)
	}
	return resp, c.settle()
}

// identified is the member of a request other than a join. A static one is known
// by its instance.
func (c *change) identified(memberID string, instanceID *string) (*consumerMember, *refusal) {
	if instanceID == nil {
		if m := c.g.members[memberID]; m != nil {
			return m, nil
		}
		return nil, c.unknown(memberID)
	}
	m := c.g.static(instanceID)
	if m == nil {
		return nil, refuse(kerr.UnknownMemberID, "No member of group %s has instance id %s.", c.id, *instanceID)
	}
	if m.id != memberID {
		return nil, refuse(kerr.FencedInstanceID, "Instance id %s belongs to member %s now.", *instanceID, m.id)
	}
	return m, nil
}

// fence removes members. When those that are left all use the classic protocol,
// so does the group from then on.
func (c *change) fence(members ...*consumerMember) {
	if len(members) == 0 {
		return
	}
	gone := map[string]bool{}
	for _, m := range members {
		gone[m.id] = true
	}
	if c.downgrades(gone, len(c.g.members)-len(gone)) && c.toClassic(gone, true) {
		return
	}
	for _, m := range members {
		if c.g.members[m.id] == nil {
			continue // named twice
		}
		c.remove(m.id)
		c.dropRegex(m.regex)
	}
	c.put(&ConsumerRecord{kind: kindEpoch, value: &epochValue{epoch: c.g.epoch + 1, metadataHash: c.metadataHash()}})
	if len(c.g.members) == 0 {
		c.put(&ConsumerRecord{kind: kindTargetEpoch, value: &targetEpochValue{epoch: c.g.epoch}})
		c.later(func() { delete(c.soft.consumers, c.id) })
	}
}

// remove writes that a member is gone, with all that it had.
func (c *change) remove(id string) {
	for _, kind := range []recordKind{kindCurrent, kindTarget, kindMember} {
		c.put(&ConsumerRecord{kind: kind, name: id})
	}
	c.forgetTimers(id)
}

// replace gives a static member that is back its place under another member id:
// its part, and what it had (KIP-345). Its epoch begins anew.
func (c *change) replace(old *consumerMember, id string) *consumerMember {
	m := *old
	m.id, m.epoch, m.previousEpoch = id, 0, 0
	target := c.g.target[old.id]
	c.remove(old.id)
	c.put(m.metadataRecord())
	c.put(&ConsumerRecord{kind: kindTarget, name: id, value: &targetValue{partitions: target}})
	c.put(m.currentRecord())
	return &m
}

// forgetTimers cancels all timers of a member, once the change counts.
func (c *change) forgetTimers(id string) {
	for _, kind := range []string{timerSession, timerRevoke, timerMemberJoin, timerMemberSync} {
		c.cancel(timerKey(kind, c.id, id))
	}
	c.later(func() {
		if soft := c.soft.consumers[c.id]; soft != nil {
			delete(soft.joining, id)
		}
	})
}

// expectConsumer gives a member its session.
func (s *step) expectConsumer(group string, m *consumerMember) {
	ms := s.sessionTimeoutMs(group)
	if m.classic != nil {
		ms = m.classic.sessionTimeoutMs
	}
	s.timer(timerKey(timerSession, group, m.id), ms)
}

// consumerTimedOut removes a member that was too slow.
func (s *step) consumerTimedOut(kind, group, memberID string) {
	if soft := s.soft.consumers[group]; soft != nil && kind == timerMemberJoin {
		delete(soft.joining, memberID)
	}
	g := s.consumer(group)
	if g == nil || g.members[memberID] == nil || kind == timerRevoke && g.members[memberID].state != stateUnrevoked {
		return
	}
	c := &change{step: s, id: group, g: g}
	c.fence(g.members[memberID])
	if c.settle() != nil {
		s.out = Out{}
	}
}

// loadedConsumer gives the members of a loaded group their timers.
func (s *step) loadedConsumer(id string, g *consumerGroup) {
	for _, memberID := range g.memberIDs() {
		m := g.members[memberID]
		s.expectConsumer(id, m)
		if m.state == stateUnrevoked && m.classic == nil {
			s.timer(timerKey(timerRevoke, id, memberID), m.rebalanceTimeoutMs)
		}
	}
}
