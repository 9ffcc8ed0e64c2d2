package storage

import (
	"sync"
	"time"
)

// recoveryQueue recovers logs in the background after an unclean stop.
type recoveryQueue struct {
	mu      sync.Mutex
	logs    []*Log
	workers int
	total   int
	done    int
	stopped bool
	// report is what was recovered since the last summary, some of it by who
	// used a log first; fresh says that it has grown since it was looked at.
	report recoveryReport
	fresh  bool
}

// recoveryReport sums up recoveries. They ran between began and ended.
type recoveryReport struct {
	logs         int
	bytes        int64
	began, ended time.Time
}

func (q *recoveryQueue) add(s *Store, l *Log) {
	q.mu.Lock()
	q.logs = append(q.logs, l)
	q.total++
	start := q.workers < s.cfg.RecoveryThreads && !q.stopped
	if start {
		q.workers++
	}
	q.mu.Unlock()
	if start && !s.goWork(func() { q.run(s) }) {
		q.stop()
	}
}

func (q *recoveryQueue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped, q.logs = true, nil
}

func (q *recoveryQueue) run(s *Store) {
	for {
		l := q.next()
		if l == nil {
			return
		}
		_ = l.ensure(false) // an error took the log offline and was logged
		q.mu.Lock()
		q.done++
		q.mu.Unlock()
	}
}

func (q *recoveryQueue) next() *Log {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.logs) == 0 {
		q.workers--
		return nil
	}
	l := q.logs[0]
	q.logs = q.logs[1:]
	return l
}

// recovered notes a log that was recovered, by whomever.
func (q *recoveryQueue) recovered(began, ended time.Time, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := &q.report
	if r.logs == 0 || began.Before(r.began) {
		r.began = began
	}
	r.ended, r.bytes, r.logs, q.fresh = ended, r.bytes+bytes, r.logs+1, true
}

// progressEvery is how often a recovery says how far it is.
const progressEvery = time.Second

// tell says how far the recovery is, or sums it up once nothing more has come for
// a while; with last, at once. A line for each log would bury all others.
func (q *recoveryQueue) tell(env Env, last bool) {
	q.mu.Lock()
	done, found, r := q.done, q.total, q.report
	over := last || done == found && !q.fresh
	if over {
		q.done, q.total, q.report = 0, 0, recoveryReport{}
	}
	q.fresh = false
	q.mu.Unlock()
	switch {
	case !over && done < found:
		env.Logger.Info("recovering logs after an unclean stop", "done", done, "found", found, "bytes", r.bytes)
	case over && r.logs > 0:
		env.Logger.Info("logs recovered", "partitions", r.logs, "bytes", r.bytes, "took", r.ended.Sub(r.began))
	}
}
