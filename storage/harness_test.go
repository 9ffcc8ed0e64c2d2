package storage

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// world is a store on a disk that can crash, with its background work run where
// the test says, so that a seed repeats a run exactly.
type world struct {
	t      *testing.T
	fs     *vfs.Mem
	clock  *clock.Manual
	logger *slog.Logger
	rand   *rand.Rand
	cfg    StoreConfig
	store  *Store

	mu    sync.Mutex
	queue []func()
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, fs: vfs.NewMem(), clock: clock.NewManual(time.UnixMilli(1_000_000)), logger: slog.New(neverMissing{telemetry.Discard().Handler(), t}), rand: rand.New(rand.NewPCG(seed, 1))}
	w.fs.SetNow(w.clock.Now)
	w.cfg = StoreConfig{FlushBehindBytes: 4000, RetentionCheck: time.Hour, CheckpointEvery: time.Hour, ReserveBytes: -1, OpenFiles: 8}
	return w
}

// neverMissing fails a test that is told of lost segments: no crash loses any. Tests
// that remove files have a logger of their own.
type neverMissing struct {
	slog.Handler
	t *testing.T
}

func (neverMissing) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (n neverMissing) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "missing") {
		n.t.Errorf("told without reason: %s", r.Message)
	}
	return nil
}

func (w *world) spawn(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, f)
}

// settle runs the background work.
func (w *world) settle() {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 {
			w.mu.Unlock()
			return
		}
		f := w.queue[0]
		w.queue = w.queue[1:]
		w.mu.Unlock()
		f()
	}
}

func (w *world) open() error {
	env := Env{FS: w.fs, Clock: w.clock, Logger: w.logger, Rand: w.rand.Uint64}
	s, err := openWith(env, "/data", w.cfg, w.spawn)
	if err != nil {
		return err
	}
	w.store = s
	return nil
}

