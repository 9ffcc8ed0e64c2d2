package park

import (
	"math"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
)

// DefaultWorkers bounds the goroutines of one Pool. Woken requests read what was
// just written, so they seldom wait for a disk; the number only has to hide the
// few that do.
const DefaultWorkers = 32

// Forever is the wait of a waiter without a deadline.
const Forever time.Duration = math.MaxInt64

// Pool runs woken waiters and single functions, oldest first, on at most a fixed
// number of goroutines. It starts them on demand and they end when the queue is
// empty, so an idle pool costs nothing.
//
// The queue is a list through the waiters themselves: it holds each at most
// once, so it is as long as the requests in flight, which the network bounds.
type Pool struct {
	clk     clock.Clock
	workers int

	mu         sync.Mutex
	head, tail *Waiter
	running    int
	// live holds every waiter between Park and its end, for Drain.
	live     Waiter
	parked   int
	draining bool
	idle     sync.Cond
}

// NewPool is a pool of at most workers goroutines; DefaultWorkers when 0.
func NewPool(clk clock.Clock, workers int) *Pool {
	if workers <= 0 {
		workers = DefaultWorkers
	}
	p := &Pool{clk: clk, workers: workers}
	p.live.before, p.live.after = &p.live, &p.live
	p.idle.L = &p.mu
	return p
}

// Go runs f once on the pool.
func (p *Pool) Go(f func()) {
	w := &Waiter{pool: p, run: func() bool { f(); return true }}
	p.mu.Lock()
	w.state = queued
	p.enqueueLocked(w)
	p.mu.Unlock()
}

// Drain ends all polls, now and from now on: they run as if their time were over.
// A stopping broker calls it so that long polls are answered instead of waited
// for; other waiters, such as those for a flush, go on.
func (p *Pool) Drain() {
	p.mu.Lock()
	p.draining = true
	for w := p.live.after; w != &p.live; w = w.after {
		if w.poll {
			w.expired.Store(true)
			w.wakeLocked()
		}
	}
	p.mu.Unlock()
}

// WaitIdle returns once nothing is queued or running. Parked waiters do not
// count. Tests use it in place of sleeping, a stopping broker after Drain.
func (p *Pool) WaitIdle() {
	p.mu.Lock()
	for p.running > 0 || p.head != nil {
		p.idle.Wait()
	}
	p.mu.Unlock()
}

// Parked is the number of waiters between Park and their end.
func (p *Pool) Parked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parked
}

func (p *Pool) enqueueLocked(w *Waiter) {
	if p.tail == nil {
		p.head = w
	} else {
		p.tail.next = w
	}
	p.tail = w
	if p.running < p.workers {
		p.running++
		go p.work()
	}
}

// work runs queued waiters until there are none.
func (p *Pool) work() {
	p.mu.Lock()
	for p.head != nil {
		w := p.head
		p.head, w.next = w.next, nil
		if p.head == nil {
			p.tail = nil
		}
		w.state = running
		p.mu.Unlock()
		done := w.run()
		p.mu.Lock()
		w.afterRunLocked(done)
	}
	p.running--
	if p.running == 0 {
		p.idle.Broadcast()
	}
	p.mu.Unlock()
}

func (p *Pool) linkLocked(w *Waiter) {
	w.before, w.after = p.live.before, &p.live
	w.before.after, w.after.before = w, w
	p.parked++
}

func (p *Pool) unlinkLocked(w *Waiter) {
	if w.before == nil {
		return
	}
	w.before.after, w.after.before = w.after, w.before
	w.before, w.after = nil, nil
	p.parked--
}

// arm starts the deadline; a wait of 0 or less is over at once. It is part of the
// set-up: a deadline that passes now is a wake-up that Park sees.
func (w *Waiter) arm(wait time.Duration) {
	switch {
	case wait == Forever:
	case wait <= 0:
		w.expire()
	default:
		w.timer = w.pool.clk.AfterFunc(wait, w.expire)
	}
}
