package storage

import (
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

func osStore(t *testing.T, dir string, cfg StoreConfig) *Store {
	t.Helper()
	env := Env{FS: vfs.OS(), Clock: clock.Real(), Logger: telemetry.Discard(), Metrics: telemetry.NewRegistry(), Rand: rand.Uint64}
	s, err := Open(env, dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := writeFile(w.fs, name, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

func TestDirectoryInUse(t *testing.T) {
	w, _ := opened(t)
	if err := newWorldOn(w).open(); !errors.Is(err, ErrLocked) {
		t.Fatalf("a second store: %v", err)
	}
}

// newWorldOn is another process on the same disk.
func newWorldOn(w *world) *world {
	other := newWorld(w.t, 2)
	other.fs, other.clock = w.fs, w.clock
	return other
}

func TestNewerFormat(t *testing.T) {
	w := newWorld(t, 1)
	if err := w.fs.MkdirAll("/data", 0o755); err != nil {
		t.Fatal(err)
	}
	w.write("/data/meta.properties", "version=2\ncluster.id=x\n")
	if err := w.open(); !errors.Is(err, ErrNewerFormat) {
		t.Fatalf("version 2: %v", err)
	}
	w.write("/data/meta.properties", "version=1\ncluster.id=x\nnode.id=3\nsome.thing=kept\n")
	w.mustOpen() // and the refusal left no lock behind
	m, err := w.store.MetaProperties()
	if err != nil || m.NodeID != 3 || m.ClusterID != "x" || m.Others["some.thing"] != "kept" {
		t.Fatalf("%+v, %v", m, err)
	}
	w.abandon()
}

func TestBrokerEpochOfTheLastCleanStop(t *testing.T) {
	w, _ := opened(t)
	w.store.SetBrokerEpoch(42)
	w.reopen()
	if got := w.store.PreviousBrokerEpoch(); got != 42 || !w.store.CleanStart() {
		t.Fatalf("broker epoch %d, clean %v", got, w.store.CleanStart())
	}
	w.abandon()
	w.fs.Kill()
	w.mustOpen()
	if got := w.store.PreviousBrokerEpoch(); got != -1 || w.store.CleanStart() {
		t.Fatalf("after a crash: broker epoch %d, clean %v", got, w.store.CleanStart())
	}
}

// TestCleanStartReadsNothing opens logs after a clean stop and asks for their
// offsets: nothing but the topic ids is read.
func TestCleanStartReadsNothing(t *testing.T) {
	w, l := opened(t)
	for range 30 {
		put(t, l, 1, 1)
		w.settle()
	}
	if _, err := l.DeleteRecordsTo(3); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	var read []string
	w.fs.SetFault(func(op vfs.Op) error {
		read = append(read, filepath.Base(op.Name))
		return nil
	})
	l = w.log()
	if l.LogStartOffset() != 3 || l.LogEndOffset() != 30 || l.HighWatermark() != 30 {
		t.Fatalf("[%d, %d), high watermark %d", l.LogStartOffset(), l.LogEndOffset(), l.HighWatermark())
	}
	if err := l.AssignEpoch(5); err != nil {
		t.Fatal(err)
	}
	for _, name := range read {
		if name != partitionMetadataFile {
			t.Fatalf("operations on %v", read)
		}
	}
	put(t, l, 1, 1)
	if l.LatestEpoch() != 5 || l.LogEndOffset() != 31 {
		t.Fatalf("epoch %d, end %d", l.LatestEpoch(), l.LogEndOffset())
	}
}

func TestDelete(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 1)
	if err := w.store.Delete(testTopic); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); !errors.Is(err, ErrClosed) {
		t.Fatalf("an append to a deleted log: %v", err)
	}
	if _, err := l.Read(ReadRequest{Offset: 0, Limit: 1, MaxBytes: 1}); err == nil {
		t.Fatal("a read of a deleted log")
	}
	l.WhenFlushed(1, func(err error) {
		if err == nil {
			t.Error("a deleted log was flushed")
		}
	})
	w.settle()
	again, err := w.store.OpenLog(testTopic, TopicID{7}, testLogConfig())
	if err != nil || again.LogEndOffset() != 0 {
		t.Fatalf("the re-created topic inherits: %v", err)
	}
	kinds := func() (n map[folderKind]int) {
		n = map[folderKind]int{}
		entries, err := w.fs.ReadDir("/data")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if kind, _ := parseFolder(e.Name()); e.IsDir() {
				n[kind]++
			}
		}
		return n
	}
	if n := kinds(); n[folderDeleted] != 1 || n[folderPartition] != 1 {
		t.Fatalf("folders %v", n)
	}
	w.clock.Advance(3 * time.Second)
	if n := kinds(); n[folderDeleted] != 0 {
		t.Fatalf("folders %v after file.delete.delay.ms", n)
	}
	// What a stop leaves is removed by the next start.
	if err := w.store.Delete(testTopic); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	w.clock.Advance(2 * time.Second)
	if n := kinds(); n[folderDeleted] != 0 {
		t.Fatalf("folders %v after a restart", n)
	}
}

func TestFoldersOfOtherTopics(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 1)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	strays := w.store.Strays(func(_ TopicPartition, id TopicID) bool { return id != testID })
	if len(strays) != 1 || strays[0].TopicID != testID || strays[0].TopicPartition != testTopic {
		t.Fatalf("strays %+v", strays)
	}
	other, err := w.store.OpenLog(testTopic, TopicID{9}, testLogConfig())
	if err != nil || other.LogEndOffset() != 0 {
		t.Fatalf("a topic of the same name inherits: %v", err)
	}
	entries, err := w.fs.ReadDir("/data")
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	for _, e := range entries {
		if kind, _ := parseFolder(e.Name()); kind == folderStray {
			kept = true
		}
	}
	if !kept {
		t.Fatal("the other topic's folder is gone")
	}
	if _, err := w.store.OpenLog(testTopic, testID, testLogConfig()); err == nil {
		t.Fatal("one log was opened for two topics")
	}
}

