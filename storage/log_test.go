package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// put appends one batch of n records and moves the high watermark.
func put(t *testing.T, l *Log, timestampMs int64, n int) int64 {
	t.Helper()
	res, err := l.Append(AppendRequest{Batches: makeBatch(timestampMs, "x", n, nil), LeaderEpoch: max(l.LatestEpoch(), 0)})
	if err != nil {
		t.Fatal(err)
	}
	l.SetHighWatermark(res.LastOffset + 1)
	return res.FirstOffset
}

func opened(t *testing.T) (*world, *Log) {
	t.Helper()
	w := newWorld(t, 1)
	w.mustOpen()
	t.Cleanup(w.abandonIfOpen)
	return w, w.log()
}

// reopen stops cleanly and starts again.
func (w *world) reopen() *Log {
	w.t.Helper()
	if err := w.close(); err != nil {
		w.t.Fatal(err)
	}
	w.mustOpen()
	return w.log()
}

func TestAppendAssignsOffsetsAndEpochs(t *testing.T) {
	_, l := opened(t)
	two := append(bytes.Clone(makeBatch(1, "a", 2, nil)), makeBatch(2, "b", 3, nil)...)
	res, err := l.Append(AppendRequest{Batches: two, LeaderEpoch: 4})
	if err != nil || res.FirstOffset != 0 || res.LastOffset != 4 {
		t.Fatalf("%+v, %v", res, err)
	}
	all := contents(t, l)
	if len(all) != 2 || all[1].BaseOffset() != 2 || all[1].PartitionLeaderEpoch() != 4 {
		t.Fatal("offsets or epochs are not in the batches")
	}
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "c", 1, nil), LeaderEpoch: 3}); !errors.Is(err, ErrFencedEpoch) {
		t.Fatalf("an older leader: %v", err)
	}
	for name, b := range map[string][]byte{"empty": {}, "cut": two[:len(two)-1], "garbage": bytes.Repeat([]byte{7}, 100)} {
		if _, err := l.Append(AppendRequest{Batches: b, LeaderEpoch: 4}); protocol.Code(err) != kerr.CorruptMessage.Code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "large", 100, nil), LeaderEpoch: 4}); protocol.Code(err) != kerr.RecordListTooLarge.Code {
		t.Fatalf("larger than a segment: %v", err)
	}
	if l.LogEndOffset() != 5 {
		t.Fatalf("the log ends at %d", l.LogEndOffset())
	}
}

func TestReplicatedAppendKeepsOffsets(t *testing.T) {
	w, l := opened(t)
	at := func(offset int64, epoch int32) []byte {
		v := batch.View(makeBatch(1, "r", 2, nil))
		v.SetBaseOffset(offset)
		v.SetPartitionLeaderEpoch(epoch)
		return v
	}
	both := append(bytes.Clone(at(0, 1)), at(10, 3)...) // compaction left a gap
	if _, err := l.Append(AppendRequest{Batches: both, LeaderEpoch: 3, Replicated: true}); err != nil {
		t.Fatal(err)
	}
	if got := l.Epochs(); !slices.Equal(got, []EpochStart{{1, 0}, {3, 10}}) {
		t.Fatalf("epochs %v", got)
	}
	if _, err := l.Append(AppendRequest{Batches: at(11, 3), LeaderEpoch: 3, Replicated: true}); !errors.Is(err, ErrUnexpectedOffset) {
		t.Fatalf("an offset that was used: %v", err)
	}
	r, err := l.Read(ReadRequest{Offset: 5, Limit: 12, MaxBytes: 1, AtLeastOne: true})
	if err != nil || batch.View(r.Data).BaseOffset() != 10 {
		t.Fatalf("a read in the gap: %v", err)
	}
	// A gap of more than 31 bits needs a new segment.
	if _, err := l.Append(AppendRequest{Batches: at(math.MaxInt32+100, 3), LeaderEpoch: 3, Replicated: true}); err != nil {
		t.Fatal(err)
	}
	if n := l.Segments(); n != 2 {
		t.Fatalf("%d segments", n)
	}
	l = w.reopen()
	if got := l.LogEndOffset(); got != math.MaxInt32+102 {
		t.Fatalf("the log ends at %d after a restart", got)
	}
	if got := l.Epochs(); !slices.Equal(got, []EpochStart{{1, 0}, {3, 10}}) {
		t.Fatalf("epochs %v after a restart", got)
	}
}

