package storage

import (
	"errors"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// DeleteRecordsTo moves the log's start up to an offset, which must not be above
// the high watermark, and returns the start. When it returns, the new start is
// durable; whole segments below it go with the next retention run.
func (l *Log) DeleteRecordsTo(offset int64) (logStart int64, err error) {
	if err := l.ensure(false); err != nil {
		return l.logStart.Load(), fmt.Errorf("delete records of %v: %w", l.tp, err)
	}
	l.mu.Lock()
	hw := l.highWatermark.Load()
	if offset < 0 || offset > hw {
		l.mu.Unlock()
		return l.logStart.Load(), fmt.Errorf("delete records of %v: %w: offset %d is not in [0, %d]", l.tp, ErrOffsetOutOfRange, offset, hw)
	}
	moved := l.raiseStartLocked(offset)
	l.mu.Unlock()
	if !moved {
		return l.logStart.Load(), nil
	}
	if err := l.store.writeCheckpoints(); err != nil {
		return l.logStart.Load(), fmt.Errorf("delete records of %v: %w: %w", l.tp, ErrOffline, err)
	}
	return l.logStart.Load(), nil
}

func (l *Log) raiseStartLocked(offset int64) bool {
	if offset <= l.logStart.Load() {
		return false
	}
	l.logStart.Store(offset)
	l.epochsNew = l.epochs.truncateFromStart(offset) || l.epochsNew
	return true
}

// RunRetention deletes what retention no longer keeps and forgets idle
// producers, in every log. It runs by itself every RetentionCheck.
//
// The log starts move first and are made durable, then the files go: a power cut
// may keep any of the renames, and must not leave a hole that is read.
func (s *Store) RunRetention() { s.retain(func(*Log) bool { return true }) }

// retain runs retention for some of the logs.
func (s *Store) retain(which func(*Log) bool) {
	var moved []*Log
	for _, l := range s.Logs() {
		if !which(l) {
			continue
		}
		some, err := l.moveStart()
		if err != nil && !errors.Is(err, ErrOffline) {
			s.env.Logger.Error("retention", "log", l.tp.String(), "err", err)
		}
		if some {
			moved = append(moved, l)
		}
	}
	if len(moved) == 0 {
		return
	}
	if err := s.writeCheckpoints(); err != nil {
		s.env.Logger.Error("write checkpoints", "err", err)
		if !isDiskFull(err) {
			return // only on a full disk is room worth more
		}
	}
	for _, l := range moved {
		if err := l.deleteBelowStart(); err != nil && !errors.Is(err, ErrOffline) {
			s.env.Logger.Error("retention", "log", l.tp.String(), "err", err)
		}
	}
}

// moveStart decides which segments go, oldest first, and moves the log's start
// behind them. Nothing at or above the high watermark goes; when every segment
// does, the log first rolls.
func (l *Log) moveStart() (some bool, err error) {
	if !l.loaded.Load() && l.nothingToRetain() || l.ensure(false) != nil {
		return false, nil // revive speaks for a log that is offline
	}
	err = l.change("retention", func() error {
		l.producers.Expire(l.nowMs(), l.store.cfg.ProducerIDExpirationMs)
		n, err := l.expiredLocked()
		if err != nil || n == 0 {
			return err
		}
		if n == len(l.list()) {
			if err := l.rollLocked(l.logEnd.Load()); err != nil {
				return err
			}
			// The new file's name is all that will tell where the log goes on.
			if err := l.store.env.FS.SyncDir(l.dir); err != nil {
				return err
			}
		}
		l.raiseStartLocked(l.list()[n].BaseOffset())
		some = true
		return nil
	})
	return some, err
}

// deleteBelowStart drops the segments that end at or below the log's start.
func (l *Log) deleteBelowStart() error {
	var names []string
	err := l.change("retention", func() error {
		segments, n := l.list(), 0
		for n+1 < len(segments) && segments[n+1].BaseOffset() <= l.logStart.Load() {
			n++
		}
		l.publish(slices.Clone(segments[n:]))
		for _, s := range segments[:n] {
			gone, err := l.deleteSegment(s)
			names = append(names, gone...)
			if err != nil {
				return err
			}
		}
		l.folderNew = l.folderNew || n > 0
		return nil
	})
	l.store.removeLater(l.Config().FileDeleteDelayMs, names...)
	return err
}

// nothingToRetain says that an unloaded log is empty, so that retention does not
// read thousands of folders for nothing.
func (l *Log) nothingToRetain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endKnown && l.logStart.Load() == l.logEnd.Load()
}

// expiredLocked is how many segments, oldest first, may go: those below the log
// start always; with cleanup.policy=delete those beyond retention.bytes, and
// those whose newest record is older than retention.ms.
func (l *Log) expiredLocked() (int, error) {
	segments, cfg := l.list(), l.Config()
	excess := int64(-1)
	if cfg.Delete && cfg.RetentionBytes >= 0 {
		excess = -cfg.RetentionBytes
		for _, s := range segments {
			excess += s.SizeBytes()
		}
	}
	n := 0
	for ; n < len(segments); n++ {
		s, end := segments[n], l.logEnd.Load()
		if n+1 < len(segments) {
			end = segments[n+1].BaseOffset()
		} else if s.SizeBytes() == 0 {
			break
		}
		if end > l.highWatermark.Load() {
			break
		}
		if n+1 < len(segments) && end <= l.logStart.Load() {
			excess -= s.SizeBytes()
			continue
		}
		if size := s.SizeBytes(); excess >= size && excess > 0 {
			excess -= size
			continue
		}
		old, err := l.tooOld(s, cfg)
		if err != nil || !old {
			return n, err
		}
		excess -= s.SizeBytes()
	}
	return n, nil
}

func (l *Log) tooOld(s *segment.Segment, cfg LogConfig) (bool, error) {
	if !cfg.Delete || cfg.RetentionMs < 0 {
		return false, nil
	}
	newest, _, err := s.MaxTimestamp()
	var bad *segment.CorruptError
	if err != nil && !errors.As(err, &bad) {
		return false, err
	}
	if newest < 0 || bad != nil {
		if newest, err = s.ModTimeMs(); err != nil {
			return false, err
		}
	}
	return l.nowMs()-newest > cfg.RetentionMs, nil
}

func (l *Log) deleteSegment(s *segment.Segment) ([]string, error) {
	names, err := s.Rename(segment.DeletedSuffix)
	if err != nil {
		return names, err
	}
	base := s.BaseOffset()
	if i := slices.Index(l.snapshots, base); i >= 0 && i < len(l.snapshots)-1 {
		if err := l.removeSnapshot(base); err != nil {
			return names, err
		}
		l.snapshots = slices.Delete(l.snapshots, i, i+1)
	}
	l.store.metrics.deletedSegments.Inc()
	l.store.env.Logger.Info("segment deleted", "log", l.tp.String(), "baseOffset", base, "bytes", s.SizeBytes())
	return names, nil
}
