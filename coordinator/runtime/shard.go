package runtime

import (
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/protocol"
)

type shardState int8

// A shard is cold until somebody needs it: an empty partition's files are not
// even opened. Its first load is opening, which takes milliseconds, so that
// requests wait for it; they are refused while it is loading, which is a load
// that took too long or failed.
const (
	cold shardState = iota
	opening
	loading
	serving
	closed
)

// maxQueuedJobs bounds what waits for one shard, maxParkedJobs how many requests
// wait for its first load, and how many callers wait for any.
const (
	maxQueuedJobs = 1 << 16
	maxParkedJobs = 1 << 14
)

// openingWait is how long requests wait for the first load.
const openingWait = 5 * time.Second

// shard is one partition's coordinator. Its jobs run one after another, on at
// most one goroutine at a time and on none while there are none.
type shard[E, R, A any] struct {
	rt        *Runtime[E, R, A]
	partition int32
	epoch     int32

	mu       sync.Mutex
	state    shardState
	closeErr error
	queue    []job[E, A]
	running  bool
	waiters  []func(error)
	reload   clock.Timer
	// parked are requests that wait for the first load, patience ends their wait.
	parked   []job[E, A]
	patience clock.Timer

	// What follows belongs to the goroutine that runs the jobs.

	// in is the loaded machine and all that goes with it, nil while there is
	// none.
	in *instance[E, R, A]
	// told are events that came before the machine was there.
	told []job[E, A]
	// failures counts failed loads and appends since the last good append.
	failures int
}

type jobKind int8

const (
	// jobLook loads a cold shard if there is a checkpoint, which means that the
	// partition has groups to look after.
	jobLook jobKind = iota
	jobLoad
	jobEvent
	jobLog
	jobTell
	jobReply
	jobTimer
	jobCommitted
	jobCheckpoint
	jobClose
)

// job is one piece of a shard's work.
type job[E, A any] struct {
	kind  jobKind
	event func(call uint64) E
	done  func(A, error)
	// onLog is a jobLog's: work on the log of the loaded instance.
	onLog func(instance any, call uint64)
	// timer and owner say whose timer, reply or commit it was: what belongs to an
	// earlier instance is ignored.
	timer *timer
	owner any
	err   error
	// then runs after a close.
	then func()
}

// start runs what was queued since the shard was made.
func (s *shard[E, R, A]) start() {
	s.mu.Lock()
	s.queue = append(s.queue, job[E, A]{kind: jobLook})
	s.mu.Unlock()
	s.rt.o.Go(s.run)
}

// submit queues a client's event, or says why it is not taken.
func (s *shard[E, R, A]) submit(j job[E, A]) error {
	s.mu.Lock()
	switch {
	case s.state == closed:
		defer s.mu.Unlock()
		return s.closeErr
	case s.state == loading, len(s.parked) >= maxParkedJobs:
		s.mu.Unlock()
		return s.loadInProgress()
	case s.state == serving && len(s.queue) >= maxQueuedJobs:
		s.mu.Unlock()
		return protocol.Errorf(kerr.CoordinatorNotAvailable, "%s-%d has %d requests waiting", s.rt.o.Topic, s.partition, maxQueuedJobs)
	case s.state == serving:
		s.putLocked(j)
	default:
		s.parkLocked(j)
	}
	return nil
}

// parkLocked lets a request wait for the first load, and releases s.mu.
func (s *shard[E, R, A]) parkLocked(j job[E, A]) {
	s.parked = append(s.parked, j)
	if s.patience == nil {
		s.patience = s.rt.o.Clock.AfterFunc(openingWait, func() { s.refuseParked(opening) })
	}
	s.openLocked()
	s.wakeLocked()
}

// openLocked queues the load of a cold shard.
func (s *shard[E, R, A]) openLocked() {
	if s.state == cold {
		s.state = opening
		s.queue = append(s.queue, job[E, A]{kind: jobLoad})
	}
}

// unparkLocked takes the requests that wait for the first load.
func (s *shard[E, R, A]) unparkLocked() []job[E, A] {
	parked := s.parked
	s.parked = nil
	if s.patience != nil {
		s.patience.Stop()
	}
	return parked
}

// refuseParked makes a shard that is in one of the given states a loading one:
// who waits for its first load, and whoever comes before it serves, is told so.
func (s *shard[E, R, A]) refuseParked(in ...shardState) {
	s.mu.Lock()
	if !slices.Contains(in, s.state) {
		s.mu.Unlock()
		return
	}
	s.state = loading
	parked := s.unparkLocked()
	s.mu.Unlock()
	failAll(parked, s.loadInProgress())
}

func failAll[E, A any](jobs []job[E, A], err error) {
	var none A
	for i := range jobs {
		jobs[i].done(none, err)
	}
}