func TestReadBounds(t *testing.T) {
	_, l := opened(t)
	for range 10 {
		put(t, l, 1, 2)
	}
	for _, offset := range []int64{-1, 21} {
		if _, err := l.Read(ReadRequest{Offset: offset, Limit: 20, MaxBytes: 100}); !errors.Is(err, ErrOffsetOutOfRange) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	for _, test := range []struct{ offset, limit, first, next int64 }{
		{0, 20, 0, 20}, {3, 20, 2, 20}, {0, 6, 0, 6}, {5, 6, 4, 6}, {6, 6, -1, -1}, {20, 20, -1, -1}, {8, 4, -1, -1}, {0, 100, 0, 20},
	} {
		var next, first int64 = -1, -1
		for offset := test.offset; ; offset = next {
			r, err := l.Read(ReadRequest{Offset: offset, Limit: test.limit, MaxBytes: 1 << 20, AtLeastOne: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Data) == 0 {
				break
			}
			for rest := r.Data; len(rest) > 0; {
				v, after, err := batch.Next(rest)
				if err != nil {
					t.Fatal(err)
				}
				if first < 0 {
					first = v.BaseOffset()
				}
				next, rest = v.NextOffset(), after
			}
		}
		if first != test.first || next != test.next {
			t.Errorf("[%d, %d): read [%d, %d), expected [%d, %d)", test.offset, test.limit, first, next, test.first, test.next)
		}
	}
}

func TestRolls(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*LogConfig)
		stepMs int64
		want   int
	}{
		"size":             {func(c *LogConfig) { c.SegmentBytes = 250 }, 0, 4},
		"time":             {func(c *LogConfig) { c.SegmentMs = 25 }, 10, 4},
		"index full":       {func(c *LogConfig) { c.IndexIntervalBytes, c.SegmentIndexBytes = 0, 48 }, 10, 3},
		"index too small":  {func(c *LogConfig) { c.IndexIntervalBytes, c.SegmentIndexBytes = 0, 4 }, 10, 10},
		"jitter":           {func(c *LogConfig) { c.SegmentMs, c.SegmentJitterMs = 25, 25 }, 10, 0},
		"nothing to do":    {func(c *LogConfig) { c.SegmentBytes = 1 << 20 }, 10, 1},
		"time, by clock":   {func(c *LogConfig) { c.SegmentMs = 25 }, -1, 4},
		"larger than ever": {func(c *LogConfig) { c.SegmentBytes = 1 << 40 }, 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := opened(t)
			cfg := testLogConfig()
			cfg.SegmentBytes = 1 << 20
			test.change(&cfg)
			l.Reconfigure(cfg)
			for i := range int64(10) {
				ts := 1000 + i*test.stepMs
				if test.stepMs < 0 {
					ts = -1
					w.clock.Step(-time.Hour) // nothing that the clock is set to counts
					w.clock.Advance(10 * time.Millisecond)
				}
				put(t, l, ts, 1)
				w.settle()
			}
			if n := l.Segments(); test.want > 0 && n != test.want || test.want == 0 && n < 3 {
				t.Fatalf("%d segments", n)
			}
			if got := contents(t, l); len(got) != 10 {
				t.Fatalf("%d batches", len(got))
			}
			w.reopen()
		})
	}
}

func TestTimestampSearchOverSegments(t *testing.T) {
	w, l := opened(t)
	for i := range int64(40) {
		put(t, l, 1000+i*10, 3) // 1000..1002, 1010..1012, ...
	}
	for range 2 {
		for _, test := range []struct{ ts, offset, found int64 }{
			{0, 0, 1000}, {1001, 1, 1001}, {1003, 3, 1010}, {1392, 119, 1392}, {1393, -1, -1},
		} {
			f, ok, err := l.OffsetForTimestamp(test.ts)
			if err != nil || ok != (test.offset >= 0) || ok && (f.Offset != test.offset || f.TimestampMs != test.found) {
				t.Fatalf("timestamp %d: %+v, %v, %v", test.ts, f, ok, err)
			}
		}
		if f, ok, err := l.MaxTimestamp(); err != nil || !ok || f.Offset != 119 || f.TimestampMs != 1392 || f.LeaderEpoch != 0 {
			t.Fatalf("max timestamp: %+v, %v, %v", f, ok, err)
		}
		l = w.reopen()
	}
	if _, err := l.DeleteRecordsTo(50); err != nil {
		t.Fatal(err)
	}
	if f, ok, err := l.OffsetForTimestamp(0); err != nil || !ok || f.Offset != 50 {
		t.Fatalf("after DeleteRecords: %+v, %v, %v", f, ok, err)
	}
}

