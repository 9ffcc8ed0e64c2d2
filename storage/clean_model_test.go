package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// cleanRecord is one record of the history that a compacted log was given.
type cleanRecord struct {
	offset     int64
	key, value string
	tombstone  bool
	pid        int64 // of its transaction, 0 for none
	aborted    bool
}

// history is the simple model of a compacted log: all that was ever written.
type history struct {
	records []cleanRecord
	// open are the first offsets of open transactions.
	open map[int64]int64
	end  int64
	// markers are the offsets of control records.
	markers map[int64]bool
}

func newHistory() *history { return &history{open: map[int64]int64{}, markers: map[int64]bool{}} }

// newest is the newest record of each key below an offset that counts.
func (h *history) newest(end int64) map[string]cleanRecord {
	m := map[string]cleanRecord{}
	for _, r := range h.records {
		if r.offset < end && !r.aborted {
			m[r.key] = r
		}
	}
	return m
}

// found is what a reader saw: records by offset, in the order of the log.
type found struct {
	offsets []int64
	records map[int64]batch.Record
}

func readRecords(l *Log) (*found, error) {
	all, err := readAll(l)
	if err != nil {
		return nil, err
	}
	if err := readAnywhere(l, all); err != nil {
		return nil, err
	}
	f := &found{records: map[int64]batch.Record{}}
	for _, v := range all {
		if v.IsControl() {
			continue
		}
		err := batch.Records(v, 0, func(r batch.Record) error {
			f.offsets = append(f.offsets, r.Offset)
			f.records[r.Offset] = r
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// readAnywhere holds reads that begin at any offset against one from the start.
func readAnywhere(l *Log, all []batch.View) error {
	end := l.LogEndOffset()
	for offset := l.LogStartOffset(); offset < end; offset++ {
		r, err := l.Read(ReadRequest{Offset: offset, Limit: end, MaxBytes: 1, AtLeastOne: true})
		if err != nil || len(r.Data) == 0 {
			return fmt.Errorf("read at %d: %d bytes, %w", offset, len(r.Data), err)
		}
		i := slices.IndexFunc(all, func(v batch.View) bool { return v.LastOffset() >= offset })
		if i < 0 || !bytes.Equal(all[i], r.Data) {
			return fmt.Errorf("a read at %d finds the batch at %d, which is not what a read from the start finds there", offset, batch.View(r.Data).BaseOffset())
		}
	}
	return nil
}

// check holds what a reader saw against the model. Below cleanedTo nothing but the
// newest of each key is left; from there on everything is.
func (h *history) check(l *Log, f *found, cleanedTo int64) error {
	for i := 1; i < len(f.offsets); i++ {
		if f.offsets[i] <= f.offsets[i-1] {
			return fmt.Errorf("offset %d follows %d", f.offsets[i], f.offsets[i-1])
		}
	}
	known := map[int64]cleanRecord{}
	for _, r := range h.records {
		known[r.offset] = r
	}
	for _, offset := range f.offsets {
		r, ok := known[offset]
		got := f.records[offset]
		if !ok || string(got.Key) != r.key || string(got.Value) != r.value || (got.Value == nil) != r.tombstone {
			return fmt.Errorf("offset %d has %s=%s, which was never written there", offset, got.Key, got.Value)
		}
	}
	clean, whole := h.newest(cleanedTo), h.newest(h.end)
	for _, r := range h.records {
		_, there := f.records[r.offset]
		newest := clean[r.key].offset == r.offset && !r.aborted
		switch {
		case r.aborted && !there:
			// It may go as soon as its transaction is decided.
		case r.offset >= cleanedTo && !there:
			return fmt.Errorf("record %d is gone, only those below %d were cleaned", r.offset, cleanedTo)
		case r.offset < cleanedTo && there && !newest:
			return fmt.Errorf("record %d of key %s is left below %d (aborted: %v)", r.offset, r.key, cleanedTo, r.aborted)
		case r.offset < cleanedTo && !there && newest && !r.tombstone:
			return fmt.Errorf("record %d is gone, the newest of key %s", r.offset, r.key)
		case !there && !r.aborted && !r.tombstone && whole[r.key].offset == r.offset:
			return fmt.Errorf("record %d is gone, the newest of key %s", r.offset, r.key)
		}
	}
	if end := l.LogEndOffset(); end != h.end {
		return fmt.Errorf("the log ends at %d, not at %d", end, h.end)
	}
	return h.checkReader(f)
}

// checkReader is about what a reader makes of the log: at any time the right last
// value of each key, whatever was cleaned. A tombstone may be gone, but only
// together with all that it hides.
func (h *history) checkReader(f *found) error {
	aborted := map[int64]bool{}
	for _, r := range h.records {
		aborted[r.offset] = r.aborted
	}
	state := map[string]string{}
	for _, offset := range f.offsets {
		switch r := f.records[offset]; {
		case aborted[offset]:
		case r.Value == nil:
			delete(state, string(r.Key))
		default:
			state[string(r.Key)] = string(r.Value)
		}
	}
	for key, r := range h.newest(h.end) {
		value, ok := state[key]
		if ok == r.tombstone || ok && value != r.value {
			return fmt.Errorf("key %s reads %q (%v), its last record is %+v", key, value, ok, r)
		}
		delete(state, key)
	}
	if len(state) > 0 {
		return fmt.Errorf("a reader sees %v", state)
	}
	return nil
}

// cleanModel writes to a log and to the model.
type cleanModel struct {
	w        *world
	l        *Log
	h        *history
	cfg      LogConfig
	sequence map[int64]int32
	epoch    map[int64]int16
	n        int
}

// write appends a batch of records with the given keys, in a transaction when pid
// is one of a transactional producer.
func (m *cleanModel) write(pid int64, txn bool, codec batch.Codec, keys []int, tombstones []bool) error {
	o := batch.BuilderOptions{Codec: codec, Transactional: txn}
	if pid != 0 {
		o.Producer = stamp(pid, m.epoch[pid], m.sequence[pid])
	}
	b := batch.NewBuilder(o)
	var records []cleanRecord
	for i, k := range keys {
		m.n++
		r := cleanRecord{offset: m.h.end + int64(i), key: fmt.Sprint("key", k), tombstone: tombstones[i]}
		if txn {
			r.pid = pid
		}
		var value []byte
		if !r.tombstone {
			r.value = fmt.Sprintf("value-%d-%s", m.n, strings.Repeat("x", m.n%50))
			value = []byte(r.value)
		}
		b.Add(m.w.clock.Now().UnixMilli(), []byte(r.key), value)
		records = append(records, r)
	}
	res, err := m.l.Append(AppendRequest{Batches: b.Build()})
	if err != nil {
		return err
	}
	if res.FirstOffset != m.h.end {
		return fmt.Errorf("appended at %d, not at %d", res.FirstOffset, m.h.end)
	}
	if _, open := m.h.open[pid]; txn && !open {
		m.h.open[pid] = m.h.end
	}
	if pid != 0 {
		m.sequence[pid] += int32(len(keys))
	}
	m.h.records = append(m.h.records, records...)
	m.h.end += int64(len(keys))
	m.l.SetHighWatermark(m.h.end)
	return nil
}

// finish ends a producer's transaction.
func (m *cleanModel) finish(pid int64, commit bool) error {
	if _, open := m.h.open[pid]; !open {
		return nil
	}
	key, value := make([]byte, 4), make([]byte, 6)
	if commit {
		binary.BigEndian.PutUint16(key[2:], 1)
	}
	b := batch.NewBuilder(batch.BuilderOptions{Transactional: true, Control: true, Producer: stamp(pid, m.epoch[pid], batch.NoSequence)})
	b.Add(m.w.clock.Now().UnixMilli(), key, value)
	if _, err := m.l.Append(AppendRequest{Batches: b.Build(), Internal: true}); err != nil {
		return err
	}
	if !commit {
		for i := range m.h.records {
			if r := &m.h.records[i]; r.pid == pid && r.offset >= m.h.open[pid] {
				r.aborted = true
			}
		}
	}
	delete(m.h.open, pid)
	m.h.markers[m.h.end] = true
	m.h.end++
	m.l.SetHighWatermark(m.h.end)
	return nil
}

func (m *cleanModel) check() error {
	f, err := readRecords(m.l)
	if err != nil {
		return err
	}
	return m.h.check(m.l, f, max(m.l.cleanedTo.Load(), 0))
}

// checkCommitted reads as a read_committed consumer does: it drops what the list of
// aborted transactions tells it to.
func (m *cleanModel) checkCommitted() error {
	stable := m.l.LastStableOffset(m.h.end)
	aborted := map[int64]bool{}
	for _, r := range m.h.records {
		aborted[r.offset] = r.aborted
	}
	for offset := m.l.LogStartOffset(); offset < stable; {
		r, err := m.l.Read(ReadRequest{Offset: offset, Limit: stable, MaxBytes: 700, AtLeastOne: true, Aborted: true})
		if err != nil || len(r.Data) == 0 {
			return fmt.Errorf("read at %d up to %d: %d bytes, %w", offset, stable, len(r.Data), err)
		}
		for rest := r.Data; len(rest) > 0; {
			v, after, err := batch.Next(rest)
			if err != nil {
				return err
			}
			hidden := v.IsTransactional() && !v.IsControl() && slices.ContainsFunc(r.Aborted, func(t AbortedTxn) bool {
				return t.ProducerID == v.ProducerID() && t.FirstOffset <= v.LastOffset() && v.LastOffset() < t.LastOffset
			})
			if !v.IsControl() {
				err = batch.Records(v, 0, func(r batch.Record) error {
					if aborted[r.Offset] != hidden {
						return fmt.Errorf("record %d: aborted %v, hidden from the reader %v", r.Offset, aborted[r.Offset], hidden)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			offset, rest = v.NextOffset(), after
		}
	}
	return nil
}

// reopen takes over what survived.
func (m *cleanModel) reopen() error {
	if err := m.w.open(); err != nil {
		return err
	}
	l, err := m.w.store.OpenLog(testTopic, testID, m.cfg)
	if err != nil {
		return err
	}
	m.l = l
	if err := l.ensure(false); err != nil {
		return err
	}
	l.SetHighWatermark(l.LogEndOffset())
	m.w.settle()
	return nil
}

// TestCleanModel does random things to a compacted log, restarts and kills
// included, and holds it to the model after each.
func TestCleanModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"))
		m := newCleanModel(rt, w)
		must := func(err error) {
			rt.Helper()
			if err != nil {
				rt.Fatal(err)
			}
		}
		must(m.reopen())
		defer w.abandon()
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) { must(m.random(rt, 0, false)) },
			"idempotent": func(rt *rapid.T) {
				must(m.random(rt, rapid.Int64Range(1, 2).Draw(rt, "producer"), false))
			},
			"transaction": func(rt *rapid.T) {
				must(m.random(rt, rapid.Int64Range(10, 12).Draw(rt, "producer"), true))
			},
			"end": func(rt *rapid.T) {
				must(m.finish(rapid.Int64Range(10, 12).Draw(rt, "producer"), rapid.Bool().Draw(rt, "commit")))
			},
			"clean": func(*rapid.T) { w.tick() },
			"wait": func(rt *rapid.T) {
				w.clock.Advance(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "ms")) * time.Millisecond)
			},
			"expire": func(*rapid.T) {
				w.store.cfg.ProducerIDExpirationMs = 1
				w.clock.Advance(2 * time.Millisecond)
				w.store.RunRetention()
				w.store.cfg.ProducerIDExpirationMs = defaultProducerExpiry
				m.learn()
			},
			"restart": func(*rapid.T) {
				must(w.close())
				must(m.reopen())
				must(m.resume())
			},
			"kill": func(*rapid.T) {
				w.abandon()
				w.fs.Kill()
				must(m.reopen())
				must(m.resume())
			},
			"": func(*rapid.T) {
				must(m.check())
				must(m.checkCommitted())
				if names := w.names(".swap"); len(names) > 0 {
					rt.Fatalf("left %v", names)
				}
			},
		})
	})
}