func TestDiscardStray(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 1)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	for _, stray := range w.store.Strays(func(TopicPartition, TopicID) bool { return false }) {
		if err := w.store.DiscardStray(stray); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Advance(2 * time.Second)
	if _, err := w.fs.Stat("/data/orders-0"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the folder is still there: %v", err)
	}
}

// TestDamagedFiles damages one file after a clean stop: the log opens, with all
// its records where they are not what was damaged.
func TestDamagedFiles(t *testing.T) {
	for name, test := range map[string]struct {
		file    string
		content string // "" removes it
		end     int64
	}{
		"recovery points":    {"../recovery-point-offset-checkpoint", "0\n5\nxyz\n", 40},
		"high watermarks":    {"../replication-offset-checkpoint", "garbage", 40},
		"log starts":         {"../log-start-offset-checkpoint", "0\n1\n", 40},
		"epochs":             {"leader-epoch-checkpoint", "0\n1\n0", 40},
		"topic id":           {"partition.metadata", "", 40},
		"topic id, torn":     {"partition.metadata", "version: 0\ntop", 40},
		"producers":          {"00000000000000000040.snapshot", "torn", 40},
		"index gone":         {"00000000000000000016.index", "", 40},
		"index cut":          {"00000000000000000016.index", "12345", 40},
		"time index gone":    {"00000000000000000032.timeindex", "", 40},
		"clean mark":         {"../.kafka_cleanshutdown", "{", 40},
		"active log garbage": {"00000000000000000032.log", strings.Repeat("no batch at all ", 300), 32},
		"active log gone":    {"00000000000000000032.log", "", 32},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := opened(t)
			for i := range int32(40) {
				if _, err := l.Append(AppendRequest{Batches: makeBatch(1000+int64(i), "x", 1, stamp(1, 0, i))}); err != nil {
					t.Fatal(err)
				}
				l.SetHighWatermark(int64(i) + 1)
				w.settle()
			}
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(l.Dir(), test.file)
			if _, err := w.fs.Stat(path); err != nil {
				t.Fatalf("the test damages a file that is not there: %v", err)
			}
			if test.content == "" {
				if err := w.fs.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				w.write(path, test.content)
			}
			w.mustOpen()
			l = w.log()
			w.settle()
			if _, err := l.SizeBytes(); err != nil {
				t.Fatal(err)
			}
			all := contents(t, l)
			if got := l.LogEndOffset(); got != test.end || int64(len(all)) != test.end {
				t.Fatalf("%d batches, the log ends at %d: %v", len(all), got, l.Err())
			}
			if l.LatestEpoch() != 0 {
				t.Fatalf("the leader epoch is %d", l.LatestEpoch())
			}
			states, err := l.Producers()
			if err != nil || len(states) != 1 || int64(states[0].LastSequence) != test.end-1 {
				t.Fatalf("producers %+v, %v", states, err)
			}
		})
	}
}

