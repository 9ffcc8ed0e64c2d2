package storage

import (
	"fmt"
	"math"
	"slices"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// rollIfDue starts a new segment when the next append does not fit the active
// one or segment.ms has passed.
func (l *Log) rollIfDue(sizeBytes int64, p pending, cfg *LogConfig) error {
	s := active(l.list())
	// The indexes of an empty one may be full: segment.index.bytes can be less than an entry.
	due := s.SizeBytes() > cfg.SegmentBytes-sizeBytes || !s.CanHold(p.last) ||
		s.SizeBytes() > 0 && s.IndexFull(cfg.SegmentIndexBytes)
	if !due && s.SizeBytes() > 0 {
		waited, err := l.waitedForRoll(s, p.maxTimestamp)
		if err != nil {
			return err
		}
		due = waited > l.rollAfter
	}
	if !due {
		return nil
	}
	// At the end of the log even when a replicated batch leaves a gap: a recovery
	// takes a gap between unsynced segments for a loss.
	return l.rollLocked(max(l.logEnd.Load(), p.last-math.MaxInt32))
}

// waitedForRoll counts from the first batch's timestamp to the newest one, so
// that replayed data rolls as it did before; without timestamps by the clock.
func (l *Log) waitedForRoll(s *segment.Segment, newestMs int64) (int64, error) {
	first, err := s.FirstTimestamp()
	if err != nil {
		return 0, err
	}
	if first >= 0 && newestMs >= 0 {
		return newestMs - first, nil
	}
	return l.elapsedMs() - l.createdMs, nil
}

// rollLocked seals the active segment and starts one at offset.
func (l *Log) rollLocked(offset int64) error {
	segments := l.list()
	old := active(segments)
	if old.BaseOffset() == offset {
		return fmt.Errorf("roll %v at offset %d: the active segment starts there", l.tp, offset)
	}
	if err := old.Seal(); err != nil {
		return err
	}
	s, err := segment.Create(l.store.seg, l.dir, offset, false)
	if err != nil {
		return err
	}
	l.createdMs, l.folderNew = l.elapsedMs(), true
	l.rollAfter = l.store.rollAfter(l.Config())
	l.publish(append(slices.Clip(slices.Clone(segments)), s))
	l.store.metrics.rolls.Inc()
	if err := l.snapshotLocked(offset); err != nil {
		return err
	}
	l.store.flushSoon(l)
	return nil
}
