package producer

import (
	"cmp"
	"maps"
	"slices"
)

// Origin says who appends, and with it what is checked.
type Origin int8

const (
	// Client appends are checked in full.
	Client Origin = iota
	// Coordinator appends (offsets inside a transaction, markers) carry no
	// sequence numbers; only the epoch is checked.
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
	Commit           bool
}

// Table holds the producers of one partition. The zero value is empty and ready.
type Table struct {
	entries map[int64]Entry
	// open are the open transactions, by first offset.
	open []openTxn
	// verifying are the verifications that have not ended, by producer id.
	verifying map[int64]verification
	lastGuard uint64

	staged []Entry
	// ends are the transactions that the staged batches end; ended is handed to
	// the caller.
	ends, ended []Ended
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
	old, known := t.entries[e.ProducerID]
	t.entries[e.ProducerID] = e
	before := int64(noOffset)
	if known {
		before = old.CurrentTxnFirstOffset
	}
	if before != e.CurrentTxnFirstOffset {
		t.reopen(e.ProducerID, before, e.CurrentTxnFirstOffset)
	}
}

// Reset forgets everybody. Guards that were given out stay used up.
func (t *Table) Reset() { *t = Table{lastGuard: t.lastGuard} }

// Begin starts the checks of one append.
func (t *Table) Begin() { t.staged, t.ends = t.staged[:0], t.ends[:0] }

// Stage checks one batch against the table and the batches staged before it. A
// duplicate of a remembered batch is returned as such. Nothing changes before
// Commit.
func (t *Table) Stage(b Batch, c Checks) (dup BatchMeta, isDup bool, err error) {
	if c.Origin == Client && b.Marker == nil {
		if e, ok := t.entries[b.ProducerID]; ok {
			if m, ok := e.duplicate(b); ok {
				return m, true, nil
			}
		}
	}
	e := t.stagedEntry(b.ProducerID)
	if err := t.check(e, b, c); err != nil {
		return BatchMeta{}, false, err
	}
	t.ends = apply(e, b, t.ends)
	if b.Transactional {
		// Either it has a first offset from here on or it has ended.
		delete(t.verifying, b.ProducerID)
	}
	return BatchMeta{}, false, nil
}

// Commit makes the staged batches part of the table, once they are written, and
// returns the transactions that they end. The list is valid until the next call.
func (t *Table) Commit() []Ended {
	for _, e := range t.staged {
		t.Set(e)
	}
	t.staged = t.staged[:0]
	return t.settle()
}

// Replay takes a batch from the log, unchecked, and returns what it ends, as
// Commit does.
func (t *Table) Replay(b Batch) []Ended {
	e, ok := t.entries[b.ProducerID]
	if !ok {
		e = newEntry(b.ProducerID)
	}
	t.ends = apply(&e, b, t.ends[:0])
	t.Set(e)
	return t.settle()
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

// apply takes a batch into its producer's entry. A marker with an open
// transaction ends that.
func apply(e *Entry, b Batch, ends []Ended) []Ended {
	e.setEpoch(b.Epoch)
	e.LastTimestampMs = b.TimestampMs
	if b.Marker != nil {
		if e.CurrentTxnFirstOffset != noOffset {
			ends = append(ends, Ended{
				ProducerID: b.ProducerID, FirstOffset: e.CurrentTxnFirstOffset, LastOffset: b.LastOffset, Committed: b.Marker.Commit,
			})
		}
		e.CoordinatorEpoch, e.CurrentTxnFirstOffset = b.Marker.CoordinatorEpoch, noOffset
		return ends
	}
	e.add(BatchMeta{
		LastSequence: b.LastSequence, LastOffset: b.LastOffset,
		OffsetDelta: int32(b.LastOffset - b.FirstOffset), TimestampMs: b.TimestampMs,
	})
	if b.Transactional && e.CurrentTxnFirstOffset == noOffset {
		e.CurrentTxnFirstOffset = b.FirstOffset
	}
	return ends
}

// Expire forgets producers that have written nothing for expirationMs and have
// no open transaction (KIP-854), and verifications as old.
func (t *Table) Expire(nowMs, expirationMs int64) (removed int) {
	for id, e := range t.entries {
		if e.CurrentTxnFirstOffset == noOffset && nowMs-e.LastTimestampMs >= expirationMs {
			delete(t.entries, id)
			removed++
		}
	}
	for id, v := range t.verifying {
		if nowMs-v.startedMs >= expirationMs {
			delete(t.verifying, id)
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