// TestEmptyCheckpoints opens what Apache Kafka leaves when it dies before its first
// write of the checkpoints: none of them counts as damaged, and nothing is missing.
func TestEmptyCheckpoints(t *testing.T) {
	w, l := opened(t)
	for range 40 {
		put(t, l, 1, 1)
		w.settle()
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	files := []string{"../recovery-point-offset-checkpoint", "../replication-offset-checkpoint", "../log-start-offset-checkpoint", "leader-epoch-checkpoint"}
	for _, name := range files {
		w.write(filepath.Join(l.Dir(), name), "")
	}
	w.mustOpen()
	l = w.log()
	w.settle()
	if got := len(contents(t, l)); got != 40 || l.LatestEpoch() != 0 {
		t.Errorf("%d batches, leader epoch %d: %v", got, l.LatestEpoch(), l.Err())
	}
	for _, name := range files {
		if _, err := w.fs.Stat(filepath.Join(l.Dir(), name) + segment.CorruptSuffix); err == nil {
			t.Errorf("%s was set aside as damaged", name)
		}
	}
	w.close()
}

// TestRottenSegment damages an old, synced segment: the others are served, and
// reads of the damaged part say so.
func TestRottenSegment(t *testing.T) {
	w, l := opened(t)
	for range 40 {
		put(t, l, 1, 1)
		w.settle()
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(l.Dir(), segment.FileName(16, segment.LogSuffix)), strings.Repeat("rot", 300))
	w.mustOpen()
	l = w.log()
	for _, offset := range []int64{0, 33} {
		if r, err := l.Read(ReadRequest{Offset: offset, Limit: 40, MaxBytes: 1, AtLeastOne: true}); err != nil || len(r.Data) == 0 {
			t.Fatalf("offset %d beside the rot: %v", offset, err)
		}
	}
	if _, err := l.Read(ReadRequest{Offset: 17, Limit: 40, MaxBytes: 1, AtLeastOne: true}); protocol.Code(err) != kerr.CorruptMessage.Code {
		t.Fatalf("offset 17 in the rot: %v", err)
	}
	put(t, l, 1, 1)
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
}

// TestHoleIsSetAside damages an unsynced segment before the last one: what
// follows is kept beside the log, not served and not deleted.
func TestHoleIsSetAside(t *testing.T) {
	w, l := opened(t)
	for range 40 {
		put(t, l, 1, 1) // the flushes of the rolls never run
	}
	w.abandon()
	w.fs.Kill()
	path := filepath.Join(l.Dir(), segment.FileName(16, segment.LogSuffix))
	f, err := w.fs.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("rot"), 200); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	l = w.log()
	if got := l.LogEndOffset(); got != 18 {
		t.Fatalf("the log ends at %d", got)
	}
	entries, err := w.fs.ReadDir(l.Dir())
	if err != nil {
		t.Fatal(err)
	}
	aside := 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), segment.CorruptSuffix) {
			aside++
		}
	}
	if aside < 2 { // the tail of 16, and the segment 32
		t.Fatalf("%d files were set aside", aside)
	}
	if put(t, l, 1, 1) != 18 {
		t.Fatal("the log does not go on")
	}
}

