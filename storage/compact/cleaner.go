package compact

import (
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// Batch is what a Sink needs to know of a batch to index it.
type Batch struct {
	SizeBytes      int
	LastOffset     int64
	MaxTimestampMs int64
}

// Sink takes what stays.
type Sink interface {
	// Append takes whole batches; the bytes belong to the caller.
	Append(batches []byte, infos []Batch) error
	// Abort notes an aborted transaction of which data or its marker is left.
	Abort(AbortedTxn) error
}

// LastRecord is where the state of an idempotent producer comes from.
type LastRecord struct {
	// Offset is the last offset of its last batch of data; -1 when a marker is all
	// that it wrote in its epoch.
	Offset int64
	Epoch  int16
}

// Round is one cleaning of a log.
type Round struct {
	// FirstDirty is where the part begins that was never cleaned, End the first
	// offset that must not be cleaned.
	FirstDirty, End int64
	// NowMs is when the round began, DeleteRetentionMs how long tombstones and
	// markers then stay.
	NowMs, DeleteRetentionMs int64
	// Aborted are the aborted transactions that touch [from, to).
	Aborted func(from, to int64) ([]AbortedTxn, error)
	// LastRecord is the last record of a producer that may still write; ok is false
	// for every other. It must be as of the start of the group or later.
	LastRecord func(producerID int64) (last LastRecord, ok bool)
}

// Stats counts what a round has done.
type Stats struct {
	MapBytesRead, MapRecords     int64
	BytesRead, BytesWritten      int64
	RecordsRead, RecordsWritten  int64
	BatchesRead, BatchesWritten  int64
	KeylessRecords               int64
	MapUtilization               float64
	Tombstones, MarkersDiscarded int64
}

// Cleaner cleans one log after the other. It is not safe for concurrent use.
type Cleaner struct {
	bufferBytes int
	// pace is called with the bytes that were read or written: it may wait, and
	// its error ends the round.
	pace func(bytes int) error

	in     reader
	out    []byte
	infos  []Batch
	hasher *hasher
	keep   bitmap
	chosen choice
	mapped mapping
	// onChoose and onMap are the methods of these names.
	onChoose, onMap func(batch.Head) error
	// dry: nothing is written; the first batch that would change ends the work.
	dry bool
	// Stats of the current round.
	Stats Stats
}

// NewCleaner makes a cleaner with buffers of that size for reading and for
// writing; a batch that is larger gets a larger one while it is worked on. pace is
// called with every piece that is read or written, and often with 0: it may wait,
// and its error ends the work.
func NewCleaner(bufferBytes int, pace func(bytes int) error) *Cleaner {
	c := &Cleaner{bufferBytes: max(bufferBytes, minBufferBytes), pace: pace, hasher: newHasher()}
	c.onChoose, c.onMap = c.chooseOne, c.mapOne
	return c
}

// minBufferBytes holds a batch's header and more.
const minBufferBytes = 4 << 10

// Map puts the newest offsets of the keys in the dirty part into m. The sources
// are the dirty segments in order; starts says where in the first one to begin, a
// batch's start at or before the first dirty offset. When m is full it speaks for
// what came before: m.Latest() + 1 is then the end of what the round cleans.
func (c *Cleaner) Map(r *Round, sources []Source, start int64, m *OffsetMap) error {
	txns := NewTransactions()
	list, err := r.Aborted(r.FirstDirty, r.End)
	if err != nil {
		return err
	}
	txns.Add(list)
	for i, s := range sources {
		c.in.reset(s, start)
		start = 0
		full, err := c.mapSegment(r, txns, m)
		if err != nil || full {
			return err
		}
		// The segment may end in a gap.
		next := r.End
		if i+1 < len(sources) {
			next = sources[i+1].BaseOffset()
		}
		m.advance(next - 1)
	}
	c.Stats.MapUtilization = m.Utilization()
	return nil
}

func (c *Cleaner) mapSegment(r *Round, txns *Transactions, m *OffsetMap) (full bool, err error) {
	for {
		v, err := c.in.next(c)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		c.Stats.MapBytesRead += int64(len(v))
		c.Stats.MapRecords += int64(v.NumRecords())
		if full, err := c.mapBatch(r, v, txns, m); full || err != nil {
			c.Stats.MapUtilization = m.Utilization()
			return full, err
		}
	}
}

func (c *Cleaner) mapBatch(r *Round, v batch.View, txns *Transactions, m *OffsetMap) (full bool, err error) {
	switch {
	case v.IsControl():
		_, _, err = txns.marker(v)
	case txns.data(v):
		// What was aborted hides nothing.
	default:
		c.mapped = mapping{m: m, from: r.FirstDirty}
		err = batch.Heads(v, maxDecodedBytes, c.hasher, c.onMap)
		full = c.mapped.full
	}
	if err != nil {
		return false, c.in.broken(v, err)
	}
	if !full && v.LastOffset() >= r.FirstDirty {
		m.advance(v.LastOffset())
	}
	return full, nil
}

// mapping is what mapBatch works on.
type mapping struct {
	m    *OffsetMap
	from int64
	full bool
}

func (c *Cleaner) mapOne(h batch.Head) error {
	if h.NullKey || h.Offset < c.mapped.from {
		return nil
	}
	if !c.mapped.m.put(c.hasher.key(), h.Offset) {
		c.mapped.full = true
		return batch.ErrStop
	}
	return nil
}

// maxDecodedBytes bounds what a batch may expand to; it passes in pieces.
const maxDecodedBytes = 1<<31 - 1

// broken says that a batch whose checksum is right makes no sense.
func (r *reader) broken(v batch.View, err error) error {
	return &CorruptError{Name: r.src.Name(), Position: r.pos - int64(len(v)), Err: err}
}

// CleanGroup copies what stays of some segments to sink, in order. The same
// Transactions goes through all groups of a round.
func (c *Cleaner) CleanGroup(r *Round, group []Source, next int64, m *OffsetMap, txns *Transactions, sink Sink) error {
	if c.out == nil {
		c.out = make([]byte, 0, c.bufferBytes)
	}
	c.out, c.infos = c.out[:0], c.infos[:0]
	for i, s := range group {
		to := next
		if i+1 < len(group) {
			to = group[i+1].BaseOffset()
		}
		list, err := r.Aborted(s.BaseOffset(), to)
		if err != nil {
			return err
		}
		txns.Add(list)
		c.in.reset(s, 0)
		if err := c.cleanSegment(r, m, txns, sink); err != nil {
			return err
		}
	}
	if err := c.flush(sink); err != nil {
		return err
	}
	if cap(c.out) > 2*c.bufferBytes {
		c.out = nil // a large batch needed it
	}
	return nil
}

func (c *Cleaner) cleanSegment(r *Round, m *OffsetMap, txns *Transactions, sink Sink) error {
	for {
		v, err := c.in.next(c)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		c.Stats.BatchesRead++
		c.Stats.BytesRead += int64(len(v))
		if err := c.cleanBatch(r, v, m, txns, sink); err != nil {
			return err
		}
	}
}

// flush passes on what was gathered.
func (c *Cleaner) flush(sink Sink) error {
	if len(c.out) == 0 {
		return nil
	}
	if err := sink.Append(c.out, c.infos); err != nil {
		return fmt.Errorf("write a cleaned segment: %w", err)
	}
	n := len(c.out)
	c.Stats.BytesWritten += int64(n)
	c.Stats.BatchesWritten += int64(len(c.infos))
	c.out, c.infos = c.out[:0], c.infos[:0]
	return c.pace(n)
}
