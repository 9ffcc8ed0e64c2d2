package storage

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// TestModel does random things to a log, restarts and crashes included, and
// holds it to a list of batches after each.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"))
		m := &machine{w: w, sequence: map[int64]int32{}, epochs: map[int64]int16{}, model: &model{}}
		m.open(rt)
		defer w.abandon()
		rt.Repeat(map[string]func(*rapid.T){
			"append":   m.append,
			"repeat":   m.repeat,
			"txn":      m.txn,
			"txn2":     m.txn,
			"marker":   m.marker,
			"mark":     m.raiseMark,
			"flush":    func(rt *rapid.T) { m.must(rt, m.l.Flush()) },
			"settle":   func(*rapid.T) { w.settle() },
			"truncate": m.truncate,
			"delete":   m.deleteRecords,
			"retain":   m.retain,
			"elect":    m.elect,
			"restart":  m.restart,
			"kill":     m.kill,
			"":         m.check,
		})
	})
}

type machine struct {
	w        *world
	l        *Log
	model    *model
	sequence map[int64]int32
	epoch    int32
	n        int
	// epochs are those of the transactional producers, coordinator that of their
	// coordinator.
	epochs      map[int64]int16
	coordinator int32
	// opened is the log's end when it was opened last.
	opened int64
}

func (m *machine) must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatal(err)
	}
}

func (m *machine) open(rt *rapid.T) {
	m.must(rt, m.w.open())
	m.l = m.w.log()
	m.opened = m.l.LogEndOffset()
}

func (m *machine) append(rt *rapid.T) {
	m.n++
	id, records := rapid.Int64Range(0, 3).Draw(rt, "producer"), rapid.IntRange(1, 5).Draw(rt, "records")
	p := stamp(id, 0, m.sequence[id])
	if id == 0 {
		p = nil
	}
	b := makeBatch(m.w.clock.Now().UnixMilli(), fmt.Sprint("b", m.n), records, p)
	end := m.l.LogEndOffset()
	res, err := m.l.Append(AppendRequest{Batches: b, LeaderEpoch: m.epoch})
	m.must(rt, err)
	if res.Duplicate || res.FirstOffset != end || res.LastOffset != end+int64(records)-1 {
		rt.Fatalf("appended %d records at %d: %+v", records, end, res)
	}
	m.sequence[id] += int32(records)
	m.appended(rt, res, b)
}

func (m *machine) appended(rt *rapid.T, res AppendResult, b []byte) {
	m.model.add(appended{base: res.FirstOffset, next: res.LastOffset + 1, bytes: b, acked: true})
	if rapid.IntRange(0, 3).Draw(rt, "lag") > 0 {
		m.l.SetHighWatermark(m.l.LogEndOffset())
	}
}

func (m *machine) raiseMark(rt *rapid.T) {
	m.l.SetHighWatermark(rapid.Int64Range(max(m.l.HighWatermark(), m.l.LogStartOffset()), m.l.LogEndOffset()).Draw(rt, "mark"))
}

// txn appends to a transaction, which may begin with it.
func (m *machine) txn(rt *rapid.T) {
	m.n++
	id, records := rapid.Int64Range(11, 14).Draw(rt, "producer"), rapid.IntRange(1, 4).Draw(rt, "records")
	b := makeTxn(m.w.clock.Now().UnixMilli(), fmt.Sprint("t", m.n), records, stamp(id, m.epochs[id], m.sequence[id]))
	res, err := appendTxn(m.l, b, m.epoch)
	m.must(rt, err)
	m.sequence[id] += int32(records)
	m.appended(rt, res, b)
}

// marker ends a transaction, or none, with or without a new epoch.
func (m *machine) marker(rt *rapid.T) {
	id, commit, bump := rapid.Int64Range(11, 14).Draw(rt, "producer"), rapid.Bool().Draw(rt, "commit"), rapid.Bool().Draw(rt, "bump")
	version := int16(0)
	if bump {
		m.epochs[id]++
		m.sequence[id], version = 0, 2
	}
	if rapid.IntRange(0, 9).Draw(rt, "election") == 0 {
		m.coordinator++
	}
	b := makeMarker(m.w.clock.Now().UnixMilli(), id, m.epochs[id], commit, m.coordinator)
	res, err := m.l.Append(AppendRequest{Batches: b, LeaderEpoch: m.epoch, Internal: true, TransactionVersion: version})
	m.must(rt, err)
	m.appended(rt, res, b)
}