// TestFailures takes the disk away from one partition: it is offline with the
// storage error, the other serves, and it comes back by itself with all that was
// acknowledged.
func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		kind  vfs.OpKind
		err   error
		reads bool // go on meanwhile
	}{
		"write fails": {vfs.OpWrite, syscall.EIO, false},
		"disk full":   {vfs.OpWrite, syscall.ENOSPC, true},
		"sync fails":  {vfs.OpSync, syscall.EIO, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := opened(t)
			var told []error
			w.store.env.OnOffline = func(_ TopicPartition, err error) { told = append(told, err) }
			other, err := w.store.OpenLog(TopicPartition{"other", 1}, TopicID{4}, testLogConfig())
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				put(t, l, 1, 1)
			}
			w.fs.SetFault(func(op vfs.Op) error {
				if op.Kind == test.kind && strings.HasPrefix(op.Name, l.Dir()+"/0") {
					return test.err
				}
				return nil
			})
			if test.kind == vfs.OpSync {
				l.WhenFlushed(5, func(err error) {
					if protocol.Code(err) != kerr.KafkaStorageError.Code {
						t.Errorf("a failed sync: %v", err)
					}
				})
				w.settle()
			}
			_, err = l.Append(AppendRequest{Batches: makeBatch(1, "lost", 1, nil)})
			if !errors.Is(err, ErrOffline) {
				t.Fatalf("an append to a failing disk: %v", err)
			}
			if _, err := l.Read(ReadRequest{Offset: 0, Limit: 5, MaxBytes: 1, AtLeastOne: true}); (err == nil) != test.reads {
				t.Fatalf("a read meanwhile: %v", err)
			}
			put(t, other, 1, 1)
			w.settle()
			w.clock.Advance(2 * time.Second)
			if l.Err() == nil {
				t.Fatal("back while the disk still fails")
			}
			w.fs.SetFault(nil)
			w.clock.Advance(2 * time.Second)
			w.settle()
			if l.Err() != nil {
				t.Fatalf("not back: %v", l.Err())
			}
			if len(told) != 2 || told[0] == nil || told[1] != nil {
				t.Fatalf("told %v", told)
			}
			if put(t, l, 1, 1) != 5 {
				t.Fatal("an offset was lost or used twice")
			}
			if got := contents(t, l); len(got) != 6 {
				t.Fatalf("%d batches", len(got))
			}
			w.fs.Crash(3)
		})
	}
}

// TestPagesLostByAFailedSync is Linux's trap: after a failed fsync a second one
// succeeds without the data. The partition may only return when it has written
// them again.
func TestPagesLostByAFailedSync(t *testing.T) {
	for seed := range uint64(20) {
		w, l := opened(t)
		for range 5 {
			put(t, l, 1, 1)
		}
		w.fs.FailAt(1, syscall.EIO)
		l.WhenFlushed(5, func(error) {})
		w.settle()
		w.clock.Advance(2 * time.Second)
		flushed := false
		l.WhenFlushed(5, func(err error) { flushed = err == nil })
		w.settle()
		if !flushed {
			t.Fatalf("not back: %v", l.Err())
		}
		w.abandon()
		w.fs.Crash(seed)
		w.mustOpen()
		if got := contents(t, w.log()); len(got) != 5 {
			t.Fatalf("seed %d: %d of 5 batches that were synced in the end", seed, len(got))
		}
	}
}