func TestEpochs(t *testing.T) {
	e := epochs{{1, 0}, {3, 10}, {4, 20}}
	for _, test := range []struct {
		epoch, want int32
		end         int64
	}{{-1, -1, -1}, {0, 0, 0}, {1, 1, 10}, {2, 1, 10}, {3, 3, 20}, {4, 4, 33}, {5, -1, -1}} {
		if epoch, end := e.endOffset(test.epoch, 33); epoch != test.want || end != test.end {
			t.Errorf("end of epoch %d: %d, %d", test.epoch, epoch, end)
		}
	}
	for offset, want := range map[int64]int32{0: 1, 9: 1, 10: 3, 19: 3, 20: 4, 99: 4} {
		if got := e.at(offset); got != want {
			t.Errorf("epoch at %d: %d", offset, got)
		}
	}
	for _, test := range []struct {
		name string
		do   func(*epochs) bool
		want epochs
	}{
		{"assign newer", func(e *epochs) bool { return e.assign(6, 30) }, epochs{{1, 0}, {3, 10}, {4, 20}, {6, 30}}},
		{"assign the same", func(e *epochs) bool { return !e.assign(4, 30) }, epochs{{1, 0}, {3, 10}, {4, 20}}},
		{"assign at an older start", func(e *epochs) bool { return e.assign(6, 10) }, epochs{{1, 0}, {6, 10}}},
		{"assign an older epoch", func(e *epochs) bool { return e.assign(2, 30) }, epochs{{1, 0}, {2, 30}}},
		{"end in an epoch", func(e *epochs) bool { return e.truncateFromEnd(15) }, epochs{{1, 0}, {3, 10}}},
		{"end at a start", func(e *epochs) bool { return e.truncateFromEnd(10) }, epochs{{1, 0}}},
		{"end behind all", func(e *epochs) bool { return !e.truncateFromEnd(21) }, epochs{{1, 0}, {3, 10}, {4, 20}}},
		{"start in an epoch", func(e *epochs) bool { return e.truncateFromStart(15) }, epochs{{3, 15}, {4, 20}}},
		{"start at a start", func(e *epochs) bool { return e.truncateFromStart(20) }, epochs{{4, 20}}},
		{"start before all", func(e *epochs) bool { return !e.truncateFromStart(0) }, epochs{{1, 0}, {3, 10}, {4, 20}}},
	} {
		got := slices.Clone(e)
		if !test.do(&got) || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	if _, end := (epochs{}).endOffset(0, 5); end != NoOffset {
		t.Error("an empty log knows an epoch")
	}
}

func TestAssignEpochWithoutWriting(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 5)
	if err := l.AssignEpoch(7); err != nil {
		t.Fatal(err)
	}
	if err := l.AssignEpoch(6); !errors.Is(err, ErrFencedEpoch) {
		t.Fatalf("an older epoch: %v", err)
	}
	if epoch, end := l.EndOffsetForEpoch(0); epoch != 0 || end != 5 {
		t.Fatalf("epoch 0 ends at %d (%d)", end, epoch)
	}
	l = w.reopen()
	if l.LatestEpoch() != 7 {
		t.Fatalf("epoch %d after a restart", l.LatestEpoch())
	}
}

func TestRetention(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(*LogConfig)
		watermark int64
		start     int64
		segments  int
	}{
		"off":                   {func(c *LogConfig) {}, 40, 0, 3},
		"size":                  {func(c *LogConfig) { c.RetentionBytes = 1500 }, 40, 16, 2},
		"size 0 keeps nothing":  {func(c *LogConfig) { c.RetentionBytes = 0 }, 40, 40, 1},
		"time":                  {func(c *LogConfig) { c.RetentionMs = 50_000 }, 40, 16, 2},
		"time, everything":      {func(c *LogConfig) { c.RetentionMs = 1 }, 40, 40, 1},
		"below the watermark":   {func(c *LogConfig) { c.RetentionMs = 1 }, 30, 16, 2},
		"not with compact only": {func(c *LogConfig) { c.RetentionMs, c.Delete, c.Compact = 1, false, true }, 40, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := opened(t)
			now := w.clock.Now().UnixMilli()
			for i := range int64(40) { // sixteen batches a segment
				put(t, l, now-80_000+i*1000, 1)
				w.settle()
			}
			cfg := testLogConfig()
			test.change(&cfg)
			l.Reconfigure(cfg)
			l.SetHighWatermark(test.watermark)
			w.store.RunRetention()
			if l.LogStartOffset() != test.start || l.Segments() != test.segments || l.LogEndOffset() != 40 {
				t.Fatalf("start %d, end %d, %d segments", l.LogStartOffset(), l.LogEndOffset(), l.Segments())
			}
			w.clock.Advance(3 * time.Second)
			entries, err := w.fs.ReadDir(l.Dir())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if _, suffix, _ := segment.ParseFileName(e.Name()); len(suffix) > len(segment.SnapshotSuffix) && suffix != segment.TimeIndexSuffix {
					t.Errorf("%s was not removed after file.delete.delay.ms", e.Name())
				}
			}
			l = w.reopen()
			if l.LogStartOffset() != test.start || l.LogEndOffset() != 40 {
				t.Fatalf("after a restart: start %d, end %d", l.LogStartOffset(), l.LogEndOffset())
			}
			put(t, l, 1, 1)
		})
	}
}

