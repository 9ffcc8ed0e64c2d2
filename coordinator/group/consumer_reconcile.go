package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// reconcile moves a member towards its part: it gives back first, and gets only
// what nobody else has any more (KIP-848). subscription says that what it
// subscribes to has changed with this event, says what it still has by its own
// account.
func (c *change) reconcile(id string, subscription bool, says held) (*consumerMember, *refusal) {
	m := c.g.members[id]
	if !subscription && m.reconciledTo(c.g.targetEpoch) {
		return m, nil
	}
	next, err := c.next(m, subscription, says)
	if err != nil {
		return nil, err
	}
	if next.equal(&m.currentValue) {
		return m, nil
	}
	after := *m
	after.currentValue = next
	c.write(after.currentRecord())
	if m.classic == nil {
		// A member of the classic protocol has the time in which it must join.
		if after.state == stateUnrevoked {
			c.timer(timerKey(timerRevoke, c.id, id), m.rebalanceTimeoutMs)
		} else {
			c.cancel(timerKey(timerRevoke, c.id, id))
		}
	}
	return &after, nil
}

// next is what the member has after this event.
func (c *change) next(m *consumerMember, subscription bool, says held) (currentValue, *refusal) {
	switch m.state {
	case stateStable:
		if m.epoch != c.g.targetEpoch {
			return c.towardsTarget(m, m.epoch, says), nil
		}
	case stateUnrevoked:
		if !says.any(m.revoking) {
			return c.towardsTarget(m, m.epoch, says), nil
		}
	case stateUnreleased:
		return c.towardsTarget(m, m.epoch, says), nil
	default:
		if says == nil || len(says) > 0 {
			return currentValue{}, refuse(kerr.FencedMemberEpoch, "Member %s is in a state of a later version: it must give up its partitions and join again.", m.id)
		}
		return c.towardsTarget(m, c.g.targetEpoch, says), nil
	}
	if subscription {
		return c.withoutUnsubscribed(m, says), nil
	}
	return m.currentValue, nil
}

// subscribed tells whether a topic, known by its id, is one of the member's.
func (c *change) subscribed(m *consumerMember, id assignor.TopicID) bool {
	t, ok := c.world.Image.TopicByID(id)
	return ok && c.g.subscribes(m, t.Name)
}

// withoutUnsubscribed takes away at once what the member does not subscribe to any
// more; the rest waits for the next division.
func (c *change) withoutUnsubscribed(m *consumerMember, says held) currentValue {
	next := m.currentValue
	kept, revoking := maps.Clone(m.assigned), maps.Clone(m.revoking)
	for topic, partitions := range m.assigned {
		if c.subscribed(m, topic) {
			continue
		}
		delete(kept, topic)
		if revoking == nil {
			revoking = owned{}
		}
		both := maps.Clone(partitions)
		maps.Copy(both, revoking[topic])
		revoking[topic] = both
	}
	if len(kept) == len(m.assigned) {
		return next
	}
	next.previousEpoch, next.assigned = m.epoch, kept
	if says.any(revoking) {
		next.state, next.revoking = stateUnrevoked, revoking
	}
	return next
}

// towardsTarget is the member's next step to its part of the last division.
func (c *change) towardsTarget(m *consumerMember, epoch int32, says held) currentValue {
	target := c.g.target[m.id]
	kept, revoking, added := owned{}, owned{}, owned{}
	unreleased := false
	for topic := range topicsOf(target, m.assigned) {
		wanted := target[topic]
		if !c.subscribed(m, topic) {
			wanted = nil
		}
		for p, since := range m.assigned[topic] {
			if _, keep := slices.BinarySearch(wanted, p); keep {
				kept.add(topic, p, since)
			} else {
				revoking.add(topic, p, since)
			}
		}
		for _, p := range wanted {
			owner, taken := c.g.owners[ownedPartition{topic, p}]
			switch {
			case m.assigned.has(topic, p):
			case !taken, owner == m.id && m.revoking.has(topic, p):
				added.add(topic, p, c.g.targetEpoch)
			default:
				unreleased = true
			}
		}
	}
	next := currentValue{previousEpoch: m.epoch}
	if len(revoking) > 0 && says.any(revoking) {
		next.epoch, next.state, next.assigned, next.revoking = epoch, stateUnrevoked, kept, revoking
		return next
	}
	for topic, partitions := range added {
		for p, since := range partitions {
			kept.add(topic, p, since)
		}
	}
	next.epoch, next.assigned = c.g.targetEpoch, kept
	if unreleased {
		next.state = stateUnreleased
	}
	return next
}

func (o owned) add(topic assignor.TopicID, partition, since int32) {
	if o[topic] == nil {
		o[topic] = map[int32]int32{}
	}
	o[topic][partition] = since
}

// topicsOf are the topics of either.
func topicsOf(a assignor.Assignment, o owned) map[assignor.TopicID]struct{} {
	topics := make(map[assignor.TopicID]struct{}, len(a)+len(o))
	for topic := range a {
		topics[topic] = struct{}{}
	}
	for topic := range o {
		topics[topic] = struct{}{}
	}
	return topics
}
