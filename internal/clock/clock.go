package clock

import "time"

// Clock reads the time and schedules work. Implementations are safe for
// concurrent use.
type Clock interface {
	// Now is the current time; readings of one Real clock carry Go's
	// monotonic part, so differences never go back.
	Now() time.Time
	// Elapsed is the time since some moment: unlike Now it goes on when the system's
	// time is set. What is kept as a number to measure from is of it.
	Elapsed() time.Duration
	// AfterFunc runs f once, in a goroutine of its own, when d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is one scheduled call.
type Timer interface {
	// Stop prevents the call; false means it has started or was stopped.
	Stop() bool
	// Reset schedules the call d from now, whatever its state; it reports
	// whether the timer was still active.
	Reset(d time.Duration) bool
}

// Milliseconds is a duration of ms, as long as one can be where ms is too large: 292
// years, less than what a configuration may ask for.
func Milliseconds(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(ms, -most), most)) * time.Millisecond
}

type realClock struct{ started time.Time }

// Real is the system's clock.
func Real() Clock { return realClock{started: time.Now()} }

func (realClock) Now() time.Time { return time.Now() }

func (c realClock) Elapsed() time.Duration { return time.Since(c.started) }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
