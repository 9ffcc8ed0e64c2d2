package storage

import (
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// TruncateTo drops every record from an offset on. A batch that holds it goes
// whole, so the log may then end before the offset. Epochs and producers are
// those of what remains.
func (l *Log) TruncateTo(offset int64) error {
	return l.change("truncate", func() error {
		if offset >= l.logEnd.Load() {
			return nil
		}
		if offset <= l.logStart.Load() && offset <= l.list()[0].BaseOffset() {
			return l.restartLocked(offset)
		}
		return l.truncateLocked(offset)
	})
}

// TruncateFullyAndStartAt drops everything; the log goes on at offset.
func (l *Log) TruncateFullyAndStartAt(offset int64) error {
	return l.change("restart", func() error { return l.restartLocked(offset) })
}

// change runs a rewriting of the log that no flush may overlap. An error leaves
// the log offline, and its files decide.
func (l *Log) change(what string, fn func() error) error {
	if err := l.ensure(false); err != nil {
		return fmt.Errorf("%s %v: %w", what, l.tp, err)
	}
	release := l.take()
	defer release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return fmt.Errorf("%s %v: %w", what, l.tp, err)
	}
	if err := fn(); err != nil {
		l.fail(fmt.Errorf("%s log %v: %w", what, l.tp, err), offlineBroken)
		return fmt.Errorf("%s %v: %w", what, l.tp, l.Err())
	}
	return nil
}

// lowerRecoveryPoint makes the checkpoint say less before the files do: after a
// crash, what is written again at these offsets must be checked.
func (l *Log) lowerRecoveryPoint(offset int64) error {
	l.cuts.Add(1)
	l.durable.Store(min(l.durable.Load(), offset))
	// What is written again at these offsets was never cleaned.
	l.cleanedTo.Store(min(l.cleanedTo.Load(), offset))
	if l.recoveryPoint.Load() <= offset {
		return nil // and compaction never reaches further than that
	}
	l.recoveryPoint.Store(offset)
	return l.store.writeCheckpoints()
}

func (l *Log) truncateLocked(offset int64) error {
	if err := l.lowerRecoveryPoint(offset); err != nil {
		return err
	}
	segments := l.list()
	keep := max(floorSegment(segments, offset), 0)
	if segments[keep].BaseOffset() == offset && keep > 0 {
		keep-- // an empty segment in the middle of nothing is of no use
	}
	// Readers first stop seeing what goes.
	l.logEnd.Store(offset)
	kept := slices.Clone(segments[:keep+1])
	l.publish(kept)
	if err := l.dropSegments(segments[keep+1:]); err != nil {
		return err
	}
	end, err := active(kept).Truncate(offset)
	if err != nil {
		return err
	}
	if end > offset || end < l.list()[0].BaseOffset() {
		return fmt.Errorf("truncating to offset %d left the end at %d", offset, end)
	}
	// In the middle of a batch, or behind a gap, the log ends before offset.
	return l.afterCut(max(end, l.logStart.Load()))
}

// restartLocked replaces all segments by an empty one at offset.
func (l *Log) restartLocked(offset int64) error {
	if err := l.lowerRecoveryPoint(offset); err != nil {
		return err
	}
	for _, s := range l.list() {
		if s.BaseOffset() == offset {
			// Its name is needed again: it goes first.
			if err := l.dropSegments([]*segment.Segment{s}); err != nil {
				return err
			}
		}
	}
	s, err := segment.Create(l.store.seg, l.dir, offset, false)
	if err != nil {
		return err
	}
	// The new file's name is all that will tell where the log goes on.
	if err := l.store.env.FS.SyncDir(l.dir); err != nil {
		return err
	}
	old := slices.DeleteFunc(slices.Clone(l.list()), func(o *segment.Segment) bool { return o.BaseOffset() == offset })
	if err := l.dropSegments(old); err != nil {
		return err
	}
	l.publish([]*segment.Segment{s})
	l.logStart.Store(offset)
	l.logEnd.Store(offset)
	l.recoveryPoint.Store(offset)
	for _, at := range l.snapshots {
		if err := l.removeSnapshot(at); err != nil {
			return err
		}
	}
	l.snapshots, l.epochs = nil, nil
	return l.afterCut(offset)
}

// afterCut brings what hangs on the log's end in line with it, and makes the cut
// durable: a snapshot or segment that a crash brought back would lie.
func (l *Log) afterCut(end int64) error {
	l.logEnd.Store(end)
	l.growingTo.Store(end)
	l.highWatermark.Store(min(l.highWatermark.Load(), end))
	changed := l.epochs.truncateFromEnd(end)
	changed = l.epochs.truncateFromStart(l.logStart.Load()) || changed
	l.epochsNew = l.epochsNew || changed
	if err := l.loadProducersLocked(end, end, false); err != nil {
		return err
	}
	if err := placeFile(l.store.env.FS, l.path(epochFile), EncodeEpochs(l.epochs), true); err != nil {
		return err
	}
	if err := active(l.list()).SyncLog(); err != nil {
		l.noteSyncFailed()
		return err
	}
	return l.store.env.FS.SyncDir(l.dir)
}

// dropSegments removes segments from disk: renamed now, removed later.
func (l *Log) dropSegments(segments []*segment.Segment) error {
	for _, s := range segments {
		names, err := s.Rename(segment.DeletedSuffix)
		if err != nil {
			return err
		}
		l.store.removeLater(l.Config().FileDeleteDelayMs, names...)
	}
	l.folderNew = l.folderNew || len(segments) > 0
	return nil
}
