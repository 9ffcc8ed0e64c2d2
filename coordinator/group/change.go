package group

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// change is what one event makes of a consumer group. Nothing of it counts before
// settle.
type change struct {
	*step
	id string
	// g is the group with the records decided so far; own says that it is a copy.
	g   *consumerGroup
	own bool
	// bump asks for a new epoch of the group.
	bump bool
	// effects are what the machine remembers beside the log, once all is decided.
	effects []func()
}

// softConsumer is what only memory knows of a consumer group.
type softConsumer struct {
	// checked is set once the group was held against the topics of the image
	// checkedAt.
	checked   bool
	checkedAt int64
	// resolvedAt and resolvedAtMs say with which image, and when, the regular
	// expressions were last held against all topics.
	resolvedAt, resolvedAtMs int64
	// joining are the classic members that have to join again and have a timer
	// for it.
	joining map[string]struct{}
}

func newSoftConsumer() *softConsumer {
	return &softConsumer{resolvedAt: -1, joining: map[string]struct{}{}}
}

// remember is what memory knows of a group, for changing.
func (s *step) remember(id string) *softConsumer {
	soft := s.soft.consumers[id]
	if soft == nil {
		soft = newSoftConsumer()
		s.soft.consumers[id] = soft
	}
	return soft
}

// remembered is the same for reading.
func (s *step) remembered(id string) *softConsumer {
	if soft := s.soft.consumers[id]; soft != nil {
		return soft
	}
	return newSoftConsumer()
}

// consumer is a group of the consumer protocol, nil when there is none of that
// name.
func (m *Machine) consumer(id string) *consumerGroup {
	if st := m.groups[id]; st != nil {
		return st.consumer
	}
	return nil
}

// changeConsumer finds the group of an event. A member that joins makes it, if
// need be from a group of the classic protocol.
func (s *step) changeConsumer(id string, joins bool) (*change, *refusal) {
	if g := s.consumer(id); g != nil {
		return &change{step: s, id: id, g: g}, nil
	}
	old := s.view(id)
	c := &change{step: s, id: id, g: newConsumerGroup(), own: true}
	switch {
	case old == nil && joins:
		return c, nil
	case old == nil:
		return nil, refuse(kerr.GroupIDNotFound, "Group %s not found.", id)
	case joins && old.state == Empty:
		c.dropClassic(old)
		return c, nil
	case joins:
		return c, c.upgrade(old)
	}
	return nil, refuse(kerr.GroupIDNotFound, "Group %s is not a consumer group.", id)
}

// put decides a record, which what follows builds on.
func (c *change) put(r *ConsumerRecord) {
	if !c.own {
		c.g, c.own = c.g.clone(), true
	}
	c.g.replay(r)
	c.write(r)
}

// write decides a record that nothing else of the event looks at.
func (c *change) write(r *ConsumerRecord) { c.record(Record{Group: c.id, Consumer: r}) }

func (c *change) later(effect func()) { c.effects = append(c.effects, effect) }

// settle makes the change count, unless it has a record that the log cannot take.
func (c *change) settle() *refusal {
	for i := range c.out.Records {
		if n := encodedBytes(c.out.Records[i]); n > c.cfg.MaxBatchBytes {
			return refuse(kerr.UnknownServerError, "A record of %d bytes is larger than the log of the groups takes, %d bytes.", n, c.cfg.MaxBatchBytes)
		}
	}
	for _, effect := range c.effects {
		effect()
	}
	return nil
}

// update writes what a member said of itself and tells whether it subscribes to
// something else now.
func (c *change) update(before, now *consumerMember) (subscription bool) {
	if c.g.members[now.id] == nil || !now.memberMetadata.equal(&before.memberMetadata) {
		c.put(now.metadataRecord())
	}
	subscription = !slices.Equal(before.topics, now.topics) || before.regex != now.regex
	c.bump = c.bump || subscription
	c.dropRegex(before.regex)
	c.resolveRegexes()
	return subscription
}

// refreshEpoch begins a new epoch when something has asked for one, or when the
// topics that the group subscribes to are not what they were.
func (c *change) refreshEpoch() {
	soft, at := c.remembered(c.id), c.world.Image.Offset
	if !c.bump && soft.checked && soft.checkedAt == at {
		return
	}
	hash := c.metadataHash()
	if c.bump || hash != c.g.metadataHash {
		c.put(&ConsumerRecord{kind: kindEpoch, value: &epochValue{epoch: c.g.epoch + 1, metadataHash: hash}})
		c.later(func() { c.tally.rebalances++ })
	}
	if c.g.oldPartitions {
		c.put(&ConsumerRecord{kind: kindPartitions})
	}
	c.later(func() {
		soft := c.remember(c.id)
		soft.checked, soft.checkedAt = true, at
	})
}

