package runtime

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

func TestStates(t *testing.T) {
	f := newFixture(t)
	f.want(f.get("a"), "error 16") // NOT_COORDINATOR
	f.openErr = errAppend
	f.rt.Elected(0, 5)
	first := f.get("a") // COORDINATOR_LOAD_IN_PROGRESS
	f.want(first, "error 14")
	f.want(f.get("a"), "error 14")
	served := 0
	f.rt.WhenServing(0, func(err error) {
		if err != nil {
			t.Error(err)
		}
		served++
	})
	f.rt.Tell(func() event { return event{set: []string{"told"}, value: 9} })
	if served != 0 {
		t.Fatal("WhenServing was called while nothing serves")
	}
	f.openErr = nil
	f.clock.Advance(reloadMax)
	if served != 1 {
		t.Fatalf("WhenServing was called %d times", served)
	}
	f.want(f.get("a", "told"), "[0 9]")
	f.want(f.set("a", 7), "[]")
	f.want(f.get("a"), "[7]")
	f.rt.Elected(0, 5)
	f.rt.Elected(0, 4)
	f.rt.Resigned(0, 4)
	f.want(f.get("a"), "[7]")
	f.rt.Resigned(0, 6)
	f.want(f.get("a"), "error 16")
	if ps := f.rt.Partitions(); len(ps) != 0 {
		t.Errorf("partitions %v after resigning", ps)
	}
	f.rt.Elected(0, 7)
	f.want(f.get("a"), "[7]")
	f.rt.Close()
	f.want(f.get("a"), "error 16")
	f.rt.Elected(0, 8)
	f.want(f.get("a"), "error 16")
}

// An answer waits until the high watermark has passed what it has seen: a write
// its own record, a read all earlier ones.
func TestAnswersWaitForTheHighWatermark(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.log.held = true
	write, read := f.set("a", 1), f.get("a")
	f.want(write, "waits")
	f.want(read, "waits")
	f.log.commit()
	f.want(write, "[]")
	f.want(read, "[1]")
	// What an earlier leader has left beyond the high watermark counts too.
	f.log.held = true
	f.set("a", 2)
	f.rt.Elected(0, 2)
	read = f.get("a")
	f.want(read, "waits")
	f.log.commit()
	f.want(read, "[2]")
}

// A partition that was never used is not opened until somebody asks for it.
func TestColdPartitions(t *testing.T) {
	for _, tc := range []struct {
		name string
		use  func(f *fixture)
	}{
		{"an event", func(f *fixture) { f.want(f.get("a"), "[0]") }},
		{"a wait", func(f *fixture) { f.rt.WhenServing(0, func(error) {}) }},
		{"a word to all", func(f *fixture) { f.rt.Tell(func() event { return event{} }) }},
	} {
		f := newFixture(t)
		f.rt.Elected(0, 1)
		if f.opened != 0 {
			t.Fatal("it was opened without need")
		}
		tc.use(f)
		if f.opened != 1 {
			t.Errorf("%s: opened %d times", tc.name, f.opened)
		}
	}
	// What is told to all loads nothing where there are no records.
	f := newFixture(t)
	f.rt.o.Written = func(int32) bool { return len(f.log.batches) > 0 }
	f.rt.Elected(0, 1)
	f.rt.Tell(func() event { return event{set: []string{"a"}, value: 1} })
	if f.opened != 0 || len(f.log.batches) != 0 {
		t.Errorf("told without records: opened %d times, %d batches", f.opened, len(f.log.batches))
	}
	f.log.put(0, "b", 5)
	f.rt.Tell(func() event { return event{set: []string{"a"}, value: 1} })
	if f.opened != 1 || len(f.log.batches) != 2 {
		t.Errorf("told with records and without a checkpoint: opened %d times, %d batches", f.opened, len(f.log.batches))
	}
	// One with a checkpoint has groups to look after; without a store nobody
	// knows.
	f = filled(t)
	f.restart()
	f.opened = 0
	f.rt.Elected(0, 2)
	if f.opened != 1 {
		t.Errorf("with a checkpoint: opened %d times", f.opened)
	}
	f.rt.Close()
	f.restart()
	f.opened, f.rt.o.KV = 0, nil
	f.rt.Elected(0, 3)
	if f.opened != 1 {
		t.Errorf("without a store: opened %d times", f.opened)
	}
}

func TestResignedFailsWhatWaits(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.log.held = true
	write := f.set("a", 1)
	f.rt.Resigned(0, 1)
	f.want(write, "error 16")
}

