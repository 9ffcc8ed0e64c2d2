package storage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

func compactConfig() LogConfig {
	cfg := testLogConfig()
	cfg.Compact, cfg.Delete = true, false
	cfg.MinCleanableRatio = 0.5
	cfg.DeleteRetentionMs = 1000
	return cfg
}

// newCleaningWorld has a cleaner that looks every second.
func newCleaningWorld(t *testing.T) *world {
	w := newWorld(t, 1)
	w.cfg.Cleaner = CleanerConfig{Threads: 1, DedupeBufferBytes: 1 << 20, IOBufferBytes: 16 << 10, Backoff: time.Second}
	return w
}

func (w *world) compactedLog(cfg LogConfig) *Log {
	w.t.Helper()
	l, err := w.store.OpenLog(testTopic, testID, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// put appends a record; a value of "" is a tombstone.
func (w *world) put(l *Log, key, value string) {
	w.t.Helper()
	b := batch.NewBuilder(batch.BuilderOptions{})
	var v []byte
	if value != "" {
		v = []byte(value)
	}
	b.Add(w.clock.Now().UnixMilli(), []byte(key), v)
	if _, err := l.Append(AppendRequest{Batches: b.Build()}); err != nil {
		w.t.Fatal(err)
	}
	l.SetHighWatermark(l.LogEndOffset())
	w.settle()
}

// tick lets the cleaner look once.
func (w *world) tick() {
	w.clock.Advance(time.Second)
	w.settle()
}

// records prints all records of a log.
func (w *world) records(l *Log) string {
	w.t.Helper()
	var out []string
	for _, v := range contents(w.t, l) {
		err := batch.Records(v, 0, func(r batch.Record) error {
			out = append(out, fmt.Sprintf("%d:%s=%s", r.Offset, r.Key, r.Value))
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return strings.Join(out, " ")
}

// fill puts n records of a few keys with values of 100 bytes: about ten to a
// segment.
func (w *world) fill(l *Log, n int) {
	for i := range n {
		w.put(l, fmt.Sprint("k", i%3), strings.Repeat("v", 100))
	}
}

func TestCleaning(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	w.fill(l, 50)
	end, size := l.LogEndOffset(), must(l.SizeBytes())
	base := active(l.list()).BaseOffset()
	w.tick()
	if l.cleanedTo.Load() != base || l.LogEndOffset() != end || l.LogStartOffset() != 0 {
		t.Fatalf("cleaned to %d of %d, [%d, %d)", l.cleanedTo.Load(), base, l.LogStartOffset(), l.LogEndOffset())
	}
	if after := must(l.SizeBytes()); after > size/3 {
		t.Fatalf("%d of %d bytes are left", after, size)
	}
	// Reads begin anywhere in what is gone.
	for offset := range end {
		r, err := l.Read(ReadRequest{Offset: offset, Limit: end, MaxBytes: 100, AtLeastOne: true})
		if err != nil || len(r.Data) == 0 || batch.View(r.Data).LastOffset() < offset {
			t.Fatalf("read at %d: %d bytes, %v", offset, len(r.Data), err)
		}
	}
	before := w.records(l)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if got := w.read("cleaner-offset-checkpoint"); got != fmt.Sprintf("0\n1\norders 0 %d\n", base) {
		t.Fatalf("the checkpoint is %q", got)
	}
	w.mustOpen()
	l = w.compactedLog(compactConfig())
	if got := w.records(l); got != before || l.LogEndOffset() != end {
		t.Fatalf("reopened: %s", got)
	}
	state, ok := l.Compaction()
	if !ok || state.CleanedTo != base || state.DirtyBytes != 0 || state.Err != nil {
		t.Fatalf("%+v, %v", state, ok)
	}
	if want := active(l.list()).SizeBytes(); state.ActiveBytes != want || want == 0 {
		t.Fatalf("%d bytes in the active segment, not %d", state.ActiveBytes, want)
	}
	w.fill(l, 30)
	if state, _ := l.Compaction(); state.CleanedTo != base || state.DirtyRatio() < 0.5 {
		t.Fatalf("%+v", state)
	}
	segments := l.Segments()
	w.tick()
	if state, _ := l.Compaction(); state.CleanedTo <= base || state.DirtyBytes != 0 {
		t.Fatalf("%+v", state)
	}
	if l.Segments() > segments-3 {
		t.Fatalf("%d of %d segments are left: the small ones did not become one", l.Segments(), segments)
	}
	w.close()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// read is a file of the data directory.
func (w *world) read(name string) string {
	w.t.Helper()
	b, err := readFile(w.fs, "/data/"+name)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// names are the files of the partition's folder that contain part.
func (w *world) names(part string) (names []string) {
	w.t.Helper()
	entries, err := w.fs.ReadDir("/data/" + testTopic.String())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), part) {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestTombstonesGo runs the clock past delete.retention.ms.
func TestTombstonesGo(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	w.put(l, "gone", "1")
	w.put(l, "gone", "")
	w.fill(l, 30)
	w.tick()
	if got := w.records(l); !strings.HasPrefix(got, "1:gone= ") {
		t.Fatal(got)
	}
	w.clock.Advance(900 * time.Millisecond)
	w.fill(l, 30)
	w.tick()
	if got := w.records(l); strings.Contains(got, "gone") {
		t.Fatal(got)
	}
	w.close()
}

// TestReadersOfReplacedSegments reads on in segments that were replaced meanwhile.
func TestReadersOfReplacedSegments(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	cfg := compactConfig()
	cfg.SegmentBytes = 1 << 20
	l := w.compactedLog(cfg)
	for i := range 30 {
		w.put(l, fmt.Sprint("k", i%3), strings.Repeat("v", 100_000))
	}
	old := l.list()
	r, err := l.Read(ReadRequest{Offset: 0, Limit: l.LogEndOffset(), MaxBytes: 500_000})
	if err != nil || r.Region == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	w.tick()
	if l.list()[0] == old[0] {
		t.Fatal("nothing was cleaned")
	}
	buf := make([]byte, r.Region.Len())
	if _, err := r.Region.ReadAt(buf, 0); err != nil {
		t.Fatal(err)
	}
	if v := batch.View(buf); v.BaseOffset() != 0 || v.SizeBytes() > len(buf) || v[:v.SizeBytes()].ComputeCRC() != v.CRC() {
		t.Fatal("the region has other bytes")
	}
	r.Region.Release()
	// Whoever has the old list finds out, and the log reads on in the new one.
	if _, err := old[0].Read(0, old[0].SizeBytes(), 100, true); !gone(err) {
		t.Fatalf("a read of a replaced segment: %v", err)
	}
	w.close()
}

// TestCompactAndDelete has both policies.
func TestCompactAndDelete(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	cfg := compactConfig()
	cfg.Delete, cfg.RetentionMs = true, 10_000
	l := w.compactedLog(cfg)
	w.fill(l, 50)
	w.tick()
	if l.cleanedTo.Load() < 0 || l.LogStartOffset() != 0 {
		t.Fatalf("cleaned to %d, start %d", l.cleanedTo.Load(), l.LogStartOffset())
	}
	w.clock.Advance(11 * time.Second)
	w.settle()
	if l.LogStartOffset() != l.LogEndOffset() {
		t.Fatalf("the log starts at %d, not at its end %d", l.LogStartOffset(), l.LogEndOffset())
	}
	w.fill(l, 50)
	w.tick()
	if state, _ := l.Compaction(); state.DirtyBytes != 0 || state.CleanedTo < 50 {
		t.Fatalf("%+v", state)
	}
	w.close()
}

// TestTimesOfCleanedSegments searches by time where batches were left without
// records: their times are nobody's.
func TestTimesOfCleanedSegments(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	for i := range 30 {
		b := makeBatch(int64(1000*(i+1)), "v", 1, stamp(1, 0, int32(i)))
		if i > 20 {
			b = makeBatch(int64(1000*(i-20)), strings.Repeat("w", 100), 1, nil)
		}
		must(l.Append(AppendRequest{Batches: b}))
		l.SetHighWatermark(l.LogEndOffset())
		w.settle()
	}
	w.tick()
	check := func() {
		t.Helper()
		empty := 0
		for _, v := range contents(t, l) {
			if v.NumRecords() == 0 && v.HasProducerID() {
				empty++
			}
		}
		found, ok, err := l.MaxTimestamp()
		if empty != 1 || err != nil || !ok || found.TimestampMs != 9000 || found.Offset != 29 {
			t.Fatalf("%d empty batches; the newest is %+v, %v, %v", empty, found, ok, err)
		}
		if found, ok, err := l.OffsetForTimestamp(9001); ok || err != nil {
			t.Fatalf("after it: %+v, %v", found, err)
		}
	}
	check()
	// From rebuilt indexes as well.
	mustDo(t, w.close())
	for _, name := range append(w.names(".index"), w.names(".timeindex")...) {
		mustDo(t, w.fs.Remove("/data/orders-0/"+name))
	}
	w.mustOpen()
	l = w.compactedLog(compactConfig())
	check()
	w.close()
}
