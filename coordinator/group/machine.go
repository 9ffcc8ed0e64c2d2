package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/machine"
)

// Machine decides the groups of one partition of __consumer_offsets.
type Machine struct {
	cfg   Config
	newID func() string
	// groups is what the log says; only Replay changes it.
	groups map[string]*stored
	// open is what each producer has pending; only Replay changes it.
	open map[int64]map[offsetKey]struct{}
	// logEnd is what follows the last record; only Replay changes it.
	logEnd int64
	// soft is what only memory knows; only Handle changes it.
	soft soft
	// tally counts both for the metrics.
	tally tally
}

// stored is one group as the log has it.
type stored struct {
	// metadata is nil for a group that only commits offsets, and for one of the
	// consumer protocol.
	metadata *kmsg.GroupMetadataValue
	// consumer is nil for a group that is not of the consumer protocol.
	consumer *consumerGroup
	// offsets is by topic and partition.
	offsets map[string]map[int32]committed
	// pending are offsets of open transactions, by producer.
	pending map[topicPartition]map[int64]committed
}

// committed is one committed offset and where its record stands in the log.
type committed struct {
	value        *kmsg.OffsetCommitValue
	recordOffset int64
}

type soft struct {
	// groups has every group with members, joined or about to.
	groups map[string]*classic
	// consumers has the consumer groups that were heard of since the load.
	consumers map[string]*softConsumer
	// memberBytes is what the members of groups know, see Config.MaxMemberBytes.
	memberBytes int
	regexes     regexes
	// expiryArmed says that the check for expired offsets has its timer.
	expiryArmed bool
	// expiring are the groups that this check has not looked at yet.
	expiring []string
	deletion deletion
}

// Out is what one event leads to.
type Out = machine.Out[Record, Answer]

// New is an empty machine. newID makes the random part of a member id.
func New(cfg Config, newID func() string) *Machine {
	return &Machine{
		cfg: cfg, newID: newID, groups: map[string]*stored{}, open: map[int64]map[offsetKey]struct{}{}, tally: newTally(),
		soft: soft{groups: map[string]*classic{}, consumers: map[string]*softConsumer{}},
	}
}

// step is one event on its way through the machine.
type step struct {
	*Machine
	now   time.Time
	world World
	out   Out
}

// Handle decides one event.
func (m *Machine) Handle(now time.Time, e Event) Out {
	s := &step{Machine: m, now: now, world: e.World}
	if s.world.Image == nil {
		s.world.Image = nowhere
	}
	if group, ok := mayChange(e); ok {
		m.tally.changed[group] = struct{}{}
		before := m.memberBytes(group)
		defer func() { m.soft.memberBytes += m.memberBytes(group) - before }()
	}
	switch r := e.Request.(type) {
	case *kmsg.JoinGroupRequest:
		s.join(e, r)
	case *kmsg.SyncGroupRequest:
		s.sync(e, r)
	case *kmsg.HeartbeatRequest:
		s.heartbeat(e, r)
	case *kmsg.LeaveGroupRequest:
		s.leave(e, r)
	case *kmsg.OffsetCommitRequest:
		s.commitOffsets(e, r)
	case CommitPending:
		s.commitPending(e, r.Request)
	case *kmsg.OffsetDeleteRequest:
		s.deleteOffsets(e, r)
	case *kmsg.ConsumerGroupHeartbeatRequest:
		s.consumerHeartbeat(e, r)
	case FetchOffsets:
		s.answer(e.Call, s.fetchOffsets(r))
	case DescribeGroup:
		s.answer(e.Call, s.describe(r))
	case DescribeConsumerGroup:
		s.answer(e.Call, s.describeConsumer(r.Group))
	case ListGroups:
		s.answer(e.Call, s.list(r))
	case DeleteGroup:
		s.answer(e.Call, s.deleteGroup(r.Group))
	case TopicsDeleted:
		s.topicsDeleted(r.Topics)
	case ImportOffsets:
		s.importOffsets(e, r)
	case Loaded:
		s.loaded()
	case TimerFired:
		s.fired(r.Key)
	default:
		invariant.That(false, "a group event of type %T", e.Request)
	}
	s.armExpiry()
	return s.out
}

