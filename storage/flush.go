package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// flushQueue holds those who wait for a sync. One goroutine syncs for all of
// them: whoever comes while it works is served by its next round.
type flushQueue struct {
	mu      sync.Mutex
	waiters []flushWaiter
	running bool
}

type flushWaiter struct {
	upTo int64
	fn   func(error)
}

// WhenFlushed calls fn once everything below an offset was synced, or with the
// error that took the partition offline. fn runs on the caller's goroutine when
// that is so already, else on the log's flusher; it must not block. The number
// of waiters is bounded by the requests that the server has in flight.
func (l *Log) WhenFlushed(upTo int64, fn func(error)) {
	if l.durable.Load() >= upTo {
		fn(nil)
		return
	}
	q := &l.flush
	q.mu.Lock()
	q.waiters = append(q.waiters, flushWaiter{upTo, fn})
	start := !q.running
	q.running = true
	q.mu.Unlock()
	if start && !l.store.goWork(l.runFlusher) {
		q.drain(ErrClosed)
	}
}

// drain fails everyone who waits.
func (q *flushQueue) drain(err error) {
	q.mu.Lock()
	waiters := q.waiters
	q.waiters, q.running = nil, false
	q.mu.Unlock()
	for _, w := range waiters {
		w.fn(err)
	}
}

// next takes the current waiters; none ends the flusher.
func (q *flushQueue) next() []flushWaiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiters := q.waiters
	q.waiters = nil
	if len(waiters) == 0 {
		q.running = false
	}
	return waiters
}

func (l *Log) runFlusher() {
	for {
		waiters := l.flush.next()
		if len(waiters) == 0 {
			return
		}
		err := l.syncData()
		for _, w := range waiters {
			w.fn(err)
		}
	}
}

// syncData makes the batches written so far durable, and the names of their
// files.
func (l *Log) syncData() error {
	if err := l.readable(); err != nil {
		return err
	}
	cuts := l.cuts.Load()
	end, from := l.logEnd.Load(), l.durable.Load()
	began := l.store.env.Clock.Now()
	if err := l.sync(from, false); err != nil {
		return l.syncFailed(err)
	}
	l.store.metrics.flushSeconds.ObserveDuration(l.store.env.Clock.Now().Sub(began))
	l.raiseDurable(end, cuts)
	return nil
}

// sync makes the .log files that may hold unsynced batches from an offset on durable,
// with their indexes if these are wanted, and the names of new files. One comes after
// the other: who finds nothing left to sync may only go on once the sync that took it
// has ended, and ended well.
func (l *Log) sync(from int64, indexes bool) error {
	l.syncing <- struct{}{}
	defer func() { <-l.syncing }()
	if l.syncErr != nil {
		return l.syncErr
	}
	err := l.syncSegments(from, indexes)
	if err == nil {
		err = l.syncFolder()
	}
	if err != nil && !l.dead.Load() {
		l.syncErr = err
		l.noteSyncFailed()
	}
	return err
}

// raiseDurable notes that a sync has ended, unless the log was cut meanwhile:
// offsets may have been used again since.
func (l *Log) raiseDurable(end, cuts int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts.Load() == cuts && end > l.durable.Load() {
		l.durable.Store(end)
	}
}

// syncFailed takes the log offline, unless it was given up meanwhile.
func (l *Log) syncFailed(err error) error {
	if l.dead.Load() {
		return ErrClosed
	}
	l.fail(fmt.Errorf("flush log %v: %w", l.tp, err), offlineBroken)
	return l.Err()
}

// syncFailedFile in a partition's folder says that a sync failed. The kernel
// marks such pages clean although they never reached the disk, so that a later
// sync succeeds without them; even a new process must write them again.
const syncFailedFile = "sync-failed"

// noteSyncFailed does what it can: the same disk has just failed.
func (l *Log) noteSyncFailed() {
	if err := placeFile(l.store.env.FS, l.path(syncFailedFile), nil, false); err != nil {
		l.store.env.Logger.Error("the failed sync can't be noted; do not restart before the partition is back", "log", l.tp.String(), "err", err)
	}
}

// forgetSyncFailed removes the note once the bytes were written again and are
// synced.
func (l *Log) forgetSyncFailed() error {
	if err := l.syncSegments(0, true); err != nil {
		return err
	}
	return l.store.env.FS.Remove(l.path(syncFailedFile))
}