// repeat sends one of the last five batches of a producer again.
func (m *machine) repeat(rt *rapid.T) {
	last := map[int64]int{}
	back := rapid.IntRange(1, 5).Draw(rt, "back")
	for i := len(m.model.batches) - 1; i >= 0; i-- {
		a := m.model.batches[i]
		v := batch.View(a.bytes)
		if !v.HasProducerID() || v.IsTransactional() || v.BaseSequence() >= m.sequence[v.ProducerID()] {
			continue
		}
		if last[v.ProducerID()]++; last[v.ProducerID()] == back && a.base >= m.l.LogStartOffset() {
			res, err := m.l.Append(AppendRequest{Batches: bytes.Clone(a.bytes), LeaderEpoch: m.epoch})
			if err != nil || !res.Duplicate || res.FirstOffset != a.base {
				rt.Fatalf("the batch at %d sent again: %+v, %v", a.base, res, err)
			}
			return
		}
	}
}

func (m *machine) truncate(rt *rapid.T) {
	to := rapid.Int64Range(m.l.LogStartOffset(), m.l.LogEndOffset()).Draw(rt, "offset")
	cut := to < m.l.LogEndOffset()
	m.must(rt, m.l.TruncateTo(to))
	m.model.cut(to)
	if cut {
		m.opened = m.l.LogEndOffset()
	}
	want := m.l.LogStartOffset()
	for _, a := range m.model.batches {
		want = max(want, a.next)
	}
	if end := m.l.LogEndOffset(); end > to || end != want {
		rt.Fatalf("truncated to %d, the log ends at %d, not %d", to, end, want)
	}
	m.resume(rt)
}

// resume goes on with the sequence numbers that the log knows.
func (m *machine) resume(rt *rapid.T) {
	states, err := m.l.Producers()
	m.must(rt, err)
	clear(m.sequence)
	clear(m.epochs)
	for _, p := range states {
		m.sequence[p.ProducerID], m.epochs[p.ProducerID] = p.LastSequence+1, p.ProducerEpoch
	}
}

func (m *machine) deleteRecords(rt *rapid.T) {
	to := rapid.Int64Range(0, m.l.HighWatermark()).Draw(rt, "offset")
	start, err := m.l.DeleteRecordsTo(to)
	m.must(rt, err)
	m.model.start = max(m.model.start, to)
	if start != m.model.start {
		rt.Fatalf("deleted up to %d: the log starts at %d, not %d", to, start, m.model.start)
	}
}

func (m *machine) retain(rt *rapid.T) {
	cfg := testLogConfig()
	cfg.RetentionBytes = rapid.Int64Range(0, 5000).Draw(rt, "bytes")
	m.l.Reconfigure(cfg)
	m.w.store.RunRetention()
	m.w.clock.Advance(2 * time.Second)
	m.l.Reconfigure(testLogConfig())
	start := m.l.LogStartOffset()
	if start < m.model.start {
		rt.Fatalf("the log start went back from %d to %d", m.model.start, start)
	}
	m.model.start = start
}

func (m *machine) elect(rt *rapid.T) {
	m.epoch++
	m.must(rt, m.l.AssignEpoch(m.epoch))
	if epoch, end := m.l.EndOffsetForEpoch(m.epoch); epoch != m.epoch || end != m.l.LogEndOffset() {
		rt.Fatalf("epoch %d ends at %d", epoch, end)
	}
}

func (m *machine) restart(rt *rapid.T) {
	m.must(rt, m.w.close())
	m.open(rt)
	m.resumeAfterStart(rt)
}

func (m *machine) kill(rt *rapid.T) {
	m.w.abandon()
	m.w.fs.Kill()
	m.open(rt)
	m.w.settle()
	m.resumeAfterStart(rt)
}

// resumeAfterStart is resume, but the log must know what it was sent, unless
// that was deleted: a snapshot outlives the batches, a replay does not.
func (m *machine) resumeAfterStart(rt *rapid.T) {
	before := map[int64]int32{}
	for id, s := range m.sequence {
		before[id] = s
	}
	m.resume(rt)
	if m.l.LogEndOffset()%2 == 0 {
		m.l.SetHighWatermark(m.l.LogEndOffset())
	}
	for _, a := range m.model.batches {
		v := batch.View(a.bytes)
		was, known := before[v.ProducerID()]
		if known && v.HasProducerID() && !v.IsControl() && a.base >= m.l.LogStartOffset() && m.sequence[v.ProducerID()] != was {
			rt.Fatalf("producer %d goes on at %d, not %d", v.ProducerID(), m.sequence[v.ProducerID()], was)
		}
	}
}

func (m *machine) check(rt *rapid.T) {
	if err := m.model.check(m.l, func(a appended) bool { return a.acked }); err != nil {
		rt.Fatal(err)
	}
	if err := checkTransactions(m.l, m.opened); err != nil {
		rt.Fatal(err)
	}
}
