package runtime

import (
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/machine"
)

// timers are one instance's. A timer that is put off, as a heartbeat's is all the
// time, only gets a new deadline: its clock rings at the old one and is set
// again then.
type timers struct {
	clock clock.Clock
	// ring queues a timer's job; it runs on the clock's goroutine.
	ring  func(*timer)
	byKey map[string]*timer
}

type timer struct {
	key string
	// at is the deadline, ringsAt when the clock rings.
	at, ringsAt time.Time
	clock       clock.Timer
}

func newTimers(c clock.Clock, ring func(*timer)) *timers {
	return &timers{clock: c, ring: ring, byKey: map[string]*timer{}}
}

// apply sets and cancels what a machine asked for.
func (ts *timers) apply(changes []machine.Timer) {
	for _, c := range changes {
		t := ts.byKey[c.Key]
		switch {
		case c.At.IsZero() && t != nil:
			t.clock.Stop()
			delete(ts.byKey, c.Key)
		case c.At.IsZero():
		case t != nil && !c.At.Before(t.ringsAt):
			t.at = c.At
		default:
			if t != nil {
				t.clock.Stop()
			}
			ts.set(c.Key, c.At)
		}
	}
}

func (ts *timers) set(key string, at time.Time) {
	t := &timer{key: key, at: at, ringsAt: at}
	ts.byKey[key] = t
	t.clock = ts.clock.AfterFunc(max(at.Sub(ts.clock.Now()), 0), func() { ts.ring(t) })
}

// due takes a timer that has rung out, and reports whether it has fired: not when
// it was cancelled or put off meanwhile.
func (ts *timers) due(t *timer) bool {
	if ts.byKey[t.key] != t {
		return false
	}
	delete(ts.byKey, t.key)
	if t.at.After(ts.clock.Now()) {
		ts.set(t.key, t.at)
		return false
	}
	return true
}

func (ts *timers) stop() {
	for _, t := range ts.byKey {
		t.clock.Stop()
	}
	clear(ts.byKey)
}

// unwritableRetry is how long a timer waits while the log takes no appends.
const unwritableRetry = time.Second

// fired lets the machine decide about a timer. What it decides may need the log.
func (in *instance[E, R, A]) fired(t *timer) {
	if !in.timers.due(t) {
		return
	}
	e := in.s.rt.o.Fired(t.key)
	if in.s.rt.o.MayWrite(e) && in.log.Writable() != nil {
		in.timers.set(t.key, in.s.rt.o.Clock.Now().Add(unwritableRetry))
		return
	}
	in.handle(e)
}
