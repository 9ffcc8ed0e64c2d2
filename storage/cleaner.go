package storage

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/storage/compact"
)

// CleanerConfig bounds what compaction uses. Its zero value compacts nothing.
type CleanerConfig struct {
	// Threads is how many logs are cleaned at the same time.
	Threads int
	// DedupeBufferBytes is the memory for keys, IOBufferBytes that for reading and
	// writing; the threads share both. LoadFactor is how full the memory for keys
	// may get.
	DedupeBufferBytes int64
	IOBufferBytes     int
	LoadFactor        float64
	// MaxBytesPerSecond bounds reading and writing; 0 is no limit.
	MaxBytesPerSecond float64
	// Backoff is the time between two looks when nothing is to be cleaned.
	Backoff time.Duration
}

// The values that stand in for a CleanerConfig's zeros: Kafka's defaults.
const (
	defaultDedupeBuffer   = 128 << 20
	defaultCleanerIO      = 512 << 10
	defaultLoadFactor     = 0.9
	defaultCleanerBackoff = 15 * time.Second
	// maxDedupeBuffer bounds the memory of one thread, as in Kafka.
	maxDedupeBuffer = 1<<31 - 1
)

func (c CleanerConfig) withDefaults() CleanerConfig {
	c.DedupeBufferBytes = orDefault(c.DedupeBufferBytes, defaultDedupeBuffer)
	c.IOBufferBytes = orDefault(c.IOBufferBytes, defaultCleanerIO)
	if c.LoadFactor <= 0 || c.LoadFactor > 1 {
		c.LoadFactor = defaultLoadFactor
	}
	c.Backoff = max(orDefault(c.Backoff, defaultCleanerBackoff), time.Millisecond)
	return c
}

// cleaner compacts the logs of a store whose cleanup.policy says so. Its workers
// sleep as long as there is no such log.
type cleaner struct {
	s    *Store
	rate throttle
	// stop is closed when the store is.
	stop chan struct{}
	// choosing orders the workers' choices.
	choosing sync.Mutex

	mu      sync.Mutex
	cfg     CleanerConfig
	timers  []clock.Timer          // one for each worker; nil for one that sleeps
	busy    map[*Log]chan struct{} // closed when the cleaning has ended
	spoilt  map[*Log]error         // uncleanable, and why
	full    bool                   // a cleaning had no room, and the log says so
	last    []compact.Stats
	elapsed []time.Duration
	lastRun time.Time

	// promised is the room that cleanings have and did not use yet.
	promised atomic.Int64

	// What the last look found.
	maxDirty, cleanable, overdueMs atomic.Int64 // percent; bytes; milliseconds
}

func newCleaner(s *Store, cfg CleanerConfig) *cleaner {
	c := &cleaner{s: s, stop: make(chan struct{}), cfg: cfg.withDefaults(), busy: map[*Log]chan struct{}{}, spoilt: map[*Log]error{}, lastRun: s.env.Clock.Now()}
	c.rate.clock = s.env.Clock
	c.rate.setRate(cfg.MaxBytesPerSecond)
	return c
}

// ReconfigureCleaner replaces the configuration of compaction; what is being
// cleaned goes on as it began.
func (s *Store) ReconfigureCleaner(cfg CleanerConfig) {
	c := s.cleaner
	c.mu.Lock()
	c.cfg = cfg.withDefaults()
	c.mu.Unlock()
	c.rate.setRate(cfg.MaxBytesPerSecond)
	c.wake()
}

// wake starts the workers that sleep, if there is a log for them.
func (c *cleaner) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.cfg.Threads {
		c.armLocked(i)
	}
}

func (c *cleaner) armLocked(worker int) {
	for len(c.timers) <= worker {
		c.timers, c.last, c.elapsed = append(c.timers, nil), append(c.last, compact.Stats{}), append(c.elapsed, 0)
	}
	if c.timers[worker] != nil || c.stopped() || !c.s.compacts() {
		return
	}
	c.timers[worker] = c.s.env.Clock.AfterFunc(c.cfg.Backoff, func() {
		if !c.s.begin() {
			return
		}
		c.run(worker)
		c.s.work.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timers[worker] = nil
		if worker < c.cfg.Threads {
			c.armLocked(worker)
		}
	})
}

// compacts says that a log is to be compacted.
func (s *Store) compacts() bool {
	return slices.ContainsFunc(s.Logs(), func(l *Log) bool { return l.cfg.Load().Compact })
}