func TestDeleteRecords(t *testing.T) {
	w, l := opened(t)
	for range 40 {
		put(t, l, 1, 1)
		w.settle()
	}
	l.SetHighWatermark(30)
	if _, err := l.DeleteRecordsTo(31); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Fatalf("above the high watermark: %v", err)
	}
	if start, err := l.DeleteRecordsTo(20); err != nil || start != 20 {
		t.Fatal(start, err)
	}
	if start, err := l.DeleteRecordsTo(3); err != nil || start != 20 {
		t.Fatal(start, err)
	}
	if _, err := l.Read(ReadRequest{Offset: 19, Limit: 40, MaxBytes: 1}); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Fatalf("a deleted record: %v", err)
	}
	// The answer is durable: a crash right after it changes nothing.
	w.abandon()
	w.fs.Kill()
	w.mustOpen()
	l = w.log()
	if l.LogStartOffset() != 20 {
		t.Fatalf("start %d after a crash", l.LogStartOffset())
	}
	w.store.RunRetention()
	if l.Segments() != 2 {
		t.Fatalf("%d segments: those below the start stay", l.Segments())
	}
}

func TestTruncateFully(t *testing.T) {
	w, l := opened(t)
	for range 30 {
		put(t, l, 1, 1)
		w.settle()
	}
	if err := l.TruncateFullyAndStartAt(100); err != nil {
		t.Fatal(err)
	}
	if l.LogStartOffset() != 100 || l.LogEndOffset() != 100 || l.LatestEpoch() != NoEpoch {
		t.Fatalf("[%d, %d), epoch %d", l.LogStartOffset(), l.LogEndOffset(), l.LatestEpoch())
	}
	if put(t, l, 1, 1) != 100 {
		t.Fatal("the log does not go on at 100")
	}
	l = w.reopen()
	if l.LogStartOffset() != 100 || l.LogEndOffset() != 101 {
		t.Fatalf("[%d, %d) after a restart", l.LogStartOffset(), l.LogEndOffset())
	}
}

func TestProducersSurvive(t *testing.T) {
	w, l := opened(t)
	first := makeBatch(w.clock.Now().UnixMilli(), "p", 2, stamp(5, 1, 0))
	for i := range 4 {
		if _, err := l.Append(AppendRequest{Batches: makeBatch(w.clock.Now().UnixMilli(), "p", 2, stamp(5, 1, int32(2*i)))}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(how string) {
		t.Helper()
		states, err := l.Producers()
		if err != nil || len(states) != 1 || states[0].LastSequence != 7 || states[0].ProducerEpoch != 1 {
			t.Fatalf("%s: %+v, %v", how, states, err)
		}
		res, err := l.Append(AppendRequest{Batches: bytes.Clone(first)})
		if err != nil || !res.Duplicate || res.FirstOffset != 0 || res.LastOffset != 1 {
			t.Fatalf("%s: the first of five sent again: %+v, %v", how, res, err)
		}
	}
	check("running")
	l = w.reopen()
	check("clean restart")
	w.abandon()
	w.fs.Kill()
	w.mustOpen()
	l = w.log()
	check("crash")
	w.clock.Advance(25 * time.Hour)
	w.store.RunRetention()
	if states, _ := l.Producers(); len(states) != 0 {
		t.Fatalf("a producer outlived producer.id.expiration.ms: %+v", states)
	}
}

func TestGroupCommit(t *testing.T) {
	w, l := opened(t)
	cfg := testLogConfig()
	cfg.FlushMessages, cfg.SegmentBytes = 1, 1<<20
	l.Reconfigure(cfg)
	put(t, l, 1, 1)
	l.WhenFlushed(1, func(error) {})
	w.settle() // names and folder are durable now
	syncs := 0
	w.fs.SetFault(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			syncs++
		}
		return nil
	})
	done := 0
	for i := range int64(10) {
		res, err := l.Append(AppendRequest{Batches: makeBatch(1, "g", 1, nil)})
		if err != nil || !res.FlushBeforeAck {
			t.Fatalf("%+v, %v", res, err)
		}
		l.WhenFlushed(res.LastOffset+1, func(err error) {
			if err != nil {
				t.Error(err)
			}
			done++
		})
		_ = i
	}
	w.settle()
	if done != 10 || syncs != 1 {
		t.Fatalf("%d were answered after %d syncs", done, syncs)
	}
	l.WhenFlushed(11, func(err error) { done++ })
	if done != 11 || syncs != 1 {
		t.Fatal("what was synced before is synced again")
	}
}