func (s *shard[E, R, A]) loadInProgress() error {
	return protocol.Errorf(kerr.CoordinatorLoadInProgress, "%s-%d is loading", s.rt.o.Topic, s.partition)
}

// put queues the shard's own work.
func (s *shard[E, R, A]) put(j job[E, A]) {
	s.mu.Lock()
	s.putLocked(j)
}

// putLocked queues a job and releases s.mu.
func (s *shard[E, R, A]) putLocked(j job[E, A]) {
	s.queue = append(s.queue, j)
	s.wakeLocked()
}

// wakeLocked sees to it that somebody runs what is queued, and releases s.mu.
func (s *shard[E, R, A]) wakeLocked() {
	start := !s.running && len(s.queue) > 0
	s.running = s.running || start
	s.mu.Unlock()
	if start {
		s.rt.o.Go(s.run)
	}
}

// close fails everything that waits, with err, and all that comes later. then
// runs once the shard has stopped.
func (s *shard[E, R, A]) close(err error, then func()) {
	s.mu.Lock()
	s.state, s.closeErr = closed, err
	waiters := s.waiters
	s.waiters = nil
	parked := s.unparkLocked()
	if s.reload != nil {
		s.reload.Stop()
	}
	s.putLocked(job[E, A]{kind: jobClose, then: then})
	for _, w := range waiters {
		w(err)
	}
	failAll(parked, err)
}

func (s *shard[E, R, A]) whenServing(done func(error)) {
	s.mu.Lock()
	switch {
	case s.state == serving:
		s.mu.Unlock()
		done(nil)
	case s.state == closed:
		err := s.closeErr
		s.mu.Unlock()
		done(err)
	case len(s.waiters) >= maxParkedJobs:
		s.mu.Unlock()
		done(s.loadInProgress())
	default:
		s.waiters = append(s.waiters, done)
		s.openLocked()
		s.wakeLocked()
	}
}

// run works until the queue is empty.
func (s *shard[E, R, A]) run() {
	var spare []job[E, A]
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.running = false
			s.mu.Unlock()
			return
		}
		jobs := s.queue
		s.queue = spare[:0]
		s.mu.Unlock()
		for i := range jobs {
			s.do(jobs[i])
			jobs[i] = job[E, A]{}
		}
		spare = jobs
		if s.in != nil {
			s.in.checkpoint()
		}
	}
}

func (s *shard[E, R, A]) do(j job[E, A]) {
	switch j.kind {
	case jobLook:
		s.look()
	case jobLoad:
		s.load()
	case jobClose:
		s.told = nil
		s.drop(s.whyNot())
		if j.then != nil {
			j.then()
		}
	case jobEvent, jobLog:
		s.serveJob(j)
	case jobTell:
		if !s.isClosed() {
			s.tell(j)
		}
	case jobReply:
		if s.in != nil && j.owner == any(s.in) {
			s.in.replied(j)
		}
	case jobTimer:
		if s.in != nil && j.owner == any(s.in) {
			s.in.fired(j.timer)
		}
	case jobCommitted:
		if s.in != nil && j.owner == any(s.in) {
			s.in.release(j.err)
		}
	case jobCheckpoint:
		if s.in != nil && j.owner == any(s.in) {
			s.in.flushDue()
		}
	}
}

// serveJob runs a client's job, or says why there is no machine for it.
func (s *shard[E, R, A]) serveJob(j job[E, A]) {
	switch {
	case s.in == nil:
		var none A
		j.done(none, s.whyNot())
	case j.kind == jobLog:
		j.onLog(s.in, s.in.wait(j.done))
	default:
		s.in.event(j.event, j.done)
	}
}

func (s *shard[E, R, A]) whyNot() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed {
		return s.closeErr
	}
	return s.loadInProgress()
}

func (s *shard[E, R, A]) tell(j job[E, A]) {
	if s.in != nil {
		s.in.event(j.event, nil)
		return
	}
	if !s.wakeWritten() {
		return
	}
	if len(s.told) < maxQueuedJobs {
		s.told = append(s.told, j)
	}
}

// wakeWritten loads a cold shard whose partition has records. It is false for one
// that has none: its machine would have nothing to decide about.
func (s *shard[E, R, A]) wakeWritten() bool {
	s.mu.Lock()
	isCold := s.state == cold
	s.mu.Unlock()
	if isCold && !s.rt.o.Written(s.partition) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openLocked()
	return true
}

// drop forgets the machine and fails all calls that wait for its answers.
func (s *shard[E, R, A]) drop(err error) {
	in := s.in
	if in == nil {
		return
	}
	s.in = nil
	s.rt.metrics.serving.Add(-1)
	s.rt.o.Observe(in.machine, true)
	in.stop(err)
}