// A load of a newer epoch begins only when the older shard has stopped.
func TestElectedAgainWaitsForTheOldShard(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.get("a")
	var held []func()
	f.deferred = &held
	old := f.set("a", 1)
	f.rt.Elected(0, 2)
	early := f.get("a")
	f.want(early, "waits")
	if len(held) != 1 {
		t.Fatalf("%d goroutines, want that of the old shard only", len(held))
	}
	f.deferred = nil
	held[0]()
	f.want(old, "[]")
	f.want(early, "[1]")
}

func TestFailedAppendStartsOver(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, "error 16"},
		{protocol.Errorf(kerr.KafkaStorageError, "x"), "error 16"},
		{protocol.Errorf(kerr.NotLeaderForPartition, "x"), "error 16"},
		{protocol.Errorf(kerr.NotEnoughReplicas, "x"), "error 15"},
		{protocol.Errorf(kerr.MessageTooLarge, "x"), "error -1"},
	} {
		f := newFixture(t)
		f.rt.Elected(0, 1)
		f.want(f.set("a", 1), "[]")
		f.log.held = true
		waiting := f.set("a", 2)
		f.log.failIn, f.log.appendErr = 1, tc.err
		failed := f.set("a", 3)
		f.want(waiting, tc.want)
		f.want(failed, tc.want)
		f.want(f.get("a"), "error 14")
		f.log.commit()
		f.clock.Advance(reloadMin)
		f.want(f.get("a"), "[2]")
	}
}

// The wait before a load grows while it fails and starts anew after a good
// append.
func TestReloadBacksOff(t *testing.T) {
	f := newFixture(t)
	f.openErr = errAppend
	f.rt.Elected(0, 1)
	f.want(f.get("a"), "error 14")
	var waited []time.Duration
	for range 9 {
		started, failures := f.clock.Now(), f.failures()
		for f.failures() == failures {
			f.clock.Advance(10 * time.Millisecond)
		}
		waited = append(waited, f.clock.Now().Sub(started))
	}
	if got, want := fmt.Sprint(waited), "[50ms 100ms 200ms 400ms 800ms 1.6s 3.2s 5s 5s]"; got != want {
		t.Errorf("waited %s, want %s", got, want)
	}
	f.openErr = nil
	f.clock.Advance(reloadMax)
	f.want(f.set("a", 1), "[]")
	f.log.failIn = 1
	f.set("a", 2)
	f.clock.Advance(reloadMin)
	f.want(f.get("a"), "[1]")
}

// failures counts the loads that failed.
func (f *fixture) failures() int {
	s, err := f.rt.shard(0)
	if err != nil {
		f.t.Fatal(err)
	}
	return s.failures
}

func TestUnwritableRefusesWritesOnly(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.want(f.set("a", 1), "[]")
	f.want(f.submit(event{timer: "t", after: time.Second}), "[]")
	f.log.unwritable = protocol.Errorf(kerr.NotEnoughReplicas, "x")
	f.want(f.set("a", 2), "error 15")
	f.want(f.get("a"), "[1001]") // it is told that the log takes nothing
	f.clock.Advance(5 * time.Second)
	f.want(f.get("fired-t"), "[1000]")
	f.log.unwritable = nil
	f.want(f.get("a"), "[1]")
	f.clock.Advance(time.Second)
	f.want(f.get("fired-t"), "[6000]")
}

func TestTimers(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.submit(event{timer: "once", after: time.Second})
	f.submit(event{timer: "later", after: time.Second})
	f.submit(event{timer: "sooner", after: 10 * time.Second})
	f.submit(event{timer: "never", after: time.Second})
	f.clock.Advance(500 * time.Millisecond)
	f.submit(event{timer: "later", after: time.Second})
	f.submit(event{timer: "sooner", after: time.Second})
	f.submit(event{timer: "never", after: -1})
	f.submit(event{timer: "unknown", after: -1})
	f.clock.Advance(time.Minute)
	f.want(f.get("fired-once", "fired-later", "fired-sooner", "fired-never"), "[1000 1500 1500 0]")
	if n := f.clock.Pending(); n != 0 {
		t.Errorf("%d timers are left", n)
	}
	// A timer of an earlier life does not fire.
	f.submit(event{timer: "stale", after: time.Second})
	f.rt.Elected(0, 2)
	f.clock.Advance(time.Minute)
	f.want(f.get("fired-stale"), "[0]")
}

// A timer that rings while its cancellation is queued does not fire.
func TestTimerRingsTooLate(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.submit(event{timer: "t", after: time.Second})
	var held []func()
	f.deferred = &held
	f.submit(event{timer: "t", after: -1})
	f.clock.Advance(time.Minute)
	f.deferred = nil
	held[0]()
	f.want(f.get("fired-t"), "[0]")
}

