package storage

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// fillableWorld has a disk of that many bytes, of which a store reserves 10,000.
func fillableWorld(t *testing.T, capacity uint64) *world {
	w := newWorld(t, 1)
	w.cfg.ReserveBytes = 10_000
	w.fs.SetCapacity(capacity)
	w.mustOpen()
	return w
}

func TestDiskFull(t *testing.T) {
	w := fillableWorld(t, 30_000)
	defer w.abandon()
	l := w.log()
	appends := 0
	var err error
	for err == nil && appends < 1000 {
		_, err = l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)})
		appends++
	}
	if !errors.Is(err, ErrOffline) || protocol.Code(err) != kerr.KafkaStorageError.Code {
		t.Fatalf("after %d appends: %v", appends, err)
	}
	if free, _, _ := w.store.Usage(); free < 8_000 {
		t.Fatalf("only %d bytes are left free", free)
	}
	if got := contents(t, l); len(got) != appends-1 {
		t.Fatalf("%d of %d batches are read from a full disk", len(got), appends-1)
	}
	w.fs.SetCapacity(60_000)
	w.clock.Advance(2 * time.Second)
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); err != nil {
		t.Fatalf("after room was made: %v", err)
	}
}

// TestRoomTakenAfterWritable fills the disk between Writable, which lets a
// coordinator's append in, and the append.
func TestRoomTakenAfterWritable(t *testing.T) {
	w := fillableWorld(t, 60_000)
	defer w.abandon()
	l := w.log()
	internal := func() error {
		_, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil), Internal: true})
		return err
	}
	if err := l.Writable(); err != nil {
		t.Fatal(err)
	}
	w.fs.SetCapacity(8_000)
	w.store.measureRoom()
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); !errors.Is(err, ErrOffline) {
		t.Fatalf("a client's append without room: %v", err)
	}
	if err := internal(); err != nil {
		t.Fatalf("what was let in before: %v", err)
	}
	if err := l.Writable(); !errors.Is(err, ErrOffline) {
		t.Fatalf("what comes now: %v", err)
	}
	for n := 0; internal() == nil; n++ {
		if n == 1000 {
			t.Fatal("the reserve has no end")
		}
		w.store.measureRoom()
	}
	if free, _, _ := w.store.Usage(); int64(free) < w.cfg.ReserveBytes/growFrom {
		t.Fatalf("only %d bytes are left free", free)
	}
}

// TestRoomWhenTheTimeIsSet frees space on a full disk after the system's time was set
// back: it is found as soon as otherwise.
func TestRoomWhenTheTimeIsSet(t *testing.T) {
	w := fillableWorld(t, 11_000)
	defer w.abandon()
	l := w.log()
	var err error
	for n := 0; err == nil && n < 1000; n++ {
		_, err = l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)})
	}
	if !errors.Is(err, ErrOffline) {
		t.Fatal(err)
	}
	w.fs.SetCapacity(60_000)
	w.clock.Step(-3 * time.Hour)
	w.clock.Advance(roomEvery)
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); err != nil {
		t.Fatalf("after room was made: %v", err)
	}
}

// TestSpaceReservedAheadLeavesTheReserve has many partitions ask for blocks ahead
// of their writers.
func TestSpaceReservedAheadLeavesTheReserve(t *testing.T) {
	const mib = 1 << 20
	w := newWorld(t, 1)
	w.cfg.ReserveBytes, w.cfg.FlushBehindBytes = 20*mib, -1
	w.fs.SetCapacity(28 * mib)
	w.mustOpen()
	defer w.abandon()
	cfg := testLogConfig()
	cfg.SegmentBytes = 1 << 30
	for p := range int32(4) {
		l, err := w.store.OpenLog(TopicPartition{"ahead", p}, TopicID{4}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			if _, err := l.Append(AppendRequest{Batches: makeBatch(1, strings.Repeat("x", 300<<10), 1, nil)}); err != nil && !errors.Is(err, ErrOffline) {
				t.Fatal(err)
			}
		}
	}
	if free, _, _ := w.store.Usage(); free < 20*mib {
		t.Fatalf("%d bytes of the reserve are left", free)
	}
}

// TestFullDiskIsSaidOnce fills the disk up to the reserve and beyond.
func TestFullDiskIsSaidOnce(t *testing.T) {
	w := newWorld(t, 1)
	var log bytes.Buffer
	w.logger = slog.New(slog.NewTextHandler(&log, nil))
	w.cfg.ReserveBytes = 10_000
	w.fs.SetCapacity(11_000)
	w.mustOpen()
	defer w.abandon()
	l := w.log()
	for range 50 {
		if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); err != nil && !errors.Is(err, ErrOffline) {
			t.Fatal(err)
		}
	}
	if err := w.store.RoomToChange(false); err != nil {
		t.Fatalf("the reserve is there, but %v", err)
	}
	used := 11_000 - freeBytes(w)
	for _, tc := range []struct {
		free         uint64
		grows, frees bool
	}{{3000, true, true}, {2000, false, true}, {100, false, false}} {
		w.fs.SetCapacity(used + tc.free)
		if grows, frees := w.store.RoomToChange(false) == nil, w.store.RoomToChange(true) == nil; grows != tc.grows || frees != tc.frees {
			t.Errorf("with %d bytes free: grows %t, frees %t", tc.free, grows, frees)
		}
	}
	w.fs.SetCapacity(30_000)
	w.clock.Advance(2 * time.Second)
	w.settle()
	if s := log.String(); strings.Count(s, "the disk is full") != 1 || strings.Count(s, "room again") != 1 {
		t.Fatalf("log: %s", s)
	}
}

func freeBytes(w *world) uint64 {
	free, _, err := w.store.Usage()
	if err != nil {
		w.t.Fatal(err)
	}
	return free
}

// TestCleaningsShareTheRoom has two cleanings ask at the same time for room that is
// there once.
func TestCleaningsShareTheRoom(t *testing.T) {
	const reserve = 40_000
	w := newCleaningWorld(t)
	w.cfg.ReserveBytes = reserve
	w.mustOpen()
	defer w.abandon()
	l := w.compactedLog(compactConfig())
	w.fill(l, 50)
	group := l.list()[:3]
	var need int64
	for _, s := range group {
		need += s.SizeBytes()
	}
	w.fs.SetCapacity(w.used() + reserve/growFrom + uint64(need) + 100)
	first, err := w.store.roomToClean(group)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.roomToClean(group); !errors.Is(err, errNoRoom) {
		t.Fatalf("the same room was promised twice: %v", err)
	}
	first.take(need / 2)
	first.release()
	again, err := w.store.roomToClean(group)
	if err != nil {
		t.Fatal(err)
	}
	again.release()
	if left := w.store.cleaner.promised.Load(); left != 0 {
		t.Errorf("%d bytes stay promised", left)
	}
}
