package machine

import "time"

// Machine decides events of type E into records R and answers A. One goroutine
// calls it.
type Machine[E, R, A any] interface {
	// Handle decides; it changes nothing that Replay rebuilds.
	Handle(now time.Time, event E) Out[R, A]
	// Replay is the only way in which replayable state changes. offset is the
	// record's offset in its log.
	Replay(offset int64, record R)
}

// Out is what one event leads to.
type Out[R, A any] struct {
	// Records are appended as one atomic batch, then replayed.
	Records []R
	// Parts allows several batches where the records are many: each of them is of
	// use without the others, which a crash may take away.
	Parts bool
	// Answers go out once the records are committed; an event without records
	// answers once everything it could have seen is committed.
	Answers []A
	// Timers are set or, with a zero At, cancelled.
	Timers []Timer
}

// Timer asks for an event at a time; the same key replaces the earlier one.
type Timer struct {
	Key string
	At  time.Time
}