// TestReadersBesideAppender reads, searches and flushes while the log is
// written and rolls: the race detector and the checks of contents watch.
func TestReadersBesideAppender(t *testing.T) {
	dir := t.TempDir()
	s := osStore(t, dir, StoreConfig{FlushBehindBytes: 20_000, OpenFiles: 6})
	cfg := testLogConfig()
	cfg.SegmentBytes = 5000
	l, err := s.OpenLog(testTopic, testID, cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	run := func(f func() error) {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(); err != nil && !errors.Is(err, ErrOffsetOutOfRange) {
					t.Error(err)
					return
				}
			}
		})
	}
	run(func() error { _, err := readAll(l); return err })
	run(func() error {
		end := l.LogEndOffset()
		r, err := l.Read(ReadRequest{Offset: max(end-3, l.LogStartOffset()), Limit: end, MaxBytes: 10_000, AtLeastOne: true})
		for rest := r.Data; err == nil && len(rest) > 0; {
			var v batch.View
			if v, rest, err = batch.Next(rest); err == nil && v.NextOffset() > end {
				err = fmt.Errorf("offset %d was served past the limit %d", v.LastOffset(), end)
			}
		}
		return err
	})
	run(func() error { _, _, err := l.OffsetForTimestamp(1500); return err })
	run(func() error {
		done := make(chan error)
		go l.WhenFlushed(l.LogEndOffset(), func(err error) { done <- err })
		return <-done
	})
	run(func() error { s.RunRetention(); return s.writeCheckpoints() })
	for i := range 1500 {
		res, err := l.Append(AppendRequest{Batches: makeBatch(int64(1000+i), "c", 1, stamp(1, 0, int32(i)))})
		if err != nil {
			t.Fatal(err)
		}
		l.SetHighWatermark(res.LastOffset + 1)
		if i == 700 {
			cfg.RetentionBytes = 30_000
			l.Reconfigure(cfg)
		}
	}
	close(stop)
	readers.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = osStore(t, dir, StoreConfig{})
	l, err = s.OpenLog(testTopic, testID, cfg)
	if err != nil || l.LogEndOffset() != 1500 {
		t.Fatalf("the log ends at %d: %v", l.LogEndOffset(), err)
	}
	if got := contents(t, l); got[len(got)-1].BaseSequence() != 1499 {
		t.Fatal("the last batch is another")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLargeReadIsARegion(t *testing.T) {
	s := osStore(t, t.TempDir(), StoreConfig{})
	l, err := s.OpenLog(testTopic, testID, LogConfig{IndexIntervalBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := l.Append(AppendRequest{Batches: makeBatch(1, fmt.Sprintf("%0200d", 1), 50, nil)}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := l.Read(ReadRequest{Offset: 70, Limit: 4000, MaxBytes: 1 << 20, AtLeastOne: true})
	if err != nil || r.Region == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	got := make([]byte, r.Region.Len())
	if _, err := r.Region.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	if m := r.Region.Bytes(); m != nil && !bytes.Equal(m, got) {
		t.Fatal("the map differs from the file")
	}
	// It ends where the limit is, at a whole batch: that is less than MaxBytes.
	offset := int64(50)
	for len(got) > 0 {
		v, rest, err := batch.Next(got)
		if err != nil || v.BaseOffset() != offset {
			t.Fatalf("batch at %d: %v", offset, err)
		}
		offset, got = v.NextOffset(), rest
	}
	if offset != 4000 {
		t.Fatalf("the region ends at offset %d", offset)
	}
	r.Region.Release()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
