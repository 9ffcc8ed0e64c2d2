package park

import (
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
)

// state is where a waiter is in its life; the pool's mutex guards it.
type state uint8

const (
	// running covers the set-up too, so that a wake-up between NewWaiter and
	// Park is remembered, not lost.
	running state = iota
	// rerun is running, and woken meanwhile.
	rerun
	parked
	queued
	finished
)

// Waiter is one parked request. Its function runs on the pool, never twice at
// the same time, after every Wake that it has not yet seen.
//
// The order that loses no wake-up: NewWaiter, register it wherever its condition
// can change, look at the condition again while registering, Park.
type Waiter struct {
	pool *Pool
	run  func() (done bool)
	// poll says that Drain ends the wait.
	poll    bool
	expired atomic.Bool
	// need is what Lists still have to credit before they wake it.
	need atomic.Int64

	// Guarded by pool.mu.
	state         state
	next          *Waiter
	before, after *Waiter
	// timer is set in the set-up, before anyone else looks at it.
	timer clock.Timer
}

// NewWaiter makes a waiter that is still being set up. run looks at the
// condition and, when it holds or Expired, answers and returns true; else it
// registers again and returns false.
func (p *Pool) NewWaiter(run func() (done bool)) *Waiter {
	return &Waiter{pool: p, run: run}
}

// NewPoll is NewWaiter for a wait that a draining pool cuts short.
func (p *Pool) NewPoll(run func() (done bool)) *Waiter {
	return &Waiter{pool: p, run: run, poll: true}
}

// Park starts the deadline and ends the set-up, in this order: the deadline of
// whatever Parked counts is running. A waiter that was woken meanwhile runs at
// once.
func (w *Waiter) Park(wait time.Duration) {
	w.arm(wait)
	p := w.pool
	p.mu.Lock()
	p.linkLocked(w)
	if p.draining && w.poll {
		w.expired.Store(true)
		w.state = rerun
	}
	w.afterRunLocked(false)
	p.mu.Unlock()
}

// Wake makes the waiter run. It is cheap, never blocks and may be called by
// anyone at any time.
func (w *Waiter) Wake() {
	w.pool.mu.Lock()
	w.wakeLocked()
	w.pool.mu.Unlock()
}

// Expired says that the deadline has passed, or for a poll that the pool is
// draining: run must answer with what there is.
func (w *Waiter) Expired() bool { return w.expired.Load() }

// Need sets what Lists have to credit before they wake the waiter: the bytes
// that a fetch still lacks. 0 or less wakes on any change.
func (w *Waiter) Need(n int64) { w.need.Store(n) }

func (w *Waiter) expire() {
	w.expired.Store(true)
	w.Wake()
}

func (w *Waiter) wakeLocked() {
	switch w.state {
	case running:
		w.state = rerun
	case parked:
		w.state = queued
		w.pool.enqueueLocked(w)
	case rerun, queued, finished:
	}
}

func (w *Waiter) afterRunLocked(done bool) {
	switch {
	case done:
		w.state = finished
		if w.timer != nil {
			w.timer.Stop()
		}
		w.pool.unlinkLocked(w)
	case w.state == rerun:
		w.state = queued
		w.pool.enqueueLocked(w)
	default:
		w.state = parked
	}
}
