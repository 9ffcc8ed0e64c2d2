package park

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
)

func newTestPool(workers int) (*Pool, *clock.Manual) {
	clk := clock.NewManual(time.Unix(1_700_000_000, 0))
	return NewPool(clk, workers), clk
}

func TestWakeDuringSetUpIsNotLost(t *testing.T) {
	p, _ := newTestPool(1)
	runs := 0
	w := p.NewWaiter(func() bool { runs++; return true })
	w.Wake()
	w.Park(time.Hour)
	p.WaitIdle()
	if runs != 1 {
		t.Fatalf("ran %d times, want 1", runs)
	}
}

func TestDeadlineRunsOnceExpired(t *testing.T) {
	p, clk := newTestPool(1)
	var seen []bool
	var w *Waiter
	w = p.NewWaiter(func() bool { seen = append(seen, w.Expired()); return w.Expired() })
	w.Park(500 * time.Millisecond)
	w.Wake()
	p.WaitIdle()
	clk.Advance(499 * time.Millisecond)
	p.WaitIdle()
	if len(seen) != 1 || seen[0] {
		t.Fatalf("before the deadline: %v, want one run that is not expired", seen)
	}
	clk.Advance(time.Millisecond)
	p.WaitIdle()
	if len(seen) != 2 || !seen[1] {
		t.Fatalf("after the deadline: %v, want a second, expired run", seen)
	}
	w.Wake()
	p.WaitIdle()
	if len(seen) != 2 || p.Parked() != 0 {
		t.Fatalf("a finished waiter ran again: %v, parked %d", seen, p.Parked())
	}
}

// hastyClock tells of each call of AfterFunc, before and after.
type hastyClock struct {
	*clock.Manual
	before, after func()
}

func (c *hastyClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.before()
	defer c.after()
	return c.Manual.AfterFunc(d, f)
}

// TestParkedHasItsDeadline: whoever sees a waiter parked may move the clock, and a
// deadline that passes before that is not lost.
func TestParkedHasItsDeadline(t *testing.T) {
	clk := &hastyClock{Manual: clock.NewManual(time.Unix(1_700_000_000, 0))}
	p := NewPool(clk, 1)
	clk.before = func() {
		if n := p.Parked(); n != 0 {
			t.Errorf("%d waiters are parked without a deadline", n)
		}
	}
	clk.after = func() { clk.Advance(time.Hour) }
	var seen []bool
	var w *Waiter
	w = p.NewWaiter(func() bool { seen = append(seen, w.Expired()); return w.Expired() })
	w.Park(time.Minute)
	p.WaitIdle()
	if len(seen) != 1 || !seen[0] || p.Parked() != 0 || clk.Pending() != 0 {
		t.Fatalf("runs %v, %d still parked, %d timers; want one that is expired", seen, p.Parked(), clk.Pending())
	}
}

func TestFinishedWaiterLeavesNoTimer(t *testing.T) {
	p, clk := newTestPool(1)
	w := p.NewWaiter(func() bool { return true })
	w.Park(time.Hour)
	w.Wake()
	p.WaitIdle()
	if n := clk.Pending(); n != 0 {
		t.Fatalf("%d timers left, want 0", n)
	}
}

func TestNoWaitExpiresAtOnce(t *testing.T) {
	p, _ := newTestPool(1)
	var w *Waiter
	done := false
	w = p.NewWaiter(func() bool { done = w.Expired(); return done })
	w.Park(0)
	p.WaitIdle()
	if !done {
		t.Fatal("a waiter without time did not run")
	}
}

func TestWakeWhileRunningRunsAgain(t *testing.T) {
	p, _ := newTestPool(2)
	entered, release := make(chan struct{}), make(chan struct{})
	var runs, inside, overlap atomic.Int32
	w := p.NewWaiter(func() bool {
		if inside.Add(1) > 1 {
			overlap.Add(1)
		}
		defer inside.Add(-1)
		if runs.Add(1) == 1 {
			close(entered)
			<-release
			return false
		}
		return true
	})
	w.Park(time.Hour)
	w.Wake()
	<-entered
	w.Wake()
	w.Wake()
	close(release)
	p.WaitIdle()
	if runs.Load() != 2 || overlap.Load() != 0 {
		t.Fatalf("runs %d, overlapping %d; want 2 and 0", runs.Load(), overlap.Load())
	}
}

