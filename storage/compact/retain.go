package compact

import (
	"errors"
	"math"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// fate is what happens to a batch.
type fate struct {
	// discard: none of its records stays, whatever their keys.
	discard bool
	// always: when no record stays, its header does.
	always bool
	// emptyTxn marks a marker of whose transaction nothing is left: it may go once
	// its delete horizon has passed.
	emptyTxn bool
}

// fateOf decides about a batch before its records are looked at.
func fateOf(r *Round, v batch.View, txns *Transactions, sink Sink) (f fate, err error) {
	if v.IsControl() {
		empty, left, err := txns.marker(v)
		if err != nil {
			return f, err
		}
		if left != nil && sink != nil {
			if err := sink.Abort(*left); err != nil {
				return f, err
			}
		}
		f.emptyTxn = empty
		// As a tombstone, a marker stays for a while after what it ends: a reader
		// who has seen the data must come to see it.
		f.discard = empty && v.HasDeleteHorizon() && v.BaseTimestamp() <= r.NowMs
	} else {
		f.discard = txns.data(v)
	}
	// The last batch of the round keeps the end of what was cleaned known.
	f.always = v.NextOffset() == r.End || v.HasProducerID() && isLast(r, v)
	return f, nil
}

// isLast says that the state of a producer who may still write rests on a batch:
// it holds the last sequence number, or, where markers are all there is of an
// epoch, the epoch.
func isLast(r *Round, v batch.View) bool {
	last, ok := r.LastRecord(v.ProducerID())
	switch {
	case !ok:
		return false
	case last.Offset >= 0:
		return v.LastOffset() == last.Offset
	}
	return v.IsControl() && v.ProducerEpoch() == last.Epoch
}

// kept sums up what stays of a batch.
type kept struct {
	records        int32
	firstMs, maxMs int64
	tombstone      bool
}

// errChanged ends a dry run.
var errChanged = errors.New("a batch would change")

// Unchanged says that cleaning one segment would leave it byte for byte as it is,
// so that it need not be written again. When it would not, nothing has happened.
func (c *Cleaner) Unchanged(r *Round, s Source, next int64, m *OffsetMap, txns *Transactions) (bool, error) {
	stats, before := c.Stats, txns.clone()
	c.dry = true
	defer func() { c.dry = false }()
	err := c.CleanGroup(r, []Source{s}, next, m, txns, nil)
	if errors.Is(err, errChanged) {
		c.Stats, *txns = stats, *before
		return false, nil
	}
	return err == nil, err
}

// cleanBatch writes what stays of a batch.
func (c *Cleaner) cleanBatch(r *Round, v batch.View, m *OffsetMap, txns *Transactions, sink Sink) error {
	f, err := fateOf(r, v, txns, sink)
	if err != nil {
		return c.in.broken(v, err)
	}
	c.Stats.RecordsRead += int64(v.NumRecords())
	if f.discard && v.IsControl() {
		c.Stats.MarkersDiscarded++
	}
	var k kept
	if !f.discard {
		if k, err = c.choose(r, v, m); err != nil {
			return c.in.broken(v, err)
		}
	}
	c.Stats.RecordsWritten += int64(k.records)
	// A retention beyond all timestamps never ends, as in Kafka.
	ends := r.DeleteRetentionMs <= math.MaxInt64-r.NowMs
	setHorizon := k.records > 0 && (k.tombstone || f.emptyTxn) && !v.HasDeleteHorizon() && ends
	whole := k.records == v.NumRecords() && !setHorizon && (k.records > 0 || f.always)
	switch {
	case c.dry && !whole:
		return errChanged
	case c.dry || k.records == 0 && !f.always:
		return nil
	}
	// What is left of a batch is seldom larger than it was.
	if len(c.out)+len(v) > c.bufferBytes {
		if err := c.flush(sink); err != nil {
			return err
		}
	}
	switch {
	case whole:
		return c.emit(v, func(dst []byte) ([]byte, error) { return append(dst, v...), nil })
	case k.records > 0:
		return c.rewrite(r, v, k, setHorizon)
	}
	return c.emit(v, func(dst []byte) ([]byte, error) { return batch.AppendEmpty(dst, v), nil })
}

// rewrite writes the records of a batch that c.keep has.
func (c *Cleaner) rewrite(r *Round, v batch.View, k kept, setHorizon bool) error {
	o := batch.RewriteOptions{
		Keep: c.keep.has, Kept: k.records, MaxTimestampMs: k.maxMs, MaxDecodedBytes: maxDecodedBytes,
		DeleteHorizon: setHorizon || v.HasDeleteHorizon(),
	}
	switch {
	case setHorizon:
		o.BaseTimestampMs = r.NowMs + r.DeleteRetentionMs
	case v.HasDeleteHorizon():
		o.BaseTimestampMs = v.BaseTimestamp()
	default:
		o.BaseTimestampMs = k.firstMs
	}
	return c.emit(v, func(dst []byte) ([]byte, error) { return batch.Rewrite(dst, v, o) })
}

// emit appends a batch to what is written next.
func (c *Cleaner) emit(v batch.View, write func(dst []byte) ([]byte, error)) error {
	from := len(c.out)
	out, err := write(c.out)
	if err != nil {
		return c.in.broken(v, err)
	}
	c.out = out
	b := batch.View(out[from:])
	info := Batch{SizeBytes: len(b), LastOffset: b.LastOffset(), MaxTimestampMs: b.MaxTimestamp()}
	if b.NumRecords() == 0 {
		info.MaxTimestampMs = batch.NoTimestamp // no record has it any more
	}
	c.infos = append(c.infos, info)
	return nil
}

// choose decides about each record and notes the decisions in c.keep.
func (c *Cleaner) choose(r *Round, v batch.View, m *OffsetMap) (kept, error) {
	c.keep = c.keep[:0]
	if v.IsControl() {
		return c.keepMarker(v)
	}
	c.chosen = choice{m: m, kept: kept{firstMs: batch.NoTimestamp, maxMs: batch.NoTimestamp}}
	c.chosen.expired = v.HasDeleteHorizon() && r.NowMs >= v.BaseTimestamp()
	err := batch.Heads(v, maxDecodedBytes, c.hasher, c.onChoose)
	return c.chosen.kept, err
}

// choice is what choose gathers; it is not on the stack so that a batch costs no
// memory of its own.
type choice struct {
	m       *OffsetMap
	expired bool
	kept
}

func (c *Cleaner) chooseOne(h batch.Head) error {
	k := &c.chosen
	if !c.stays(h, k.m, k.expired) {
		return nil
	}
	c.keep.set(h.Index)
	if k.records == 0 {
		k.firstMs = h.TimestampMs
	}
	k.records++
	k.maxMs = max(k.maxMs, h.TimestampMs)
	k.tombstone = k.tombstone || h.NullValue && h.Offset <= k.m.Latest()
	return nil
}

// stays says whether a record does: the newest of its key, unless it is a
// tombstone whose time is over.
func (c *Cleaner) stays(h batch.Head, m *OffsetMap, expired bool) bool {
	switch {
	case h.Offset > m.Latest():
		return true
	case h.NullKey:
		// Nothing can ever replace it. It came before the topic was compacted.
		c.Stats.KeylessRecords++
		return false
	case h.Offset < m.get(c.hasher.key()):
		return false
	case h.NullValue && expired:
		c.Stats.Tombstones++
		return false
	}
	return true
}

// keepMarker keeps a control batch's records.
func (c *Cleaner) keepMarker(v batch.View) (kept, error) {
	k := kept{records: v.NumRecords(), firstMs: batch.NoTimestamp, maxMs: v.MaxTimestamp()}
	for i := range v.NumRecords() {
		c.keep.set(i)
	}
	err := batch.Records(v, 0, func(rec batch.Record) error {
		k.firstMs = rec.TimestampMs
		return batch.ErrStop
	})
	return k, err
}

// bitmap has a bit for each record of a batch. It grows with the records that are
// really there, whatever the header says.
type bitmap []uint64

func (b *bitmap) set(i int32) {
	for int(i/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i/64] |= 1 << (i % 64)
}

func (b *bitmap) has(i int32) bool { return int(i/64) < len(*b) && (*b)[i/64]&(1<<(i%64)) != 0 }