// A commit that fails takes the machine with it, but not the next one.
func TestFailedCommit(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.log.held = true
	first := f.set("a", 1)
	f.want(first, "waits")
	f.log.failIn = 1
	f.set("b", 2)
	f.want(first, "error 16")
	f.clock.Advance(reloadMin)
	second := f.set("b", 3)
	f.want(second, "waits")
	for i := range 2 {
		// The first is of the machine that is gone, the second of the load.
		w := f.log.waiters[0]
		f.log.waiters = f.log.waiters[1:]
		w.done(protocol.Errorf(kerr.NotEnoughReplicasAfterAppend, "x"))
		f.want(second, []string{"waits", "error 15"}[i])
	}
	f.log.commit()
	f.clock.Advance(time.Second)
	f.want(f.get("a", "b"), "[1 3]")
}

// A crash between two batches would leave a half of what an event decided: its
// records are one batch, whatever their size.
func TestEventsAreNotSplit(t *testing.T) {
	f := newFixture(t)
	f.rt.o.MaxBatchBytes = 500
	f.rt.Elected(0, 1)
	names := manyNames()
	f.want(f.submit(event{set: names, value: 3}), "[]")
	if len(f.log.batches) != 1 {
		t.Errorf("%d batches", len(f.log.batches))
	}
	f.rt.Elected(0, 2)
	f.want(f.get(names...), threes(names))
}

func manyNames() (names []string) {
	for i := range 100 {
		names = append(names, fmt.Sprintf("name-%d", i))
	}
	return names
}

func threes(names []string) string {
	return "[" + strings.TrimSpace(strings.Repeat("3 ", len(names))) + "]"
}

// The records of an event that allows it, or that fit no segment, go into as few
// batches as the limit allows.
func TestLargeEventsAreSplit(t *testing.T) {
	for _, parts := range []bool{true, false} {
		f := newFixture(t)
		f.log.segmentBytes = 600
		f.rt.o.MaxBatchBytes = 500
		f.rt.Elected(0, 1)
		largeEventIsSplit(t, f, parts)
	}
}

func largeEventIsSplit(t *testing.T, f *fixture, parts bool) {
	names := manyNames()
	f.want(f.submit(event{set: names, value: 3, parts: parts}), "[]")
	if len(f.log.batches) < 5 {
		t.Errorf("%d batches", len(f.log.batches))
	}
	for _, b := range f.log.batches {
		if len(b) > 500 {
			t.Errorf("a batch of %d bytes", len(b))
		}
	}
	f.rt.Elected(0, 2)
	f.want(f.get(names...), threes(names))
}

func TestCorruptLogIsNotServed(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.set("a", 1)
	f.rt.Close()
	f.restart()
	clear(f.kv.m)
	b := f.log.batches[0]
	b[len(b)-1] ^= 1
	f.rt.Elected(0, 2)
	f.want(f.get("a"), "error 14")
	b[len(b)-1] ^= 1
	f.clock.Advance(reloadMax)
	f.want(f.get("a"), "[1]")
}

// A log that is longer than one read is read in several, whose last batches may
// be cut.
func TestLongLog(t *testing.T) {
	f := newFixture(t)
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("%d-%s", i, strings.Repeat("x", 1000))
	}
	f.rt.Elected(0, 1)
	for range 5 {
		f.want(f.submit(event{set: names[:300], value: 1}), "[]")
	}
	f.want(f.submit(event{set: names[300:], value: 2}), "[]")
	f.rt.Close()
	f.restart()
	clear(f.kv.m)
	f.rt.Elected(0, 2)
	f.want(f.get(names[0], names[299], names[300], names[999]), "[1 1 2 2]")
	if f.log.reads < 2 {
		t.Errorf("%d reads", f.log.reads)
	}
}

func TestConcurrentUse(t *testing.T) {
	f := newFixture(t)
	f.rt.o.Go = func(work func()) { go work() }
	served := make(chan error, 1)
	f.rt.Elected(0, 1)
	f.rt.WhenServing(0, func(err error) { served <- err })
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	const workers, each = 8, 200
	done := make(chan error, workers*each)
	for w := range workers {
		go func() {
			for i := range each {
				e := event{set: []string{fmt.Sprint(w)}, value: uint64(i)}
				f.rt.Submit(0, func(call uint64) event { e.call = call; return e }, func(_ answer, err error) { done <- err })
			}
		}()
	}
	for range workers * each {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	f.rt.Close()
	if n := f.log.LogEndOffset(); n != workers*each {
		t.Errorf("the log ends at %d", n)
	}
}