// syncSegments syncs the .log files that may hold unsynced batches from an
// offset on, and the one before: a roll may have sealed it since. Files that were
// deleted meanwhile need none.
func (l *Log) syncSegments(from int64, indexes bool) error {
	segments := l.list()
	for i := max(0, floorSegment(segments, from-1)); i < len(segments); i++ {
		if err := syncSegment(segments[i], indexes); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

func syncSegment(s *segment.Segment, indexes bool) error {
	if s.Unsynced() {
		if err := s.SyncLog(); err != nil {
			return err
		}
	}
	if !indexes {
		return nil
	}
	return s.SyncIndexes()
}

// gone says that a file was deleted, or its segment closed for that.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrClosed) }

// syncFolder makes the names of new files durable.
func (l *Log) syncFolder() error {
	l.mu.Lock()
	folder, parent := l.folderNew, l.parentNew
	l.folderNew, l.parentNew = false, false
	l.mu.Unlock()
	err := l.syncNames(folder, parent)
	if err != nil {
		l.mu.Lock()
		l.folderNew, l.parentNew = l.folderNew || folder, l.parentNew || parent
		l.mu.Unlock()
	}
	return err
}

func (l *Log) syncNames(folder, parent bool) error {
	fsys := l.store.env.FS
	if parent {
		if err := syncFile(fsys, l.path(partitionMetadataFile)); err != nil {
			return err
		}
	}
	if folder {
		if err := fsys.SyncDir(l.dir); err != nil {
			return err
		}
	}
	if parent {
		return fsys.SyncDir(filepath.Dir(l.dir))
	}
	return nil
}

// Flush makes everything durable that was appended so far, indexes, leader
// epochs and producer state included, and moves the recovery point.
func (l *Log) Flush() error {
	if err := l.ensure(false); err != nil {
		return err
	}
	release := l.take()
	defer release()
	if err := l.readable(); err != nil {
		return err
	}
	if err := l.flushTaken(); err != nil {
		return l.syncFailed(err)
	}
	return nil
}

// flushTaken needs the maintenance token, which keeps truncation away.
func (l *Log) flushTaken() error {
	l.mu.Lock()
	end, bytes := l.logEnd.Load(), l.unflushed.Load()
	from, newEpochs := l.recoveryPoint.Load(), l.epochsNew
	if from == end && !newEpochs && !l.folderNew {
		l.mu.Unlock()
		return nil
	}
	err := l.prepareFlushLocked(end, from != end)
	list := EncodeEpochs(l.epochs)
	l.epochsNew = false
	l.mu.Unlock()
	if err == nil && newEpochs {
		err = placeFile(l.store.env.FS, l.path(epochFile), list, true)
	}
	if err == nil {
		err = l.sync(from, true)
	}
	if err != nil {
		l.mu.Lock()
		l.epochsNew = l.epochsNew || newEpochs
		l.mu.Unlock()
		return err
	}
	l.raiseDurable(end, l.cuts.Load())
	l.recoveryPoint.Store(end)
	l.addUnflushed(-bytes)
	return nil
}

// prepareFlushLocked writes what is only in memory.
func (l *Log) prepareFlushLocked(end int64, moved bool) error {
	l.flushedMs = l.elapsedMs()
	if !moved {
		return nil
	}
	l.folderNew = true // the snapshot, and an epoch file
	if err := active(l.list()).WriteIndexes(); err != nil {
		return err
	}
	return l.snapshotLocked(end)
}

// close flushes and gives up the files, at a clean stop.
func (l *Log) close() error {
	release := l.take()
	defer release()
	defer l.abandon(ErrClosed)
	if !l.loaded.Load() {
		return l.closeUnloaded()
	}
	if err := l.Err(); err != nil {
		return fmt.Errorf("close log %v: %w", l.tp, err)
	}
	l.mu.Lock()
	err := l.sealLocked()
	if err == nil {
		err = l.snapshotLocked(l.logEnd.Load())
	}
	l.mu.Unlock()
	if err == nil {
		err = l.flushTaken()
	}
	if err != nil {
		return fmt.Errorf("close log %v: %w", l.tp, err)
	}
	return nil
}

// sealLocked seals the active segment. What that writes is to be flushed even when
// nothing was appended since the last flush.
func (l *Log) sealLocked() error {
	s := active(l.list())
	_, before := s.IndexSizes()
	err := s.Seal()
	_, after := s.IndexSizes()
	l.folderNew = l.folderNew || after != before || s.Unsynced()
	return err
}

// closeUnloaded has nothing to flush. Epochs that were only noted need no file:
// nothing was written in them.
func (l *Log) closeUnloaded() error {
	if l.unclean || l.Err() != nil {
		return fmt.Errorf("close log %v: it was not recovered: %w", l.tp, errors.Join(ErrOffline, l.Err()))
	}
	return nil
}

// flushBehind starts flushing the logs with the most unsynced bytes when all
// together are near the bound, so that a recovery never has more to scan.
func (s *Store) flushBehind() {
	if s.cfg.FlushBehindBytes == 0 || s.unflushed.Load() < s.cfg.FlushBehindBytes/2 || s.flushing.Swap(true) {
		return
	}
	if !s.goWork(s.runFlushBehind) {
		s.flushing.Store(false)
	}
}

func (s *Store) runFlushBehind() {
	defer s.flushing.Store(false)
	logs := s.Logs()
	sizes := make(map[*Log]int64, len(logs))
	for _, l := range logs {
		sizes[l] = l.unflushed.Load()
	}
	slices.SortFunc(logs, func(a, b *Log) int { return cmp.Compare(sizes[b], sizes[a]) })
	for _, l := range logs {
		if s.unflushed.Load() < s.cfg.FlushBehindBytes/4 || sizes[l] == 0 {
			break
		}
		if err := l.Flush(); err != nil && !errors.Is(err, ErrOffline) {
			s.env.Logger.Error("flush behind the writer", "log", l.tp.String(), "err", err)
		}
	}
	if err := s.writeCheckpoints(); err != nil {
		s.env.Logger.Error("write checkpoints", "err", err)
	}
}

// flushSoon flushes a log that rolled, in the background, as Kafka does.
func (s *Store) flushSoon(l *Log) {
	if l.flushSoon.Swap(true) {
		return
	}
	s.goWork(func() {
		l.flushSoon.Store(false)
		if err := l.Flush(); err != nil && !errors.Is(err, ErrOffline) && !errors.Is(err, ErrClosed) {
			s.env.Logger.Error("flush a rolled segment", "log", l.tp.String(), "err", err)
		}
	})
}