func (c *cleaner) stopped() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// close ends what is being cleaned. The store waits for the workers.
func (c *cleaner) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.stop)
	for _, t := range c.timers {
		if t != nil {
			t.Stop()
		}
	}
}

// cleanWorker is what one worker uses while it works.
type cleanWorker struct {
	*compact.Cleaner
	cfg     CleanerConfig
	offsets *compact.OffsetMap
	// check says whether the current round still makes sense.
	check func() error
	// onPace is called with every piece of work; tests set it.
	onPace func()
}

func (c *cleaner) newWorker() *cleanWorker {
	c.mu.Lock()
	w := &cleanWorker{cfg: c.cfg}
	c.mu.Unlock()
	threads := max(w.cfg.Threads, 1)
	w.cfg.DedupeBufferBytes = min(w.cfg.DedupeBufferBytes/int64(threads), maxDedupeBuffer)
	// Half is for reading, half for writing.
	w.Cleaner = compact.NewCleaner(w.cfg.IOBufferBytes/threads/2, func(bytes int) error {
		if w.onPace != nil {
			w.onPace()
		}
		check := func() error {
			if c.stopped() {
				return errAbandoned
			}
			return w.check()
		}
		if err := check(); err != nil {
			return err
		}
		return c.rate.wait(c.rate.take(bytes), c.stop, check)
	})
	return w
}

// newMap makes the table of keys: as large as the offsets that it may have to
// hold ask for, and no larger than its share of the memory.
func (w *cleanWorker) newMap(keys int64) *compact.OffsetMap {
	slots := compact.Slots(keys, w.cfg.DedupeBufferBytes, w.cfg.LoadFactor)
	if w.offsets == nil {
		w.offsets = compact.NewOffsetMap(slots, w.cfg.LoadFactor)
	} else {
		w.offsets.Reset(slots, w.cfg.LoadFactor)
	}
	return w.offsets
}

// run cleans one log after the other until there is none to clean.
func (c *cleaner) run(worker int) {
	var w *cleanWorker
	if worker == 0 {
		c.openIdle()
	}
	skip := map[*Log]bool{} // of these nothing more is to be had in this run
	for !c.stopped() {
		l, plan := c.choose(skip)
		if l == nil {
			break
		}
		if w == nil {
			w = c.newWorker()
		}
		skip[l] = !c.cleanLog(worker, w, l, plan)
		c.mu.Lock()
		close(c.busy[l])
		delete(c.busy, l)
		c.mu.Unlock()
	}
	if worker == 0 && !c.stopped() {
		// As in Kafka, the cleaner also deletes what compacted logs need not keep.
		c.s.retain(func(l *Log) bool { return l.loaded.Load() && l.cfg.Load().Compact && l.cfg.Load().Delete })
	}
}

// await returns when the log is not being cleaned; one that is closed or deleted
// ends that soon.
func (c *cleaner) await(l *Log) {
	c.mu.Lock()
	done := c.busy[l]
	c.mu.Unlock()
	if done != nil {
		<-done
	}
}

// choose picks the log that needs cleaning most and marks it as taken.
func (c *cleaner) choose(skip map[*Log]bool) (*Log, compact.Plan) {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	logs := c.candidates()
	var best *Log
	var plan compact.Plan
	var dirtiest float64
	var cleanable, overdue int64
	for _, l := range logs {
		p, err := l.compactionPlan()
		if err != nil {
			if !errors.Is(err, errAbandoned) {
				c.spoil(l, err)
			}
			continue
		}
		l.startOver(p)
		dirtiest, cleanable, overdue = max(dirtiest, p.Ratio()), cleanable+p.DirtyBytes, max(overdue, p.OverdueMs)
		if !skip[l] && p.Due(l.cfg.Load().MinCleanableRatio) && (best == nil || p.Before(plan)) {
			best, plan = l, p
		}
	}
	c.maxDirty.Store(int64(100 * dirtiest))
	c.cleanable.Store(cleanable)
	c.overdueMs.Store(overdue)
	if best != nil {
		c.mu.Lock()
		c.busy[best] = make(chan struct{})
		c.mu.Unlock()
	}
	return best, plan
}

// openIdle loads the compacted logs that nobody has used since the start, one after
// the other: what they have to clean is not known before. The first look does that,
// a while after the start, so that a start opens none.
func (c *cleaner) openIdle() {
	for _, l := range c.s.Logs() {
		if c.stopped() {
			return
		}
		if l.cfg.Load().Compact && !l.loaded.Load() && l.Err() == nil && !l.nothingToRetain() {
			_ = l.ensure(false) // it is offline then, and the log of the broker says why
		}
	}
}

