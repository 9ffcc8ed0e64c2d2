package producer

import "math"

// batchesKept is how many batches of a producer are remembered: clients have at
// most five requests in flight.
const batchesKept = 5

const (
	noEpoch    = -1
	noSequence = -1
	noOffset   = -1
)

// BatchMeta is one remembered batch.
type BatchMeta struct {
	LastSequence int32
	LastOffset   int64
	// OffsetDelta is the last offset minus the first, and the same for the
	// sequence numbers.
	OffsetDelta int32
	TimestampMs int64
}

// FirstSequence is the sequence number of the batch's first record.
func (m BatchMeta) FirstSequence() int32 {
	if m.LastSequence < m.OffsetDelta {
		return math.MaxInt32 - (m.OffsetDelta - m.LastSequence) + 1
	}
	return m.LastSequence - m.OffsetDelta
}

// FirstOffset is the offset of the batch's first record.
func (m BatchMeta) FirstOffset() int64 { return m.LastOffset - int64(m.OffsetDelta) }

// Entry is what is remembered of one producer.
type Entry struct {
	ProducerID            int64
	Epoch                 int16
	CoordinatorEpoch      int32
	LastTimestampMs       int64
	CurrentTxnFirstOffset int64

	batches [batchesKept]BatchMeta // oldest first
	n       int
}

func newEntry(id int64) Entry {
	return Entry{
		ProducerID: id, Epoch: noEpoch, CoordinatorEpoch: -1,
		LastTimestampMs: -1, CurrentTxnFirstOffset: noOffset,
	}
}

// Batches are the remembered batches, oldest first.
func (e *Entry) Batches() []BatchMeta { return e.batches[:e.n] }

// Last is the newest batch; ok is false when none is remembered.
func (e *Entry) Last() (m BatchMeta, ok bool) {
	if e.n == 0 {
		return BatchMeta{LastSequence: noSequence, LastOffset: noOffset}, false
	}
	return e.batches[e.n-1], true
}

// inTransaction says that a transaction of this epoch is open.
func (e *Entry) inTransaction(epoch int16) bool {
	return e.CurrentTxnFirstOffset != noOffset && e.Epoch == epoch
}

// setEpoch forgets the batches of another epoch.
func (e *Entry) setEpoch(epoch int16) {
	if e.Epoch != epoch {
		e.Epoch, e.n = epoch, 0
	}
}

func (e *Entry) add(m BatchMeta) {
	if e.n == batchesKept {
		copy(e.batches[:], e.batches[1:])
		e.n--
	}
	e.batches[e.n] = m
	e.n++
}

// duplicate finds a remembered batch with exactly these sequence numbers.
func (e *Entry) duplicate(b Batch) (BatchMeta, bool) {
	if e.Epoch != b.Epoch {
		return BatchMeta{}, false
	}
	for _, m := range e.Batches() {
		if m.FirstSequence() == b.BaseSequence && m.LastSequence == b.LastSequence {
			return m, true
		}
	}
	return BatchMeta{}, false
}