// Replay applies one record. A group without members and offsets stays, as in
// Kafka, until its own tombstone.
func (m *Machine) Replay(offset int64, r Record) {
	m.logEnd = max(m.logEnd, offset+1)
	if r.Offset == nil && r.Metadata == nil && (r.Consumer == nil || r.Consumer.value == nil) && m.groups[r.Group] == nil {
		return
	}
	g := m.stored(r.Group)
	switch {
	case r.Consumer != nil:
		m.replayConsumer(g, r)
	case !r.IsOffset:
		g.metadata = r.Metadata
		m.tally.changed[r.Group] = struct{}{}
		if g.nothing() {
			delete(m.groups, r.Group)
		}
	case r.Offset != nil:
		g.put(topicPartition{r.Topic, r.Partition}, committed{value: r.Offset, recordOffset: offset})
	default:
		delete(g.offsets[r.Topic], r.Partition)
		if len(g.offsets[r.Topic]) == 0 {
			delete(g.offsets, r.Topic)
		}
		m.forgetPending(g, offsetKey{r.Group, topicPartition{r.Topic, r.Partition}})
	}
}

// stored is what the log has of a group, which exists from then on.
func (m *Machine) stored(id string) *stored {
	g := m.groups[id]
	if g == nil {
		g = &stored{offsets: map[string]map[int32]committed{}}
		m.groups[id] = g
		m.tally.changed[id] = struct{}{}
	}
	return g
}

// put makes an offset count.
func (st *stored) put(tp topicPartition, c committed) {
	byPartition := st.offsets[tp.topic]
	if byPartition == nil {
		byPartition = map[int32]committed{}
		st.offsets[tp.topic] = byPartition
	}
	byPartition[tp.partition] = c
}

// nothing tells whether the log has nothing of a group any more.
func (st *stored) nothing() bool {
	return st.metadata == nil && st.consumer == nil && len(st.offsets) == 0 && len(st.pending) == 0
}

// replayConsumer applies a record of a consumer group.
func (m *Machine) replayConsumer(g *stored, r Record) {
	m.tally.changed[r.Group] = struct{}{}
	switch {
	case r.Consumer.value != nil:
		if g.consumer == nil {
			g.consumer = newConsumerGroup()
		}
	case g.consumer == nil:
		return
	case r.Consumer.kind == kindEpoch:
		g.consumer = nil
		if g.nothing() {
			delete(m.groups, r.Group)
		}
		return
	}
	g.consumer.replay(r.Consumer)
}

func (s *step) answer(call uint64, response any) {
	if call != 0 {
		s.out.Answers = append(s.out.Answers, Answer{Call: call, Response: response})
	}
}

func (s *step) record(r Record) { s.out.Records = append(s.out.Records, r) }

func (s *step) nowMs() int64 { return s.now.UnixMilli() }

// storedIDs are the groups that the log knows, in order.
func (m *Machine) storedIDs() []string { return slices.Sorted(maps.Keys(m.groups)) }

// view is a group of the classic protocol for reading: the one in memory, or else
// one made from the log and forgotten afterwards. It is nil for a group that does
// not exist or is of the consumer protocol.
func (m *Machine) view(id string) *classic {
	if g := m.soft.groups[id]; g != nil {
		return g
	}
	if st := m.groups[id]; st != nil && st.consumer == nil {
		return fromStored(id, st)
	}
	return nil
}

// hold is a group for changing, a new one if there is none.
func (s *step) hold(id string) *classic {
	g := s.view(id)
	if g == nil {
		g = newClassic(id)
		g.stateTimestampMs = s.nowMs()
	}
	s.soft.groups[id] = g
	return g
}

// settle forgets the memory of a group about which the log knows everything.
func (s *step) settle(g *classic) {
	if g.state == Empty && len(g.members) == 0 && len(g.pendingJoin) == 0 {
		delete(s.soft.groups, g.id)
	}
}

// loaded gives every stored member a session, as if it had just been heard of.
func (s *step) loaded() {
	for _, id := range s.storedIDs() {
		st := s.groups[id]
		if st.consumer != nil {
			s.loadedConsumer(id, st.consumer)
			continue
		}
		if st.metadata == nil || len(st.metadata.Members) == 0 {
			continue
		}
		g := s.hold(id)
		s.soft.memberBytes += g.common.bytes
		for _, m := range g.members {
			s.expectHeartbeat(g, m, m.sessionTimeoutMs)
		}
		if len(g.members) > s.cfg.MaxSize {
			s.prepareRebalance(g)
		}
	}
}