// candidates are the logs that may be cleaned now, in a fixed order.
func (c *cleaner) candidates() []*Log {
	all := c.s.Logs()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastRun = c.s.env.Clock.Now()
	open := make(map[*Log]struct{}, len(all))
	logs := slices.DeleteFunc(all, func(l *Log) bool {
		open[l] = struct{}{}
		_, busy := c.busy[l]
		_, spoilt := c.spoilt[l]
		return busy || spoilt || !l.cfg.Load().Compact || !l.loaded.Load() || l.Err() != nil
	})
	for l := range c.spoilt {
		if _, ok := open[l]; !ok {
			delete(c.spoilt, l)
		}
	}
	slices.SortFunc(logs, func(a, b *Log) int {
		return cmp.Or(cmp.Compare(a.tp.Topic, b.tp.Topic), cmp.Compare(a.tp.Partition, b.tp.Partition))
	})
	return logs
}

// cleanLog does one round; false when another makes no sense for now.
func (c *cleaner) cleanLog(worker int, w *cleanWorker, l *Log, p compact.Plan) bool {
	began := c.s.env.Clock.Now()
	w.Stats = compact.Stats{}
	end, err := l.clean(w, p)
	took := c.s.env.Clock.Now().Sub(began)
	c.s.metrics.cleaned(w.Stats)
	switch {
	case err == nil:
		c.mu.Lock()
		c.last[worker], c.elapsed[worker], c.full = w.Stats, took, false
		c.mu.Unlock()
		c.s.metrics.cleanings.Inc()
		c.s.env.Logger.Info("log compacted", "log", l.tp.String(), "from", p.FirstDirty, "to", end,
			"bytesRead", w.Stats.BytesRead, "bytesWritten", w.Stats.BytesWritten,
			"recordsRead", w.Stats.RecordsRead, "recordsWritten", w.Stats.RecordsWritten, "took", took)
		if n := w.Stats.KeylessRecords; n > 0 {
			c.s.env.Logger.Warn("compaction dropped records without a key", "log", l.tp.String(), "records", n)
		}
		return true
	case errors.Is(err, errNoRoom):
		c.mu.Lock()
		told := c.full
		c.full = true
		c.mu.Unlock()
		if !told {
			c.s.env.Logger.Warn("a log is not compacted now", "log", l.tp.String(), "err", err)
		}
	case errors.Is(err, errAbandoned) || errors.Is(err, ErrOffline) || l.Err() != nil:
		c.s.env.Logger.Debug("a cleaning was abandoned", "log", l.tp.String(), "err", err)
	default:
		c.spoil(l, err)
	}
	return false
}

// spoil gives a log up until the next start; the others go on.
func (c *cleaner) spoil(l *Log, err error) {
	c.mu.Lock()
	c.spoilt[l] = err
	c.mu.Unlock()
	c.s.env.Logger.Error("a log can't be compacted and is left as it is until the next start", "log", l.tp.String(), "err", err)
}

// CompactionState is how far the compaction of a log is.
type CompactionState struct {
	// CleanedTo is where the part ends that was compacted; all dirty records that
	// may be compacted now are between it and End.
	CleanedTo, End         int64
	CleanBytes, DirtyBytes int64
	// ActiveBytes are in the active segment, which is not compacted before it rolls.
	ActiveBytes int64
	// Err is why the log is not compacted any more.
	Err error
}

// DirtyRatio is the dirty part of what may be compacted now.
func (s CompactionState) DirtyRatio() float64 {
	return compact.Plan{CleanBytes: s.CleanBytes, DirtyBytes: s.DirtyBytes}.Ratio()
}

// Compaction is how far the compaction of the log is; ok is false when it is not
// compacted, or not in use yet.
func (l *Log) Compaction() (state CompactionState, ok bool) {
	if !l.cfg.Load().Compact {
		return state, false
	}
	p, err := l.compactionPlan()
	if err != nil {
		return state, false
	}
	c := l.store.cleaner
	c.mu.Lock()
	defer c.mu.Unlock()
	state = CompactionState{CleanedTo: p.FirstDirty, End: p.End, CleanBytes: p.CleanBytes, DirtyBytes: p.DirtyBytes, Err: c.spoilt[l]}
	state.ActiveBytes = active(l.list()).SizeBytes()
	return state, true
}

// Compaction is Log.Compaction of an opened log.
func (s *Store) Compaction(tp TopicPartition) (state CompactionState, ok bool) {
	l, ok := s.Log(tp)
	if !ok {
		return state, false
	}
	return l.Compaction()
}
