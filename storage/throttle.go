package storage

import (
	"math"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
)

// throttle spreads work over time, for everyone who shares it.
type throttle struct {
	clock clock.Clock

	mu sync.Mutex
	// perSecond is the most bytes a second; 0 is no limit.
	perSecond float64
	// free is when everything that was let through so far is paid for.
	free time.Time
}

const (
	// throttleSlack is the time that work may be ahead before it waits: timers are
	// not exact, and small waits cost more than they bring.
	throttleSlack = 50 * time.Millisecond
	// throttleLook is the longest wait after which the work is asked whether it
	// still makes sense.
	throttleLook = 300 * time.Millisecond
)

func (t *throttle) setRate(perSecond float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if perSecond < 0 || math.IsInf(perSecond, 0) || math.IsNaN(perSecond) || perSecond >= math.MaxInt64 {
		perSecond = 0
	}
	t.perSecond, t.free = perSecond, time.Time{}
}

// take counts bytes and returns how long to wait for them.
func (t *throttle) take(bytes int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.perSecond == 0 || bytes == 0 {
		return 0
	}
	now := t.clock.Now()
	if t.free.Before(now) {
		t.free = now
	}
	t.free = t.free.Add(time.Duration(min(float64(bytes)/t.perSecond, 3600) * float64(time.Second)))
	if wait := t.free.Sub(now); wait > throttleSlack {
		return wait
	}
	return 0
}

// wait waits, and asks now and then whether to go on.
func (t *throttle) wait(d time.Duration, stop <-chan struct{}, check func() error) error {
	for d > 0 {
		slice := min(d, throttleLook)
		d -= slice
		over := make(chan struct{})
		timer := t.clock.AfterFunc(slice, func() { close(over) })
		select {
		case <-over:
		case <-stop:
			timer.Stop()
		}
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