func newCleanModel(rt *rapid.T, w *world) *cleanModel {
	w.cfg.Cleaner = CleanerConfig{
		Threads: 1, Backoff: time.Second,
		DedupeBufferBytes: int64(rapid.IntRange(2, 60).Draw(rt, "keys") * 24),
		IOBufferBytes:     rapid.SampledFrom([]int{1, 8 << 10, 1 << 20}).Draw(rt, "buffer"),
	}
	cfg := compactConfig()
	cfg.SegmentBytes = rapid.Int64Range(800, 4000).Draw(rt, "segment")
	cfg.IndexIntervalBytes = rapid.Int64Range(0, 500).Draw(rt, "interval")
	cfg.MinCleanableRatio = rapid.SampledFrom([]float64{0, 0.3, 0.6}).Draw(rt, "ratio")
	cfg.DeleteRetentionMs = rapid.Int64Range(0, 3000).Draw(rt, "retention")
	cfg.MinCompactionLagMs = rapid.SampledFrom([]int64{0, 0, 1500}).Draw(rt, "lag")
	return &cleanModel{w: w, h: newHistory(), cfg: cfg, sequence: map[int64]int32{}, epoch: map[int64]int16{}}
}

// random writes a batch.
func (m *cleanModel) random(rt *rapid.T, pid int64, txn bool) error {
	n := rapid.IntRange(1, 6).Draw(rt, "records")
	keys, tombstones := make([]int, n), make([]bool, n)
	for i := range n {
		keys[i] = rapid.IntRange(0, 9).Draw(rt, "key")
		tombstones[i] = rapid.IntRange(0, 4).Draw(rt, "kind") == 0
	}
	return m.write(pid, txn, rapid.SampledFrom([]batch.Codec{batch.None, batch.None, batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd}).Draw(rt, "codec"), keys, tombstones)
}

// resume checks that no producer's state was lost.
func (m *cleanModel) resume() error {
	before := m.sequence
	m.learn()
	for id, s := range before {
		if got, ok := m.sequence[id]; !ok || got != s {
			return fmt.Errorf("producer %d goes on at %d (%v), not at %d", id, got, ok, s)
		}
	}
	return nil
}

// learn takes over the sequence numbers that the log knows.
func (m *cleanModel) learn() {
	states, err := m.l.Producers()
	if err != nil {
		return
	}
	before := m.sequence
	m.sequence = map[int64]int32{}
	for _, p := range states {
		m.sequence[p.ProducerID] = 0 // a replay may know of an older epoch
		if p.ProducerEpoch == m.epoch[p.ProducerID] {
			m.sequence[p.ProducerID] = p.LastSequence + 1
		}
	}
	for id := range before {
		if _, ok := m.sequence[id]; !ok {
			m.epoch[id]++ // it begins anew, as a producer does that was forgotten
		}
	}
}
