package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// dropClassic removes a group of the classic protocol without members; its offsets
// stay.
func (c *change) dropClassic(old *classic) {
	c.record(Record{Group: c.id})
	c.forgetClassic(old)
}

// forgetClassic ends a classic group's life in memory once the change counts.
func (c *change) forgetClassic(old *classic) {
	ids := make([]string, 0, len(old.members)+len(old.pendingJoin))
	for _, m := range old.members {
		ids = append(ids, m.id)
	}
	for id := range old.pendingJoin {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		c.expectNothing(old, id)
	}
	c.cancel(joinKey(c.id))
	c.cancel(syncKey(c.id))
	c.later(func() {
		for _, m := range old.members {
			if m.join != 0 {
				c.joinError(m.join, m.id, kerr.RebalanceInProgress)
				m.join = 0
			}
			if m.sync != 0 {
				c.syncError(m.sync, kerr.RebalanceInProgress)
				m.sync = 0
			}
		}
		delete(c.soft.groups, c.id)
	})
}

// upgrade turns a group of the classic protocol with members into one of the
// consumer protocol: the generation becomes the epoch, and everybody keeps its
// partitions.
func (c *change) upgrade(old *classic) *refusal {
	cannot := func(why string) *refusal {
		return refuse(kerr.GroupIDNotFound, "Group %s cannot move to the consumer protocol: %s.", c.id, why)
	}
	switch {
	case !c.cfg.Consumer.Upgrade:
		return cannot("group.consumer.migration.policy does not allow it")
	case old.protocolType != protocolConsumer:
		return cannot("its members are no consumers")
	case len(old.members) > c.cfg.Consumer.MaxSize:
		return cannot("it has more members than group.consumer.max.size allows")
	}
	protocol := old.selectProtocol()
	if old.protocol != nil {
		protocol = *old.protocol
	}
	members := make([]*consumerMember, 0, len(old.members))
	for _, om := range old.members {
		m, why := c.upgraded(om, protocol, old.generation)
		if why != "" {
			return cannot(why)
		}
		members = append(members, m)
	}
	c.record(Record{Group: c.id})
	for _, m := range members {
		c.put(m.metadataRecord())
	}
	c.put(&ConsumerRecord{kind: kindEpoch, value: &epochValue{epoch: old.generation, metadataHash: c.metadataHash()}})
	for _, m := range members {
		c.put(&ConsumerRecord{kind: kindTarget, name: m.id, value: &targetValue{partitions: m.assigned.partitions()}})
	}
	c.put(&ConsumerRecord{kind: kindTargetEpoch, value: &targetEpochValue{epoch: old.generation}})
	for _, m := range members {
		c.put(m.currentRecord())
	}
	c.forgetClassic(old)
	for _, m := range members {
		c.expectConsumer(c.id, m)
	}
	return nil
}

// upgraded is a member of the classic group in the consumer group, or why it
// cannot be one.
func (c *change) upgraded(om *member, protocol string, generation int32) (*consumerMember, string) {
	metadata, _ := om.metadata(protocol)
	subscription, err := readConsumerSubscription(metadata)
	if err != nil {
		return nil, "the subscription of a member cannot be read"
	}
	m := newConsumerMember(om.id)
	m.memberMetadata = memberMetadata{
		instanceID: om.instanceID, rackID: noneIfEmpty(subscription.Rack), clientID: om.clientID, clientHost: om.clientHost,
		topics: sortedNames(subscription.Topics), rebalanceTimeoutMs: om.rebalanceTimeoutMs,
		classic: &classicMetadata{sessionTimeoutMs: om.sessionTimeoutMs, protocols: om.protocols},
	}
	m.currentValue = currentValue{epoch: generation, previousEpoch: generation, assigned: owned{}}
	if len(om.assignment) == 0 {
		return m, ""
	}
	var a kmsg.ConsumerMemberAssignment
	if err := a.ReadFrom(om.assignment); err != nil {
		return nil, "the assignment of a member cannot be read"
	}
	if len(a.UserData) > 0 {
		return nil, "its assignor keeps data of its own, which would be lost; use another assignor first"
	}
	for _, t := range a.Topics {
		topic, ok := c.world.Image.Topic(t.Topic)
		for _, p := range t.Partitions {
			if ok {
				m.assigned.add(topic.ID, p, generation)
			}
		}
	}
	return m, ""
}

// readConsumerSubscription reads what a classic member subscribes to.
func readConsumerSubscription(metadata []byte) (*kmsg.ConsumerMemberMetadata, error) {
	s := kmsg.NewConsumerMemberMetadata()
	if err := s.ReadFrom(metadata); err != nil {
		return nil, err
	}
	return &s, nil
}

func noneIfEmpty(s *string) *string {
	if s != nil && *s == "" {
		return nil
	}
	return s
}

// downgrades tells whether the group is to go back to the classic protocol, when
// some members are gone and left are left: all of those use it already.
func (c *change) downgrades(gone map[string]bool, left int) bool {
	if left <= 0 || !c.cfg.Consumer.Downgrade || left > c.cfg.MaxSize {
		return false
	}
	for id, m := range c.g.members {
		if !gone[id] && m.classic == nil {
			return false
		}
	}
	return true
}

// toClassic turns the group into one of the classic protocol: the epoch becomes
// the generation, and everybody gets the part that it was to have. With rebalance
// the members are asked to join at once. It reports false, and has changed
// nothing, when the log would not take the group as one record.
func (c *change) toClassic(gone map[string]bool, rebalance bool) bool {
	g := newClassic(c.id)
	g.generation = c.g.epoch
	g.transition(Stable, c.nowMs())
	for _, id := range c.g.memberIDs() {
		if m := c.g.members[id]; !gone[id] {
			g.add(&member{
				id: id, instanceID: m.instanceID, clientID: m.clientID, clientHost: m.clientHost,
				rebalanceTimeoutMs: m.rebalanceTimeoutMs, sessionTimeoutMs: m.classic.sessionTimeoutMs, protocols: m.classic.protocols,
			}, protocolConsumer)
		}
	}
	protocol := g.selectProtocol()
	g.protocol = &protocol
	g.topics = g.subscribedTopics()
	for _, m := range g.members {
		metadata, _ := m.metadata(protocol)
		m.assignment = c.classicAssignment(c.g.target[m.id], metadata)
	}
	r := g.metadataRecord()
	if encodedBytes(r) > c.cfg.MaxBatchBytes {
		return false
	}
	for _, tombstone := range c.g.tombstones() {
		c.write(tombstone)
	}
	c.record(r)
	for _, id := range c.g.memberIDs() {
		c.forgetTimers(id)
	}
	for _, m := range g.members {
		c.expectHeartbeat(g, m, m.sessionTimeoutMs)
	}
	c.later(func() {
		delete(c.soft.consumers, c.id)
		c.soft.groups[c.id] = g
		if rebalance {
			c.prepareRebalance(g)
		}
	})
	return true
}

// classicAssignment is a member's part as a classic member reads it, in the
// version of its subscription.
func (c *change) classicAssignment(part assignor.Assignment, subscription []byte) []byte {
	const newest = 3
	a := kmsg.NewConsumerMemberAssignment()
	if s, err := readConsumerSubscription(subscription); err == nil {
		a.Version = min(s.Version, newest)
	}
	for _, id := range part.TopicIDs() {
		if t, ok := c.world.Image.TopicByID(id); ok {
			at := kmsg.NewConsumerMemberAssignmentTopic()
			at.Topic, at.Partitions = t.Name, part[id]
			a.Topics = append(a.Topics, at)
		}
	}
	return a.AppendTo(nil)
}