func TestWorkersAreBounded(t *testing.T) {
	const workers = 3
	p, _ := newTestPool(workers)
	var inside, most atomic.Int32
	full, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	for range 20 {
		p.Go(func() {
			n := inside.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if n == workers {
				once.Do(func() { close(full) })
			}
			<-release
			inside.Add(-1)
		})
	}
	<-full
	close(release)
	p.WaitIdle()
	if most.Load() != workers {
		t.Fatalf("at most %d ran together, want %d", most.Load(), workers)
	}
}

func TestDrainEndsPollsNowAndLater(t *testing.T) {
	p, clk := newTestPool(1)
	var expired atomic.Int32
	park := func(poll bool) {
		var w *Waiter
		run := func() bool {
			if w.Expired() {
				expired.Add(1)
			}
			return w.Expired()
		}
		if w = p.NewWaiter(run); poll {
			w = p.NewPoll(run)
		}
		w.Park(time.Hour)
	}
	park(true)
	park(false)
	p.Drain()
	park(true)
	p.WaitIdle()
	if expired.Load() != 2 || p.Parked() != 1 {
		t.Fatalf("%d expired, %d still parked; want the two polls and the other waiter", expired.Load(), p.Parked())
	}
	clk.Advance(time.Hour)
	p.WaitIdle()
	if expired.Load() != 3 || clk.Pending() != 0 {
		t.Fatalf("expired %d, timers %d; want 3 and 0", expired.Load(), clk.Pending())
	}
}

// TestNoLostWakeUp lets a producer move a counter while a waiter looks at it and
// parks: whatever the interleaving, the waiter sees the last value.
func TestNoLostWakeUp(t *testing.T) {
	p, _ := newTestPool(2)
	for round := range 500 {
		var mu sync.Mutex
		var list List
		value := 0
		done := make(chan struct{})
		var w *Waiter
		var link Link
		look := func() bool {
			mu.Lock()
			defer mu.Unlock()
			if value == 3 {
				return true
			}
			list.Remove(&link)
			list.Add(&link, w, 0)
			return false
		}
		w = p.NewWaiter(func() bool {
			ok := look()
			if ok {
				close(done)
			}
			return ok
		})
		go func() {
			for range 3 {
				mu.Lock()
				value++
				woken := list.TakeAll(nil)
				mu.Unlock()
				for _, w := range woken {
					w.Wake()
				}
			}
		}()
		if look() {
			w.Wake()
		}
		w.Park(time.Hour)
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("round %d: the wake-up was lost", round)
		}
	}
}

func TestListOrderAndCredit(t *testing.T) {
	p, _ := newTestPool(1)
	var list List
	links := make([]Link, 4)
	ws := make([]*Waiter, 4)
	for i, at := range []int64{10, 30, 20, 20} {
		ws[i] = p.NewWaiter(func() bool { return true })
		list.Add(&links[i], ws[i], at)
	}
	got := list.TakeUpTo(20, nil)
	if len(got) != 3 || got[0] != ws[0] || got[1] != ws[2] || got[2] != ws[3] || list.Len() != 1 {
		t.Fatalf("TakeUpTo(20) took %d waiters in the wrong order", len(got))
	}
	list.Remove(&links[0])
	ws[1].Need(100)
	if got := list.Credit(99, nil); len(got) != 0 {
		t.Fatal("99 of 100 bytes woke the waiter")
	}
	if got := list.Credit(1, nil); len(got) != 1 || list.Len() != 0 {
		t.Fatal("100 of 100 bytes did not wake the waiter")
	}
	list.Add(&links[0], ws[0], 1)
	list.Add(&links[1], ws[1], 2)
	list.Remove(&links[0])
	list.Remove(&links[1])
	if list.Len() != 0 || list.head != nil || list.tail != nil {
		t.Fatal("removal left links behind")
	}
}
