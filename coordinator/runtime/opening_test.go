package runtime

import (
	"testing"
	"testing/synctest"
)

// duringOpen submits to a shard while its first load runs.
func duringOpen(f *fixture, use func()) {
	f.onOpen = func() {
		f.onOpen = nil
		use()
	}
	f.rt.Elected(0, 1)
	f.rt.WhenServing(0, func(error) {})
}

func TestRequestsWaitForTheFirstLoad(t *testing.T) {
	f := newFixture(t)
	var write, read *result
	duringOpen(f, func() {
		write, read = f.set("a", 1), f.get("a")
		f.want(write, "waits")
		f.want(read, "waits")
	})
	f.want(write, "[]")
	f.want(read, "[1]")
	if n := f.clock.Pending(); n > 1 { // that of the checkpoint
		t.Errorf("%d timers are left", n)
	}
}

// One with a checkpoint, which nobody has asked for, is no different.
func TestRequestsWaitForALoadOfItsOwn(t *testing.T) {
	f := filled(t)
	f.restart()
	var read *result
	f.onOpen = func() { read = f.get("told") }
	f.rt.Elected(0, 2)
	f.want(read, "[0]")
}

func TestRequestsDoNotWaitForever(t *testing.T) {
	f := newFixture(t)
	duringOpen(f, func() {
		early := f.get("a")
		f.clock.Advance(openingWait - 1)
		f.want(early, "waits")
		late := f.get("a")
		f.clock.Advance(1)
		f.want(early, "error 14")
		f.want(late, "error 14")
		f.want(f.get("a"), "error 14")
	})
	f.want(f.get("a"), "[0]")
}

func TestRequestsThatWaitAreBounded(t *testing.T) {
	f := newFixture(t)
	var last *result
	duringOpen(f, func() {
		for range maxParkedJobs {
			last = f.get("a")
		}
		f.want(f.get("a"), "error 14")
	})
	f.want(last, "[0]")
}

func TestWaitEndsWithTheShard(t *testing.T) {
	f := newFixture(t)
	var read *result
	duringOpen(f, func() {
		read = f.get("a")
		f.rt.Resigned(0, 1)
	})
	f.want(read, "error 16")
	if n := f.clock.Pending(); n != 0 {
		t.Errorf("%d timers are left", n)
	}
}

func TestWaitEndsWithAFailedLoad(t *testing.T) {
	f := newFixture(t)
	var read *result
	f.openErr = errAppend
	duringOpen(f, func() { read = f.get("a") })
	f.want(read, "error 14")
	f.openErr = nil
	f.clock.Advance(reloadMin)
	f.want(f.get("a"), "[0]")
}

// Long loads do not keep a partition from being used for the first time; one with
// something to read takes its turn.
func TestEmptyPartitionsNeedNoTurnToLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.rt.o.Go = func(work func()) { go work() }
		var busy []func()
		for range concurrentLoads {
			busy = append(busy, f.rt.takeLoad())
		}
		f.rt.Elected(0, 1)
		read := f.get("a")
		synctest.Wait()
		f.want(read, "[0]")
		f.log.put(1, "a", 7)
		f.rt.Elected(0, 2)
		read = f.get("a")
		synctest.Wait()
		f.want(read, "waits")
		busy[0]()
		synctest.Wait()
		f.want(read, "[7]")
		f.rt.Close()
	})
}
