package producer

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// Origin says who appends, and with it what is checked.
type Origin int8

const (
	// Client appends are checked in full.
	Client Origin = iota
	// Coordinator appends (offsets inside a transaction) carry no sequence
	// numbers; only the epoch is checked.
	Coordinator
	// Replication takes what another leader has checked, or what the log holds.
	Replication
)

// Batch is what the table needs to know of a batch.
type Batch struct {
	ProducerID                 int64
	Epoch                      int16
	BaseSequence, LastSequence int32
	FirstOffset, LastOffset    int64
	TimestampMs                int64
	Transactional              bool
	// Marker is set for a control batch that ends a transaction.
	Marker *Marker
}

// Marker is the end of a transaction.
type Marker struct {
	CoordinatorEpoch int32
}

// Table holds the producers of one partition. The zero value is empty and ready.
type Table struct {
	entries map[int64]Entry
	staged  []Entry
}

// Len is the number of producers.
func (t *Table) Len() int { return len(t.entries) }

// Entries are the producers, sorted by id.
func (t *Table) Entries() []Entry {
	return slices.SortedFunc(maps.Values(t.entries), func(a, b Entry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
}

// Entry is what is known of one producer.
func (t *Table) Entry(id int64) (Entry, bool) {
	e, ok := t.entries[id]
	return e, ok
}

// Set replaces a producer's entry.
func (t *Table) Set(e Entry) {
	if t.entries == nil {
		t.entries = map[int64]Entry{}
	}
	t.entries[e.ProducerID] = e
}

// Reset forgets everybody.
func (t *Table) Reset() { t.entries, t.staged = nil, nil }

// Begin starts the checks of one append.
func (t *Table) Begin() { t.staged = t.staged[:0] }

// Stage checks one batch against the table and the batches staged before it. A
// duplicate of a remembered batch is returned as such. Nothing changes before
// Commit.
func (t *Table) Stage(b Batch, origin Origin) (dup BatchMeta, isDup bool, err error) {
	if origin == Client && b.Marker == nil {
		if e, ok := t.entries[b.ProducerID]; ok {
			if m, ok := e.duplicate(b); ok {
				return m, true, nil
			}
		}
	}
	e := t.stagedEntry(b.ProducerID)
	if err := check(e, b, origin); err != nil {
		return BatchMeta{}, false, err
	}
	apply(e, b)
	return BatchMeta{}, false, nil
}

// Commit makes the staged batches part of the table, once they are written.
func (t *Table) Commit() {
	if len(t.staged) == 0 {
		return
	}
	for _, e := range t.staged {
		t.Set(e)
	}
	t.staged = t.staged[:0]
}

// Replay takes a batch from the log, unchecked.
func (t *Table) Replay(b Batch) {
	e, ok := t.entries[b.ProducerID]
	if !ok {
		e = newEntry(b.ProducerID)
	}
	apply(&e, b)
	t.Set(e)
}

func (t *Table) stagedEntry(id int64) *Entry {
	for i := range t.staged {
		if t.staged[i].ProducerID == id {
			return &t.staged[i]
		}
	}
	e, ok := t.entries[id]
	if !ok {
		e = newEntry(id)
	}
	t.staged = append(t.staged, e)
	return &t.staged[len(t.staged)-1]
}

func check(e *Entry, b Batch, origin Origin) error {
	if origin == Replication {
		return nil
	}
	if b.Epoch < e.Epoch {
		return protocol.Errorf(kerr.InvalidProducerEpoch, "epoch %d of producer %d at offset %d is older than the last seen epoch %d",
			b.Epoch, b.ProducerID, b.FirstOffset, e.Epoch)
	}
	if b.Marker != nil {
		if b.Marker.CoordinatorEpoch < e.CoordinatorEpoch {
			return protocol.Errorf(kerr.TransactionCoordinatorFenced, "coordinator epoch %d for producer %d at offset %d is older than %d",
				b.Marker.CoordinatorEpoch, b.ProducerID, b.FirstOffset, e.CoordinatorEpoch)
		}
		return nil
	}
	if origin == Client {
		if err := checkSequence(e, b); err != nil {
			return err
		}
	}
	if e.CurrentTxnFirstOffset != noOffset && !b.Transactional {
		return protocol.Errorf(kerr.InvalidTxnState, "producer %d wrote outside its transaction at offset %d", b.ProducerID, b.FirstOffset)
	}
	return nil
}

// checkSequence wants the number after the last one, or 0 in a new epoch. A
// producer without state may start anywhere: its state may have expired or have
// been trimmed (KIP-360).
func checkSequence(e *Entry, b Batch) error {
	if e.Epoch == noEpoch {
		return nil
	}
	if b.Epoch != e.Epoch {
		if b.BaseSequence != 0 {
			return protocol.Errorf(kerr.OutOfOrderSequenceNumber, "the new epoch %d of producer %d starts with sequence number %d at offset %d, its epoch was %d",
				b.Epoch, b.ProducerID, b.BaseSequence, b.FirstOffset, e.Epoch)
		}
		return nil
	}
	last, _ := e.Last()
	if !inSequence(last.LastSequence, b.BaseSequence) {
		return protocol.Errorf(kerr.OutOfOrderSequenceNumber, "producer %d sent sequence number %d at offset %d, the last one was %d",
			b.ProducerID, b.BaseSequence, b.FirstOffset, last.LastSequence)
	}
	return nil
}

func inSequence(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}

func apply(e *Entry, b Batch) {
	e.setEpoch(b.Epoch)
	e.LastTimestampMs = b.TimestampMs
	if b.Marker != nil {
		e.CoordinatorEpoch, e.CurrentTxnFirstOffset = b.Marker.CoordinatorEpoch, noOffset
		return
	}
	e.add(BatchMeta{
		LastSequence: b.LastSequence, LastOffset: b.LastOffset,
		OffsetDelta: int32(b.LastOffset - b.FirstOffset), TimestampMs: b.TimestampMs,
	})
	if b.Transactional && e.CurrentTxnFirstOffset == noOffset {
		e.CurrentTxnFirstOffset = b.FirstOffset
	}
}

// Expire forgets producers that have written nothing for expirationMs and have
// no open transaction (KIP-854).
func (t *Table) Expire(nowMs, expirationMs int64) (removed int) {
	for id, e := range t.entries {
		if e.CurrentTxnFirstOffset == noOffset && nowMs-e.LastTimestampMs >= expirationMs {
			delete(t.entries, id)
			removed++
		}
	}
	return removed
}

// Enrich takes the remembered batches of producers from a table that was
// replayed over the log before this one's snapshot: a snapshot holds only the
// last batch of each, but a client may repeat any of its last five.
func (t *Table) Enrich(history *Table) {
	for id, e := range t.entries {
		h, ok := history.entries[id]
		if !ok || h.Epoch != e.Epoch {
			continue
		}
		last, ok := e.Last()
		if newest, has := h.Last(); ok && has && newest.LastOffset == last.LastOffset {
			e.batches, e.n = h.batches, h.n
			t.entries[id] = e
		}
	}
}
