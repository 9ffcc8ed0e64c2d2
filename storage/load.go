package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// ensure loads the log if nobody has. With peek, known offsets are enough.
func (l *Log) ensure(peek bool) error {
	if l.loaded.Load() {
		return l.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if peek && l.endKnown {
		return nil
	}
	return l.ensureLocked()
}

func (l *Log) ensureLocked() error {
	if l.loaded.Load() || l.dead.Load() || l.broken.Load() != nil {
		return l.Err()
	}
	if err := l.loadLocked(); err != nil {
		l.fail(fmt.Errorf("load log %v: %w", l.tp, err), offlineBroken)
		return l.Err()
	}
	return nil
}

// files is what the partition's folder holds.
type folderFiles struct {
	bases     []int64 // of the .log files, rising
	sizes     map[int64]segment.Sizes
	snapshots []int64
	rubbish   []string
	// lost says that a sync failed: unsynced bytes must be written again.
	lost bool
	left interrupted
}

// loadLocked reads the folder. After an unclean stop it recovers.
func (l *Log) loadLocked() error {
	began := l.store.env.Clock.Now()
	files, err := l.listFolder()
	if err == nil && files.left.any() {
		if err = l.finishSwap(&files.left, files); err == nil {
			files, err = l.listFolder()
		}
	}
	if err != nil {
		return err
	}
	for _, name := range files.rubbish {
		if err := l.store.env.FS.Remove(l.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	segments, err := l.openSegments(files)
	if err != nil {
		return err
	}
	l.snapshots = files.snapshots
	l.syncedTo = l.recoveryPoint.Load()
	if files.lost {
		l.unclean, l.rewrite = true, true
	}
	if l.epochs, err = l.readEpochs(); err != nil {
		return err
	}
	var end int64
	if l.unclean {
		segments, end, err = l.recoverLocked(segments)
	} else {
		end, err = active(segments).LoadEnd()
		var bad *segment.CorruptError
		if errors.As(err, &bad) || errors.Is(err, segment.ErrCorruptIndex) {
			l.store.env.Logger.Error("a log that was stopped cleanly is damaged and is recovered", "log", l.tp.String(), "err", err)
			segments, end, err = l.recoverLocked(segments)
		}
	}
	if err != nil {
		return err
	}
	if err := l.settleLocked(segments, end); err != nil {
		return err
	}
	if l.unclean {
		ended := l.store.env.Clock.Now()
		l.store.recovering.recovered(began, ended, l.scannedBytes)
		l.store.env.Logger.Debug("log recovered", "log", l.tp.String(), "logStartOffset", l.logStart.Load(), "logEndOffset", end,
			"bytes", l.scannedBytes, "took", ended.Sub(began))
	}
	if files.lost {
		if err := l.forgetSyncFailed(); err != nil {
			return err
		}
	}
	l.unclean, l.rewrite = false, false
	l.loaded.Store(true)
	return nil
}

// settleLocked publishes what was found.
func (l *Log) settleLocked(segments []*segment.Segment, end int64) error {
	start := max(l.logStart.Load(), segments[0].BaseOffset())
	if start > end {
		// The checkpoint is ahead of the files: everything below start was
		// deleted on purpose, the log begins anew there.
		var err error
		if segments, err = l.restartAt(segments, start); err != nil {
			return err
		}
		end = start
	}
	if known := l.logEnd.Load(); l.endKnown && end < known {
		l.store.env.Logger.Error("the log ends before the offset of its clean stop: files were lost or damaged", "log", l.tp.String(), "logEndOffset", end, "was", known)
	}
	if l.cleanedTo.Load() > end {
		l.cleanedTo.Store(-1) // records were lost: what is written there now is dirty
	}
	l.epochs.truncateFromStart(start)
	l.epochs.truncateFromEnd(end + 1)
	l.publish(segments)
	l.logStart.Store(start)
	l.logEnd.Store(end)
	l.growingTo.Store(end)
	sound := end
	if l.unclean {
		sound = l.recoveryPoint.Load()
	}
	l.durable.Store(min(l.durable.Load(), end))
	l.recoveryPoint.Store(min(l.recoveryPoint.Load(), end))
	if !l.unclean {
		l.durable.Store(end)
		l.recoveryPoint.Store(end)
	}
	l.highWatermark.Store(min(max(l.highWatermark.Load(), start), end))
	l.endKnown = true
	if err := l.loadProducersLocked(end, sound, !l.unclean); err != nil {
		return err
	}
	return l.repairAbortedLocked()
}

// restartAt replaces all segments by an empty one.
func (l *Log) restartAt(segments []*segment.Segment, offset int64) ([]*segment.Segment, error) {
	for _, s := range segments {
		names, err := s.Rename(segment.DeletedSuffix)
		if err != nil {
			return nil, err
		}
		l.store.removeLater(l.Config().FileDeleteDelayMs, names...)
	}
	s, err := segment.Create(l.store.seg, l.dir, offset, false)
	if err != nil {
		return nil, err
	}
	l.folderNew = true
	return []*segment.Segment{s}, nil
}

func (l *Log) listFolder() (*folderFiles, error) {
	entries, err := l.store.env.FS.ReadDir(l.dir)
	if err != nil {
		return nil, err
	}
	f := &folderFiles{sizes: map[int64]segment.Sizes{}}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), segment.DeletedSuffix) || strings.HasSuffix(e.Name(), ".tmp") {
			f.rubbish = append(f.rubbish, e.Name())
			continue
		}
		if f.left.note(e.Name()) {
			continue
		}
		f.lost = f.lost || e.Name() == syncFailedFile
		base, suffix, ok := segment.ParseFileName(e.Name())
		if !ok {
			continue
		}
		if suffix == segment.SnapshotSuffix {
			f.snapshots = append(f.snapshots, base)
			continue
		}
		if err := f.add(e, base, suffix); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *folderFiles) add(e fs.DirEntry, base int64, suffix string) error {
	sizes, ok := f.sizes[base]
	if !ok {
		sizes = segment.Sizes{LogBytes: -1, IndexBytes: -1, TimeIndexBytes: -1, TxnIndexBytes: -1}
	}
	var field *int64
	switch suffix {
	case segment.LogSuffix:
		f.bases = append(f.bases, base)
		field = &sizes.LogBytes
	case segment.IndexSuffix:
		field = &sizes.IndexBytes
	case segment.TimeIndexSuffix:
		field = &sizes.TimeIndexBytes
	case segment.TxnIndexSuffix:
		field = &sizes.TxnIndexBytes
	default:
		return nil
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	*field = info.Size()
	f.sizes[base] = sizes
	return nil
}

// openSegments opens what the folder holds, at least an empty segment. Index
// files without a .log are removed.
func (l *Log) openSegments(f *folderFiles) ([]*segment.Segment, error) {
	slices.Sort(f.bases)
	slices.Sort(f.snapshots)
	l.tellMissing(f)
	for base, sizes := range f.sizes {
		if sizes.LogBytes < 0 {
			if err := l.removeOrphans(base); err != nil {
				return nil, err
			}
		}
	}
	if len(f.bases) == 0 {
		s, err := segment.Create(l.store.seg, l.dir, l.logStart.Load(), false)
		if err != nil {
			return nil, err
		}
		l.folderNew = true
		return []*segment.Segment{s}, nil
	}
	segments := make([]*segment.Segment, 0, len(f.bases))
	for i, base := range f.bases {
		s, err := segment.Open(l.store.seg, l.dir, base, f.sizes[base])
		last := i == len(f.bases)-1
		damaged := errors.Is(err, segment.ErrCorruptIndex)
		if (err == nil || damaged) && (!last || !l.unclean) {
			s.SetComplete()
		}
		if damaged {
			err = l.repairIndex(s, base, last, err)
		}
		if err != nil {
			return nil, err
		}
		segments = append(segments, s)
	}
	return segments, nil
}

func (l *Log) removeOrphans(base int64) error {
	for _, suffix := range []string{segment.IndexSuffix, segment.TimeIndexSuffix, segment.TxnIndexSuffix} {
		err := l.store.env.FS.Remove(l.path(segment.FileName(base, suffix)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// repairIndex rebuilds the indexes of a segment, unless its recovery will do so
// anyway.
func (l *Log) repairIndex(s *segment.Segment, base int64, last bool, why error) error {
	if l.unclean && last {
		return nil
	}
	l.store.env.Logger.Warn("rebuilding the indexes of a segment", "log", l.tp.String(), "baseOffset", base, "err", why)
	err := s.RebuildIndexes(l.Config().IndexIntervalBytes)
	if err == nil {
		// They are below the recovery point, where nobody looks again.
		l.folderNew, err = true, s.SyncIndexes()
	}
	var bad *segment.CorruptError
	if errors.As(err, &bad) {
		// What can be indexed is; a recovery, or a reader, meets the rest again.
		l.store.env.Logger.Error("a segment is damaged", "log", l.tp.String(), "file", bad.Path, "position", bad.Position, "why", bad.Reason)
		return nil
	}
	return err
}

// readEpochs reads leader-epoch-checkpoint. One that is damaged is set aside;
// the batches hold the epochs as well.
func (l *Log) readEpochs() (epochs, error) {
	name := l.path(epochFile)
	b, err := readFile(l.store.env.FS, name)
	if errors.Is(err, fs.ErrNotExist) {
		return l.pendingEpochs(nil), nil
	}
	if err != nil {
		return nil, err
	}
	list, err := ParseEpochs(b)
	switch {
	case err == nil && len(b) > 0:
		return l.pendingEpochs(list), nil
	case err == nil: // Kafka died before it wrote them: the batches know, if there are any
		l.recoveryPoint.Store(0)
		l.unclean = true
		return l.pendingEpochs(nil), nil
	}
	l.store.env.Logger.Error("the leader epochs are unreadable and are taken from the batches", "file", name, "err", err)
	if err := l.store.env.FS.Rename(name, name+segment.CorruptSuffix); err != nil {
		return nil, err
	}
	l.recoveryPoint.Store(0)
	l.unclean = true
	return l.pendingEpochs(nil), nil
}

// pendingEpochs adds what AssignEpoch noted before the log was loaded.
func (l *Log) pendingEpochs(onDisk epochs) epochs {
	for _, e := range l.epochs {
		if onDisk.assign(e.Epoch, e.StartOffset) {
			l.epochsNew = true
		}
	}
	return onDisk
}
