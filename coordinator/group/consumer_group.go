package group

import (
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// firstEpoch is the epoch of a consumer group, and of its division, before
// anything has happened in it.
const firstEpoch = 1

// consumerGroup is a group of the consumer protocol (KIP-848) as the log has it.
// Only Replay changes the one that the machine holds; what its maps lead to is
// shared and never changed.
type consumerGroup struct {
	// epoch goes up whenever the members or what they subscribe to change;
	// metadataHash is what the topics were like then.
	epoch        int32
	metadataHash int64
	// targetEpoch is the epoch for which target was made, at targetAtMs.
	targetEpoch int32
	targetAtMs  int64
	members     map[string]*consumerMember
	target      map[string]assignor.Assignment
	regexes     map[string]*regexValue
	// subscribed is what the members subscribe to, in sum.
	subscribed subscriptions
	// owners says which member has a partition, be it about to give it back.
	owners map[ownedPartition]string
	// oldPartitions says that the log has a record that Kafka 4.0 wrote and that
	// is to be removed.
	oldPartitions bool
}

type ownedPartition struct {
	topic     assignor.TopicID
	partition int32
}

func newConsumerGroup() *consumerGroup {
	return &consumerGroup{
		epoch: firstEpoch, targetEpoch: firstEpoch,
		members: map[string]*consumerMember{}, target: map[string]assignor.Assignment{},
		regexes: map[string]*regexValue{}, owners: map[ownedPartition]string{}, subscribed: newSubscriptions(),
	}
}

// clone is a group that may be changed without the original.
func (g *consumerGroup) clone() *consumerGroup {
	c := *g
	c.members, c.target, c.regexes, c.owners = maps.Clone(g.members), maps.Clone(g.target), maps.Clone(g.regexes), maps.Clone(g.owners)
	c.subscribed = g.subscribed.clone()
	return &c
}

// replay applies one record. A compacted log and a checkpoint have the newest
// record of each key only, in any order, so that no record counts on another.
func (g *consumerGroup) replay(c *ConsumerRecord) {
	switch v := c.value.(type) {
	case *epochValue:
		g.epoch, g.metadataHash = v.epoch, v.metadataHash
	case partitionsValue:
		g.oldPartitions = true
	case *memberMetadata:
		g.countMember(g.members[c.name], -1)
		g.put(c.name, func(m *consumerMember) { m.memberMetadata = *v })
		g.countMember(g.members[c.name], 1)
	case *targetEpochValue:
		g.targetEpoch, g.targetAtMs = v.epoch, v.timestampMs
	case *targetValue:
		g.target[c.name] = v.partitions
	case *currentValue:
		g.release(c.name)
		g.put(c.name, func(m *consumerMember) { m.currentValue = *v })
		g.claim(c.name, v.assigned)
		g.claim(c.name, v.revoking)
	case *regexValue:
		g.putRegex(c.name, v)
	default:
		g.replayTombstone(c)
	}
}

func (g *consumerGroup) replayTombstone(c *ConsumerRecord) {
	switch c.kind {
	case kindPartitions:
		g.oldPartitions = false
	case kindMember:
		g.release(c.name)
		g.countMember(g.members[c.name], -1)
		delete(g.members, c.name)
	case kindTargetEpoch:
		g.targetEpoch, g.targetAtMs = -1, 0
	case kindTarget:
		delete(g.target, c.name)
	case kindCurrent:
		g.release(c.name)
		if g.members[c.name] != nil {
			g.put(c.name, func(m *consumerMember) { m.currentValue = currentValue{epoch: -1, previousEpoch: -1} })
		}
	case kindRegex:
		g.putRegex(c.name, nil)
	}
}

func (g *consumerGroup) put(id string, change func(*consumerMember)) {
	m := newConsumerMember(id)
	if old := g.members[id]; old != nil {
		*m = *old
	}
	change(m)
	g.members[id] = m
}

func (g *consumerGroup) claim(member string, o owned) {
	for topic, partitions := range o {
		for p := range partitions {
			g.owners[ownedPartition{topic, p}] = member
		}
	}
}

// release takes the partitions of a member from it, but for those that another
// one has by now.
func (g *consumerGroup) release(member string) {
	m := g.members[member]
	if m == nil {
		return
	}
	for _, o := range []owned{m.assigned, m.revoking} {
		for topic, partitions := range o {
			for p := range partitions {
				if at := (ownedPartition{topic, p}); g.owners[at] == member {
					delete(g.owners, at)
				}
			}
		}
	}
}

// memberIDs are in order.
func (g *consumerGroup) memberIDs() []string { return slices.Sorted(maps.Keys(g.members)) }

// static finds a static member by its instance.
func (g *consumerGroup) static(instanceID *string) *consumerMember {
	if instanceID == nil {
		return nil
	}
	for _, m := range g.members {
		if m.instanceID != nil && *m.instanceID == *instanceID {
			return m
		}
	}
	return nil
}

// state is where the group stands.
func (g *consumerGroup) state() State {
	switch {
	case len(g.members) == 0:
		return Empty
	case g.epoch > g.targetEpoch:
		return Assigning
	}
	for _, m := range g.members {
		if !m.reconciledTo(g.targetEpoch) {
			return Reconciling
		}
	}
	return Stable
}

// assignorName is the one that most members ask for, by name where as many ask
// for another; nobody asks for one but by name, so that the default is fallback.
func (g *consumerGroup) assignorName(fallback string) string {
	votes := map[string]int{}
	for _, m := range g.members {
		if m.assignor != nil {
			votes[*m.assignor]++
		}
	}
	best := fallback
	for _, name := range slices.Sorted(maps.Keys(votes)) {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// usedRegexes are the regular expressions that members subscribe by, in order.
func (g *consumerGroup) usedRegexes() []string {
	return slices.Sorted(maps.Keys(g.subscribed.regexes))
}

// subscribes tells whether one member subscribes to a topic.
func (g *consumerGroup) subscribes(m *consumerMember, topic string) bool {
	if _, ok := slices.BinarySearch(m.topics, topic); ok {
		return true
	}
	r := g.regexes[m.regex]
	if m.regex == "" || r == nil {
		return false
	}
	_, ok := slices.BinarySearch(r.topics, topic)
	return ok
}

// tombstones are the records that remove the whole group from the log.
func (g *consumerGroup) tombstones() []*ConsumerRecord {
	ids := g.memberIDs()
	var out []*ConsumerRecord
	each := func(kind recordKind, names []string) {
		for _, name := range names {
			out = append(out, &ConsumerRecord{kind: kind, name: name})
		}
	}
	each(kindCurrent, ids)
	each(kindTarget, slices.Sorted(maps.Keys(g.target)))
	out = append(out, &ConsumerRecord{kind: kindTargetEpoch})
	each(kindMember, ids)
	each(kindRegex, slices.Sorted(maps.Keys(g.regexes)))
	return append(out, &ConsumerRecord{kind: kindPartitions}, &ConsumerRecord{kind: kindEpoch})
}