func TestPressure(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 1)
	if w.store.Pressure() {
		t.Fatal("pressure without a slow write")
	}
	w.fs.SetFault(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			w.slow(3 * time.Millisecond)
		}
		return nil
	})
	put(t, l, 1, 1)
	w.fs.SetFault(nil)
	if !w.store.Pressure() {
		t.Fatal("no pressure after a write of 3 ms")
	}
	// Somebody corrects the time meanwhile.
	w.clock.Step(-3 * time.Hour)
	if !w.store.Pressure() {
		t.Fatal("the pressure is gone with the old time")
	}
	w.clock.Advance(pressureFor)
	if w.store.Pressure() {
		t.Fatal("pressure never ends")
	}
}

// TestFlushMsWhenTheTimeIsSet: flush.ms counts the time that passes, whatever the
// system's time is set to.
func TestFlushMsWhenTheTimeIsSet(t *testing.T) {
	w, l := opened(t)
	cfg := l.Config()
	cfg.FlushMs = 5000
	l.Reconfigure(cfg)
	put(t, l, 1, 1)
	w.clock.Step(-3 * time.Hour)
	w.clock.Advance(4 * time.Second)
	if w.settle(); l.unflushed.Load() == 0 {
		t.Fatal("flushed too early")
	}
	w.clock.Advance(2 * time.Second)
	if w.settle(); l.unflushed.Load() != 0 {
		t.Fatal("not flushed 6 s after the append, with flush.ms 5 s")
	}
}

// slow lets time pass inside an operation.
func (w *world) slow(d time.Duration) { w.clock.Advance(d) }

func TestTryAppendDoesNotWait(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 1)
	l.mu.Lock()
	_, err := l.TryAppend(AppendRequest{Batches: makeBatch(1, "x", 1, nil)})
	l.mu.Unlock()
	if !errors.Is(err, ErrBusy) {
		t.Fatalf("the log is in use: %v", err)
	}
	if _, err := l.TryAppend(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); err != nil {
		t.Fatal(err)
	}
	l = w.reopen()
	if _, err := l.TryAppend(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); !errors.Is(err, ErrBusy) {
		t.Fatalf("the log is not loaded: %v", err)
	}
}

// TestFlushBehind keeps the unsynced bytes near the bound, so that a recovery
// has little to check.
func TestFlushBehind(t *testing.T) {
	w, l := opened(t)
	cfg := testLogConfig()
	cfg.SegmentBytes = 1 << 20
	l.Reconfigure(cfg)
	for range 300 {
		put(t, l, 1, 1)
		w.settle()
		if n := w.store.unflushed.Load(); n > w.cfg.FlushBehindBytes {
			t.Fatalf("%d bytes are past the recovery points", n)
		}
	}
	w.abandon()
	w.fs.Kill()
	checked := int64(0)
	w.logger = slog.New(slog.DiscardHandler)
	w.mustOpen()
	l = w.log()
	if l.LogEndOffset() != 300 {
		t.Fatalf("the log ends at %d", l.LogEndOffset())
	}
	if checked = w.store.unflushed.Load(); checked > w.cfg.FlushBehindBytes {
		t.Fatalf("the recovery checked %d bytes", checked)
	}
}

func TestFolderNames(t *testing.T) {
	for name, want := range map[string]TopicPartition{
		"a-0": {"a", 0}, "a-b.c_d-12": {"a-b.c_d", 12}, "-1-2": {"-1", 2},
		"a": {}, "-5": {}, "a-": {}, "a-x": {}, "a-01": {}, "a--1": {"a-", 1}, "a-99999999999": {},
	} {
		if tp, ok := ParseFolderName(name); tp != want || ok != (want != TopicPartition{}) {
			t.Errorf("%s: %v, %v", name, tp, ok)
		}
	}
	w, _ := opened(t)
	long := TopicPartition{strings.Repeat("t", 249), 123}
	for _, suffix := range []string{deleteSuffix, straySuffix} {
		name := w.store.uniqueFolder(long, suffix)
		kind, _ := parseFolder(name)
		if len(name) > maxFileName || kind == folderPartition || kind == folderOther {
			t.Errorf("%s: %d characters, kind %d", name, len(name), kind)
		}
	}
}

