package storage

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// startTimers starts what runs again and again.
func (s *Store) startTimers() {
	s.every(healthEvery, s.health)
	s.every(progressEvery, func() { s.recovering.tell(s.env, false) })
	s.every(s.cfg.CheckpointEvery, s.checkpointRun)
	s.every(s.cfg.RetentionCheck, s.RunRetention)
}

// every runs f in its own goroutine, period after the last run ended, until the
// store is closed.
func (s *Store) every(period time.Duration, f func()) {
	if period <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armLocked(len(s.timers), period, f)
}

func (s *Store) armLocked(slot int, period time.Duration, f func()) {
	t := s.env.Clock.AfterFunc(period, func() {
		if !s.begin() {
			return
		}
		f()
		s.work.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			s.armLocked(slot, period, f)
		}
	})
	if slot == len(s.timers) {
		s.timers = append(s.timers, t)
	} else {
		s.timers[slot] = t
	}
}

// begin counts a piece of work that Close waits for.
func (s *Store) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// health looks after what can't wait for retention: free space, partitions that
// may come back, flush.ms, delayed deletions.
func (s *Store) health() {
	if s.look(); s.removed() {
		return
	}
	s.measureRoom()
	s.tellRoom()
	for _, l := range s.Logs() {
		if o := l.broken.Load(); o != nil {
			l.revive()
			continue
		}
		if l.flushDue() {
			if err := l.Flush(); err != nil && !errors.Is(err, ErrOffline) {
				s.env.Logger.Error("flush", "log", l.tp.String(), "err", err)
			}
		}
	}
	s.removeDue()
}

// look finds out whether the directory is there still: whoever removes it takes
// away what is acknowledged, and writes to open files go on to succeed. Another one
// of that name may be another broker's by now.
func (s *Store) look() {
	now, err := s.env.FS.Stat(s.path(lockFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !vfs.SameFile(now, s.locked) {
		s.removedOnce.Do(func() { close(s.gone) })
	}
}

// Removed is closed when the directory has been removed, or moved, under the store.
// Nothing that is written from then on will be found again.
func (s *Store) Removed() <-chan struct{} { return s.gone }

func (s *Store) removed() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// flushDue says that flush.ms has passed with something to flush.
func (l *Log) flushDue() bool {
	if l.Config().FlushMs == maxInt64 || l.unflushed.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.elapsedMs()-l.flushedMs >= l.Config().FlushMs
}

const maxInt64 = 1<<63 - 1

func (s *Store) checkpointRun() {
	if err := s.writeCheckpoints(); err != nil {
		s.env.Logger.Error("write checkpoints", "err", err)
	}
}

// writeCheckpoints writes recovery points, high watermarks and log starts of all
// logs. It takes no log's lock.
func (s *Store) writeCheckpoints() error {
	s.maintenance <- struct{}{}
	defer func() { <-s.maintenance }()
	if s.look(); s.removed() {
		return ErrRemoved
	}
	all, cleared := s.collect()
	changed := false
	for _, c := range all {
		if before, ok := s.written[c.name]; ok && maps.Equal(before, c.offsets) {
			continue // an idle broker leaves the disk alone
		}
		delete(s.written, c.name)
		if err := placeFile(s.env.FS, s.path(c.name), c.offsets.Encode(), true); err != nil {
			return err
		}
		changed = true
	}
	if changed {
		if err := s.env.FS.SyncDir(s.dir); err != nil {
			clear(s.written)
			return err
		}
	}
	for _, c := range all {
		s.written[c.name] = c.offsets
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tp := range cleared {
		delete(s.leftover, tp)
	}
	return nil
}

// checkpointFile is what one file of offsets is to hold.
type checkpointFile struct {
	name    string
	offsets OffsetCheckpoint
}

// collect gathers the offsets of the opened logs, and what was read at start of
// the others. What was left over when it did is not in there.
func (s *Store) collect() (all []checkpointFile, cleared []TopicPartition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.logs) + len(s.points)
	points, marks, starts := make(OffsetCheckpoint, n), make(OffsetCheckpoint, n), make(OffsetCheckpoint, n)
	cleaned := OffsetCheckpoint{}
	for _, c := range []struct{ to, from OffsetCheckpoint }{{points, s.points}, {marks, s.marks}, {starts, s.starts}, {cleaned, s.cleaned}} {
		for tp, offset := range c.from {
			if _, found := s.folders[tp.String()]; found {
				c.to[tp] = offset
			}
		}
	}
	for tp, l := range s.logs {
		points[tp] = l.recoveryPoint.Load()
		marks[tp] = l.highWatermark.Load()
		if l.loaded.Load() || l.startKnown.Load() {
			starts[tp] = l.logStart.Load()
		}
		if offset := l.cleanedTo.Load(); offset >= 0 {
			cleaned[tp] = offset
		}
	}
	all = []checkpointFile{{recoveryPointFile, points}, {highWatermarkFile, marks}, {logStartFile, starts}}
	if len(cleaned) > 0 || s.everCleaned {
		s.everCleaned = true
		all = append(all, checkpointFile{cleanedFile, cleaned})
	}
	for tp := range s.leftover {
		if _, open := s.logs[tp]; !open {
			cleared = append(cleared, tp)
		}
	}
	return all, cleared
}

// removeLater removes files or folders when their delay is over.
func (s *Store) removeLater(delayMs int64, paths ...string) {
	if len(paths) == 0 {
		return
	}
	at := s.env.Clock.Now().Add(clock.Milliseconds(max(delayMs, 0)))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range paths {
		s.later = append(s.later, removal{at: at, path: p})
	}
}

func (s *Store) removeDue() {
	now := s.env.Clock.Now()
	s.mu.Lock()
	var due []string
	s.later = slices.DeleteFunc(s.later, func(r removal) bool {
		if r.at.After(now) {
			return false
		}
		due = append(due, r.path)
		return true
	})
	s.mu.Unlock()
	for _, p := range due {
		if err := s.env.FS.RemoveAll(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.env.Logger.Warn("a deleted file can't be removed now; the next start tries again", "path", p, "err", err)
		}
	}
}
