package producer

import (
	"cmp"
	"math"
	"slices"
)

// openTxn is a transaction without a marker.
type openTxn struct {
	firstOffset int64
	producerID  int64
}

// Ended is a transaction that a marker has ended.
type Ended struct {
	ProducerID int64
	// FirstOffset is the transaction's first record, LastOffset its marker.
	FirstOffset, LastOffset int64
	Committed               bool
	// LastStableOffset is where the oldest transaction of another producer begins,
	// or what follows the marker.
	LastStableOffset int64
}

// FirstOpen is where the oldest open transaction begins, -1 when none is open.
func (t *Table) FirstOpen() int64 {
	if len(t.open) == 0 {
		return noOffset
	}
	return t.open[0].firstOffset
}

// FirstOpenWrittenMs is when the producer of the oldest open transaction wrote last,
// by the timestamps of its records; -1 when none is open.
func (t *Table) FirstOpenWrittenMs() int64 {
	if len(t.open) == 0 {
		return -1
	}
	return t.entries[t.open[0].producerID].LastTimestampMs
}

// reopen notes that a producer's transaction begins at another offset than before;
// -1 is none.
func (t *Table) reopen(id, before, now int64) {
	byOffset := func(o openTxn, offset int64) int { return cmp.Compare(o.firstOffset, offset) }
	if before != noOffset {
		if i, ok := slices.BinarySearchFunc(t.open, before, byOffset); ok {
			t.open = slices.Delete(t.open, i, i+1)
		}
	}
	if now != noOffset {
		i, _ := slices.BinarySearchFunc(t.open, now, byOffset)
		t.open = slices.Insert(t.open, i, openTxn{firstOffset: now, producerID: id})
	}
}

// settle completes the ends with what was stable at their time: those that ended
// later in the same append were open still.
func (t *Table) settle() []Ended {
	t.ended = append(t.ended[:0], t.ends...)
	t.ends = t.ends[:0]
	oldest := int64(math.MaxInt64)
	if len(t.open) > 0 {
		oldest = t.open[0].firstOffset
	}
	for i := len(t.ended) - 1; i >= 0; i-- {
		e := &t.ended[i]
		e.LastStableOffset = min(e.LastOffset+1, oldest)
		oldest = min(oldest, e.FirstOffset)
	}
	return t.ended
}
