package storage

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
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

// TestStopWithALogOffline stops while one log is offline: that stop is not clean, but
// the others, which were flushed, have nothing to recover.
func TestStopWithALogOffline(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 3)
	other := TopicPartition{Topic: "other"}
	broken, err := w.store.OpenLog(other, TopicID{4}, testLogConfig())
	if err != nil {
		t.Fatal(err)
	}
	put(t, broken, 1, 3)
	broken.fail(errors.New("a sector"), offlineBroken)
	end := l.LogEndOffset()
	if err := w.close(); err == nil {
		t.Fatal("the stop was clean")
	}
	w.mustOpen()
	if w.store.CleanStart() {
		t.Fatal("the start was clean")
	}
	l = w.log()
	w.settle()
	if l.LogEndOffset() != end || l.RecoveryPoint() != end {
		t.Errorf("recovered from %d to %d", l.RecoveryPoint(), l.LogEndOffset())
	}
	if broken, err = w.store.OpenLog(other, TopicID{4}, testLogConfig()); err != nil || broken.LogEndOffset() != end {
		t.Errorf("the other ends at %d: %v", broken.LogEndOffset(), err)
	}
}