func (w *world) mustOpen() {
	w.t.Helper()
	if err := w.open(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) close() error {
	w.settle()
	return w.store.Close()
}

// abandon forgets a store without a stop, as a crash does.
func (w *world) abandon() {
	w.queue = nil
	w.store.mu.Lock()
	w.store.closed = true
	timers := w.store.timers
	w.store.mu.Unlock()
	for _, t := range timers {
		t.Stop()
	}
}

var (
	testTopic = TopicPartition{Topic: "orders", Partition: 0}
	testID    = TopicID{1, 2, 3}
)

func testLogConfig() LogConfig {
	return LogConfig{
		SegmentBytes: 1200, SegmentIndexBytes: 1 << 20, IndexIntervalBytes: 200, SegmentMs: 7 * 24 * 3600 * 1000,
		RetentionMs: -1, RetentionBytes: -1, Delete: true, FileDeleteDelayMs: 1000,
	}
}

func (w *world) log() *Log {
	w.t.Helper()
	l, err := w.store.OpenLog(testTopic, testID, testLogConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// stamp makes an idempotent batch.
func stamp(id int64, epoch int16, sequence int32) *batch.ProducerStamp {
	return &batch.ProducerStamp{ID: id, Epoch: epoch, BaseSequence: sequence}
}

// makeBatch builds a batch of n records whose values name it.
func makeBatch(timestampMs int64, name string, n int, p *batch.ProducerStamp) []byte {
	o := batch.BuilderOptions{}
	if p != nil {
		o.Producer = p
	}
	b := batch.NewBuilder(o)
	for i := range n {
		b.Add(timestampMs+int64(i), []byte("key"), fmt.Appendf(nil, "%s/%d", name, i))
	}
	return b.Build()
}

// readAll reads the whole log, batch by batch.
func readAll(l *Log) ([]batch.View, error) {
	var all []batch.View
	end := l.LogEndOffset()
	for offset := l.LogStartOffset(); offset < end; {
		r, err := l.Read(ReadRequest{Offset: offset, Limit: end, MaxBytes: 500, AtLeastOne: true})
		if err != nil {
			return nil, fmt.Errorf("read at %d: %w", offset, err)
		}
		if len(r.Data) == 0 {
			return nil, fmt.Errorf("nothing at offset %d, the log ends at %d", offset, end)
		}
		for rest := r.Data; len(rest) > 0; {
			v, after, err := batch.Next(rest)
			if err != nil {
				return nil, fmt.Errorf("read at %d: %w", offset, err)
			}
			if v.CRC() != v.ComputeCRC() {
				return nil, fmt.Errorf("a torn batch was served at offset %d", v.BaseOffset())
			}
			all, offset, rest = append(all, v), v.NextOffset(), after
		}
	}
	return all, nil
}

// contents is readAll of a log that must be sound.
func contents(t *testing.T, l *Log) []batch.View {
	t.Helper()
	all, err := readAll(l)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// appended is what the model knows of one append.
type appended struct {
	base, next int64
	bytes      []byte
	acked      bool // answered without an error
	durable    bool // and synced before
	maybe      bool // truncated or deleted by something that did not finish
}

// model is what a log may hold.
type model struct {
	batches  []appended
	start    int64 // the log start that was answered
	maxStart int64 // the largest that was asked for
}

func (m *model) add(a appended) { m.batches = append(m.batches, a) }

// cut is a truncation from an offset on that has ended well.
func (m *model) cut(offset int64) {
	m.batches = slices.DeleteFunc(m.batches, func(a appended) bool { return a.next > offset })
}

// doubt is a truncation whose end is unknown.
func (m *model) doubt(offset int64) {
	for i := range m.batches {
		if m.batches[i].next > offset {
			m.batches[i].maybe = true
		}
	}
}

// check holds a reopened log against the model: what had to survive is there,
// and nothing is there that was never appended at that offset.
func (m *model) check(l *Log, must func(appended) bool) error {
	start, end := l.LogStartOffset(), l.LogEndOffset()
	if start < m.start || start > max(m.start, m.maxStart) {
		return fmt.Errorf("log start %d, answered %d, asked for %d", start, m.start, m.maxStart)
	}
	found := map[int64]batch.View{}
	next := int64(-1)
	all, err := readAll(l)
	if err != nil {
		return err
	}
	for _, v := range all {
		if next >= 0 && v.BaseOffset() != next {
			return fmt.Errorf("offset %d follows %d", v.BaseOffset(), next)
		}
		next = v.NextOffset()
		found[v.BaseOffset()] = v
	}
	known := map[int64][]appended{}
	for _, a := range m.batches {
		known[a.base] = append(known[a.base], a)
		if must(a) && !a.maybe && a.next > end {
			return fmt.Errorf("the log ends at %d, before the batch [%d, %d): its offsets would be used again", end, a.base, a.next)
		}
		if a.next <= start || a.maybe || !must(a) {
			continue
		}
		if v, ok := found[a.base]; !ok {
			return fmt.Errorf("batch [%d, %d) is gone; the log is [%d, %d)", a.base, a.next, start, end)
		} else if !bytes.Equal(v, a.bytes) {
			return fmt.Errorf("batch [%d, %d) has other bytes", a.base, a.next)
		}
	}
	for base, v := range found {
		if !slices.ContainsFunc(known[base], func(a appended) bool { return bytes.Equal(a.bytes, v) }) {
			return fmt.Errorf("the batch at offset %d was never appended there", base)
		}
	}
	return nil
}

// settleModel makes the log's content the only truth, after a check.
func (m *model) settle(t *testing.T, l *Log) {
	m.batches, m.start = nil, l.LogStartOffset()
	m.maxStart = m.start
	for _, v := range contents(t, l) {
		m.add(appended{base: v.BaseOffset(), next: v.NextOffset(), bytes: v, acked: true, durable: true})
	}
}
