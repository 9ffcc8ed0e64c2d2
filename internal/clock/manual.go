package clock

import (
	"sync"
	"time"
)

// Manual is a clock that moves only when told to. Its calls run on the
// goroutine that calls Advance, in order of their time, so tests need no waits.
type Manual struct {
	mu  sync.Mutex
	now time.Time
	// started is when Now would have been with an Elapsed of zero.
	started time.Time
	timers  map[*manualTimer]struct{}
	seq     uint64
}

// NewManual is a clock that stands at start.
func NewManual(start time.Time) *Manual {
	return &Manual{now: start, started: start, timers: map[*manualTimer]struct{}{}}
}

type manualTimer struct {
	clock *Manual
	at    time.Time
	seq   uint64
	f     func()
}

// Now is the time set by the last Advance.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Elapsed is the sum of what the clock was advanced by.
func (m *Manual) Elapsed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now.Sub(m.started)
}

// Step sets the time to what it is plus d, as an administrator does: nothing becomes
// due, and no time has passed.
func (m *Manual) Step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now, m.started = m.now.Add(d), m.started.Add(d)
	for t := range m.timers {
		t.at = t.at.Add(d)
	}
}

// AfterFunc schedules f; it runs inside the Advance that reaches its time.
func (m *Manual) AfterFunc(d time.Duration, f func()) Timer {
	t := &manualTimer{clock: m, f: f}
	t.Reset(d)
	return t
}

// Advance moves the clock by d and runs what became due, earliest first.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	end := m.now.Add(d)
	for {
		t := m.nextDueLocked(end)
		if t == nil {
			break
		}
		delete(m.timers, t)
		if t.at.After(m.now) {
			m.now = t.at
		}
		m.mu.Unlock()
		t.f()
		m.mu.Lock()
	}
	m.now = end
	m.mu.Unlock()
}

// Pending is the number of calls that are scheduled.
func (m *Manual) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.timers)
}

func (m *Manual) nextDueLocked(end time.Time) *manualTimer {
	var best *manualTimer
	for t := range m.timers {
		if t.at.After(end) {
			continue
		}
		if best == nil || t.at.Before(best.at) || (t.at.Equal(best.at) && t.seq < best.seq) {
			best = t
		}
	}
	return best
}

func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, active := t.clock.timers[t]
	delete(t.clock.timers, t)
	return active
}

func (t *manualTimer) Reset(d time.Duration) bool {
	m := t.clock
	m.mu.Lock()
	defer m.mu.Unlock()
	_, active := m.timers[t]
	m.seq++
	t.seq, t.at = m.seq, m.now.Add(d)
	m.timers[t] = struct{}{}
	return active
}