// metadataHash changes when a topic that the group subscribes to comes, goes or
// gets partitions; 0 is a group that has no topic. The order of the topics does
// not matter. A name that is no topic's costs a look into the image and no memory:
// members may subscribe to any number of them.
func (c *change) metadataHash() int64 {
	var sum uint64
	for name := range c.g.topics() {
		t, ok := c.world.Image.Topic(name)
		if !ok {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write(t.ID[:])
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(t.Partitions))))
		_, _ = io.WriteString(h, name)
		sum += mixed(h.Sum64())
	}
	return int64(sum)
}

// mixed spreads the bits of a hash, so that a sum of several is one too.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// divide gives the members their parts for the group's epoch, unless it was done
// a moment ago: many that join at once are better divided once.
func (c *change) divide() {
	if c.g.targetEpoch >= c.g.epoch || !c.mayDivide() {
		return
	}
	assign, ok := assignor.ByName(c.g.assignorName(c.cfg.Consumer.Assignors[0]))
	if !ok {
		// An assignor that this version does not know, from the log.
		assign, _ = assignor.ByName(assignor.Uniform)
	}
	parts := assign(c.toDivide())
	for _, id := range c.g.memberIDs() {
		if old, ok := c.g.target[id]; !ok || !old.Equal(parts[id]) {
			c.put(&ConsumerRecord{kind: kindTarget, name: id, value: &targetValue{partitions: parts[id]}})
		}
	}
	c.put(&ConsumerRecord{kind: kindTargetEpoch, value: &targetEpochValue{epoch: c.g.epoch, timestampMs: c.nowMs()}})
}

func (c *change) mayDivide() bool {
	since := c.nowMs() - c.g.targetAtMs
	return c.g.targetAtMs == 0 || since < 0 || since >= int64(c.assignmentIntervalMs(c.id))
}

// toDivide is the group as the assignors see it. A partition counts as one
// member's only, whatever a log that was cut says.
func (c *change) toDivide() assignor.Group {
	img := c.world.Image
	g := assignor.Group{Homogeneous: c.g.homogeneous(), Partitions: func(id assignor.TopicID) int32 {
		if t, ok := img.TopicByID(id); ok {
			return int32(len(t.Partitions))
		}
		return 0
	}}
	seen := map[ownedPartition]struct{}{}
	topicIDs := c.sharedTopicIDs()
	for _, id := range c.g.memberIDs() {
		m := c.g.members[id]
		g.Members = append(g.Members, assignor.Member{
			ID: id, InstanceID: m.instanceID, Topics: topicIDs(m), Assigned: once(c.g.target[id], seen),
		})
	}
	return g
}

// once is an assignment without what was seen before.
func once(a assignor.Assignment, seen map[ownedPartition]struct{}) assignor.Assignment {
	twice := false
	for topic, partitions := range a {
		for _, p := range partitions {
			at := ownedPartition{topic, p}
			if _, ok := seen[at]; ok {
				twice = true
			}
		}
	}
	kept := a
	if twice {
		kept = assignor.Assignment{}
		for topic, partitions := range a {
			left := slices.DeleteFunc(slices.Clone(partitions), func(p int32) bool {
				_, ok := seen[ownedPartition{topic, p}]
				return ok
			})
			if len(left) > 0 {
				kept[topic] = left
			}
		}
	}
	for topic, partitions := range kept {
		for _, p := range partitions {
			seen[ownedPartition{topic, p}] = struct{}{}
		}
	}
	return kept
}

// sharedTopicIDs is topicIDs for one member after the other; those that subscribe to
// the same share a list. Most groups have one subscription, or two while their
// members are changed over to another.
func (c *change) sharedTopicIDs() func(*consumerMember) []assignor.TopicID {
	type key struct {
		names              int
		first, last, regex string
	}
	type list struct {
		names []string
		ids   []assignor.TopicID
	}
	lists := map[key]list{}
	return func(m *consumerMember) []assignor.TopicID {
		k := key{names: len(m.topics), regex: m.regex}
		if k.names > 0 {
			k.first, k.last = m.topics[0], m.topics[k.names-1]
		}
		l, known := lists[k]
		switch {
		case !known:
			l = list{m.topics, c.topicIDs(m)}
			lists[k] = l
		case !slices.Equal(l.names, m.topics):
			return c.topicIDs(m)
		}
		return l.ids
	}
}

// topicIDs are the topics that a member subscribes to and that exist, in order.
func (c *change) topicIDs(m *consumerMember) []assignor.TopicID {
	names := m.topics
	if r := c.g.regexes[m.regex]; m.regex != "" && r != nil {
		names = slices.Concat(names, r.topics)
	}
	ids := make([]assignor.TopicID, 0, len(names))
	for _, name := range names {
		if t, ok := c.world.Image.Topic(name); ok {
			ids = append(ids, t.ID)
		}
	}
	slices.SortFunc(ids, assignor.CompareTopicIDs)
	return slices.Compact(ids)
}
