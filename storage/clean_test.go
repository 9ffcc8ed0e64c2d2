package storage

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage/segment"
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

// TestOnlyAnAppendRolls waits long after segment.ms and max.compaction.lag.ms: as in
// Apache Kafka 4.4, the active segment stays as it is until another record comes.
func TestOnlyAnAppendRolls(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	cfg := compactConfig()
	cfg.SegmentMs, cfg.MaxCompactionLagMs = 3000, 3000
	l := w.compactedLog(cfg)
	w.put(l, "k", "1")
	w.put(l, "k", "2")
	for range 20 {
		w.tick()
	}
	w.store.RunRetention()
	if state, ok := l.Compaction(); !ok || l.Segments() != 1 || state.CleanedTo != 0 || state.ActiveBytes == 0 {
		t.Fatalf("%d segments, %+v", l.Segments(), state)
	}
	w.put(l, "other", "3")
	w.tick()
	if got := w.records(l); got != "1:k=2 2:other=3" {
		t.Errorf("after one more record: %s", got)
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

// A log that nobody uses after a start is cleaned all the same, by the cleaner's first
// look; one that is empty is not opened for that.
func TestIdleLogsAreCleanedAfterAStart(t *testing.T) {
	w := newCleaningWorld(t)
	w.cfg.RetentionCheck = -1
	w.mustOpen()
	empty := TopicPartition{Topic: testTopic.Topic, Partition: 1}
	must(w.store.OpenLog(empty, testID, compactConfig()))
	w.fill(w.compactedLog(compactConfig()), 50)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	l, other := w.compactedLog(compactConfig()), must(w.store.OpenLog(empty, testID, compactConfig()))
	if l.loaded.Load() || other.loaded.Load() {
		t.Fatal("a clean start has loaded a log")
	}
	w.tick()
	if base := active(l.list()).BaseOffset(); l.cleanedTo.Load() != base || base == 0 {
		t.Errorf("cleaned to %d of %d", l.cleanedTo.Load(), base)
	}
	if other.loaded.Load() {
		t.Error("an empty log was loaded")
	}
}

func TestCleanerSleepsWithoutCompactedLogs(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	before := w.clock.Pending()
	l := w.log()
	if w.clock.Pending() != before {
		t.Fatal("a log that is only deleted woke the cleaner")
	}
	l.Reconfigure(compactConfig())
	if w.clock.Pending() != before+1 {
		t.Fatal("the cleaner sleeps on")
	}
	l.Reconfigure(testLogConfig())
	w.tick()
	if w.clock.Pending() != before {
		t.Fatal("the cleaner stays awake")
	}
	w.close()
}

// TestCleaningIsDue is about the settings that say when a log is cleaned.
func TestCleaningIsDue(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	cfg := compactConfig()
	cfg.MinCompactionLagMs = 60_000
	l := w.compactedLog(cfg)
	w.fill(l, 30)
	w.tick()
	if l.cleanedTo.Load() >= 0 {
		t.Fatal("cleaned what is too young")
	}
	w.clock.Advance(61 * time.Second)
	w.settle()
	cleaned := l.cleanedTo.Load()
	if cleaned < 0 {
		t.Fatal("not cleaned once it was old enough")
	}
	// Hardly dirty, but overdue.
	cfg = compactConfig()
	cfg.MinCleanableRatio = 1
	l.Reconfigure(cfg)
	w.fill(l, 30)
	w.tick()
	if l.cleanedTo.Load() != cleaned {
		t.Fatal("cleaned although it is not dirty enough")
	}
	cfg.MaxCompactionLagMs = 5000
	l.Reconfigure(cfg)
	w.clock.Advance(5 * time.Second)
	w.settle()
	if l.cleanedTo.Load() == cleaned {
		t.Fatal("not cleaned although max.compaction.lag.ms has passed")
	}
	w.close()
}

func TestSegmentRollsForCompaction(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	cfg := compactConfig()
	cfg.MaxCompactionLagMs = 5000
	l := w.compactedLog(cfg)
	w.put(l, "a", "1")
	w.clock.Advance(5001 * time.Millisecond)
	w.put(l, "b", "1")
	if l.Segments() != 2 {
		t.Fatalf("%d segments: the first record can't be compacted in time", l.Segments())
	}
	w.close()
}

// TestCleaningStopsAtTheHighWatermark: what may yet be cut is not cleaned.
func TestCleaningStopsAtTheHighWatermark(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	w.fill(l, 50)
	second := l.list()[1].BaseOffset()
	l.SetHighWatermark(second + 1)
	w.tick()
	if l.cleanedTo.Load() != second {
		t.Fatalf("cleaned to %d, not %d", l.cleanedTo.Load(), second)
	}
	w.close()
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

// TestUncleanable has a log with damage in it; others are cleaned all the same.
func TestUncleanable(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	other, err := w.store.OpenLog(TopicPartition{"other", 0}, TopicID{9}, compactConfig())
	if err != nil {
		t.Fatal(err)
	}
	w.fill(l, 30)
	w.fill(other, 30)
	w.damage("/data/orders-0/"+segment.FileName(0, segment.LogSuffix), 100)
	w.tick()
	state, ok := l.Compaction()
	if !ok || state.Err == nil || !strings.Contains(state.Err.Error(), "damaged at byte 0") {
		t.Fatalf("%+v, %v", state, ok)
	}
	if l.cleanedTo.Load() >= 0 || other.cleanedTo.Load() < 0 || l.Err() != nil {
		t.Fatalf("cleaned to %d and %d", l.cleanedTo.Load(), other.cleanedTo.Load())
	}
	if n := w.store.cleaner.uncleanableBytes(); n < 1000 || len(w.store.cleaner.uncleanable()) != 1 {
		t.Fatalf("%v bytes are uncleanable", n)
	}
	// It is forgotten with the log.
	if err := w.store.Delete(testTopic); err != nil {
		t.Fatal(err)
	}
	w.tick()
	if len(w.store.cleaner.uncleanable()) != 0 {
		t.Fatal("a deleted log is still uncleanable")
	}
	w.close()
}

// damage flips a bit of a file.
func (w *world) damage(name string, at int64) {
	w.t.Helper()
	f, err := w.fs.OpenFile(name, 2, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		w.t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil {
		w.t.Fatal(err)
	}
}

// TestCleaningWithoutRoom leaves a part of the reserve free, and no files. A disk
// that is too full for appends is cleaned.
func TestCleaningWithoutRoom(t *testing.T) {
	const reserve = 40_000
	w := newCleaningWorld(t)
	w.cfg.ReserveBytes = reserve
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	w.fill(l, 50)
	used := w.used()
	w.fs.SetCapacity(used + reserve/growFrom + 500)
	w.tick()
	if l.cleanedTo.Load() >= 0 || len(w.names(segment.CleanedSuffix)) > 0 || l.Err() != nil {
		t.Fatalf("cleaned to %d, files %v", l.cleanedTo.Load(), w.names(segment.CleanedSuffix))
	}
	w.fs.SetCapacity(used + reserve)
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); !errors.Is(err, ErrOffline) {
		t.Fatalf("append to a full disk: %v", err)
	}
	w.tick()
	if l.cleanedTo.Load() < 0 {
		t.Fatal("not cleaned once there was room")
	}
	w.close()
}

// used is what the files take of the disk.
func (w *world) used() uint64 {
	w.t.Helper()
	w.fs.SetCapacity(1 << 40)
	free, total, err := w.fs.Usage("/data")
	if err != nil {
		w.t.Fatal(err)
	}
	return total - free
}

// TestCleaningFails has every operation of a cleaning fail once. The log stays, or
// comes back, with the same records, and is cleaned in the end.
func TestCleaningFails(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := int64(1); ; n++ {
			w := newCleaningWorld(t)
			w.mustOpen()
			l := w.compactedLog(compactConfig())
			w.fill(l, 40)
			want := newest(w.records(l))
			w.fs.FailAt(n, cause)
			w.tick()
			done := l.cleanedTo.Load() >= 0 && l.Err() == nil
			w.fs.SetFault(nil)
			w.clock.Advance(5 * time.Second)
			w.settle()
			w.clock.Advance(5 * time.Second)
			if err := l.Err(); err != nil {
				t.Fatalf("operation %d, %v: the log stays offline: %v", n, cause, err)
			}
			if got := newest(w.records(l)); got != want {
				t.Fatalf("operation %d, %v: the newest records are %s, not %s", n, cause, got, want)
			}
			if names := w.names(segment.SwapSuffix); len(names) > 0 {
				t.Fatalf("operation %d, %v: left %v", n, cause, names)
			}
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			if done && n > 30 {
				break
			}
			if n > 500 {
				t.Fatal("the cleaning never ends")
			}
		}
	}
}

// newest are the newest records of all keys.
func newest(records string) string {
	m := map[string]string{}
	for _, r := range strings.Fields(records) {
		offset, rest, _ := strings.Cut(r, ":")
		key, _, _ := strings.Cut(rest, "=")
		m[key] = offset + ":" + rest
	}
	return fmt.Sprint(m)
}

// TestCleaningIsAbandoned has the log cut, deleted or reconfigured while it is
// cleaned.
func TestCleaningIsAbandoned(t *testing.T) {
	for name, disturb := range map[string]func(*world, *Log){
		"truncated":    func(w *world, l *Log) { must(0, l.TruncateTo(5)) },
		"restarted":    func(w *world, l *Log) { must(0, l.TruncateFullyAndStartAt(100)) },
		"reconfigured": func(w *world, l *Log) { l.Reconfigure(testLogConfig()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newCleaningWorld(t)
			w.mustOpen()
			l := w.compactedLog(compactConfig())
			w.fill(l, 50)
			p := must(l.compactionPlan())
			worker := w.store.cleaner.newWorker()
			done := false
			worker.onPace = func() {
				if !done {
					done = true
					disturb(w, l)
				}
			}
			if _, err := l.clean(worker, p); !errors.Is(err, errAbandoned) || !done {
				t.Fatalf("cleaned: %v", err)
			}
			if l.cleanedTo.Load() >= 0 || len(w.names(segment.CleanedSuffix)) > 0 || l.Err() != nil {
				t.Fatalf("cleaned to %d, files %v, %v", l.cleanedTo.Load(), w.names(segment.CleanedSuffix), l.Err())
			}
			contents(t, l)
			w.close()
		})
	}
}

// TestTruncationForgetsCleaning: offsets that are used again are dirty.
func TestTruncationForgetsCleaning(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	w.fill(l, 50)
	w.tick()
	if err := l.TruncateTo(20); err != nil {
		t.Fatal(err)
	}
	if l.cleanedTo.Load() > 20 {
		t.Fatalf("clean up to %d", l.cleanedTo.Load())
	}
	w.settle()
	if got := w.read("cleaner-offset-checkpoint"); got != "0\n1\norders 0 20\n" {
		t.Fatalf("the checkpoint is %q", got)
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