// TestUnchangedCheckpointsAreLeftAlone: an idle broker does not touch the disk,
// and what changed is written again, also after a failure.
func TestUnchangedCheckpointsAreLeftAlone(t *testing.T) {
	w, l := opened(t)
	l.SetHighWatermark(0)
	if err := w.store.writeCheckpoints(); err != nil {
		t.Fatal(err)
	}
	before := w.fs.Ops()
	if err := w.store.writeCheckpoints(); err != nil {
		t.Fatal(err)
	}
	if n := w.fs.Ops() - before; n != 0 {
		t.Fatalf("%d operations for checkpoints that had not changed", n)
	}
	put(t, l, 1, 3)
	l.SetHighWatermark(l.LogEndOffset())
	w.fs.FailAt(1, syscall.EIO)
	if err := w.store.writeCheckpoints(); err == nil {
		t.Fatal("the failed write was not reported")
	}
	if err := w.store.writeCheckpoints(); err != nil {
		t.Fatal(err)
	}
	if got := w.store.readCheckpoint(highWatermarkFile)[testTopic]; got != l.LogEndOffset() {
		t.Fatalf("the checkpoint has high watermark %d, want %d", got, l.LogEndOffset())
	}
}

// TestRemovedDirectory has the directory removed under the store, which must neither
// go on as if nothing had happened nor make it anew.
func TestRemovedDirectory(t *testing.T) {
	w, _ := opened(t)
	w.clock.Advance(healthEvery)
	w.settle()
	if w.store.removed() {
		t.Fatal("the directory is there")
	}
	if err := w.fs.RemoveAll("/data"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.OpenLog(TopicPartition{Topic: "new"}, testID, LogConfig{}); err == nil {
		t.Fatal("a new log in a directory that is gone")
	}
	if _, err := w.fs.Stat("/data"); err == nil {
		t.Fatal("the directory was made anew")
	}
	w, _ = opened(t)
	if err := w.fs.RemoveAll("/data"); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(healthEvery)
	w.settle()
	select {
	case <-w.store.Removed():
	default:
		t.Fatal("nobody was told")
	}
}

// TestReplacedDirectory has another broker's directory in the place of the store's,
// which must not write there, neither while it runs nor when it stops.
func TestReplacedDirectory(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 3)
	if err := w.store.writeCheckpoints(); err != nil {
		t.Fatal(err)
	}
	if err := w.fs.Rename("/data", "/moved"); err != nil {
		t.Fatal(err)
	}
	const others = "/data/" + lockFile
	if err := w.fs.MkdirAll("/data", 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := w.fs.OpenFile(others, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	put(t, l, 1, 1)
	w.clock.Advance(healthEvery)
	w.settle()
	if !w.store.removed() {
		t.Error("nobody was told")
	}
	w.store.checkpointRun()
	if err := w.close(); err == nil {
		t.Error("it stopped cleanly")
	}
	entries, err := w.fs.ReadDir("/data")
	if err != nil || len(entries) != 1 {
		t.Errorf("in the other's directory: %v, %v", entries, err)
	}
}

// TestFolderLeftByTwoStops crashes, starts and stops cleanly without opening the log:
// its indexes are still as the crash left them, and the start after that must not take
// them for whole.
func TestFolderLeftByTwoStops(t *testing.T) {
	w, l := opened(t)
	put(t, l, 5000, 3)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := w.store.writeCheckpoints(); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.abandon()
	w.fs.Kill()
	w.mustOpen()
	if w.store.CleanStart() {
		t.Fatal("the crash was not seen")
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	if !w.store.CleanStart() {
		t.Fatal("the stop was clean")
	}
	l = w.log()
	if found, ok, err := l.OffsetForTimestamp(5000); err != nil || !ok || found.Offset != 0 {
		t.Fatalf("the first record by its time: %+v, %v, %v", found, ok, err)
	}
	if found, ok, err := l.MaxTimestamp(); err != nil || !ok || found.TimestampMs < 5000 {
		t.Fatalf("the newest record: %+v, %v, %v", found, ok, err)
	}
}
