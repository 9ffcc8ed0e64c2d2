package group

import (
	"cmp"
	"maps"
	"slices"
)

// topicPartition is what an offset is of.
type topicPartition struct {
	topic     string
	partition int32
}

// offsetKey is what a record of a committed offset is about.
type offsetKey struct {
	group string
	tp    topicPartition
}

// ReplayPending takes an offset that a producer commits in its transaction. It
// counts once the transaction is committed.
func (m *Machine) ReplayPending(offset, producerID int64, r Record) {
	if r.Offset == nil {
		// Kafka writes no such records, and treats them as plain ones.
		m.Replay(offset, r)
		return
	}
	m.logEnd = max(m.logEnd, offset+1)
	g, tp := m.stored(r.Group), topicPartition{r.Topic, r.Partition}
	if g.pending == nil {
		g.pending = map[topicPartition]map[int64]committed{}
	}
	if g.pending[tp] == nil {
		g.pending[tp] = map[int64]committed{}
	}
	g.pending[tp][producerID] = committed{value: r.Offset, recordOffset: offset}
	if m.open[producerID] == nil {
		m.open[producerID] = map[offsetKey]struct{}{}
	}
	m.open[producerID][offsetKey{r.Group, tp}] = struct{}{}
}

// ReplayMarker ends a producer's transaction. Of an offset that was committed
// inside and outside of transactions the newest record counts, not the one that
// became visible last: compaction keeps that one alone.
func (m *Machine) ReplayMarker(producerID int64, commit bool) {
	for key := range m.open[producerID] {
		g := m.groups[key.group]
		c := g.pending[key.tp][producerID]
		m.removePending(g, key, producerID)
		if old := g.offsets[key.tp.topic][key.tp.partition]; commit && (old.value == nil || c.recordOffset > old.recordOffset) {
			g.put(key.tp, c)
		}
	}
}

// forgetPending removes what any producer has pending for a key.
func (m *Machine) forgetPending(g *stored, key offsetKey) {
	for producerID := range g.pending[key.tp] {
		m.removePending(g, key, producerID)
	}
}

func (m *Machine) removePending(g *stored, key offsetKey, producerID int64) {
	delete(g.pending[key.tp], producerID)
	if len(g.pending[key.tp]) == 0 {
		delete(g.pending, key.tp)
	}
	delete(m.open[producerID], key)
	if len(m.open[producerID]) == 0 {
		delete(m.open, producerID)
	}
}

// hasPending tells whether a transaction that is open has an offset for a
// partition.
func (st *stored) hasPending(topic string, partition int32) bool {
	return len(st.pending[topicPartition{topic, partition}]) > 0
}

// pendingPartitions are the partitions with pending offsets, in order.
func (st *stored) pendingPartitions() []topicPartition {
	return slices.SortedFunc(maps.Keys(st.pending), func(a, b topicPartition) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
}
