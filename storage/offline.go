package storage

import (
	"errors"
	"fmt"
	"syscall"
)

// offlineKind says what it takes to come back.
type offlineKind int8

const (
	// offlineFull: the disk was full. What was written before is sound; appends
	// wait for room, reads go on.
	offlineFull offlineKind = iota
	// offlineBroken: a write, read or sync failed. Only a recovery tells what the
	// disk really holds.
	offlineBroken
)

// offline is why a log is offline.
type offline struct {
	kind offlineKind
	err  error // wraps ErrOffline and the cause
}

// fail takes the log offline after an error of the disk. The first failure is
// kept, unless a worse one follows.
func (l *Log) fail(cause error, kind offlineKind) {
	o := &offline{kind: kind, err: fmt.Errorf("%w: %w", ErrOffline, cause)}
	for {
		old := l.broken.Load()
		if old != nil && old.kind >= kind {
			return
		}
		if l.broken.CompareAndSwap(old, o) {
			break
		}
	}
	l.store.env.Logger.Error("partition offline", "log", l.tp.String(), "err", cause)
	l.store.metrics.failures.Inc()
	l.store.tellOffline(l.tp, o.err)
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// tellOffline tells on a goroutine of its own: a log may fail under its lock.
func (s *Store) tellOffline(tp TopicPartition, err error) {
	if s.env.OnOffline != nil {
		s.goWork(func() { s.env.OnOffline(tp, err) })
	}
}

// readable is nil when reads may be served: a full disk does not stop them.
func (l *Log) readable() error {
	if l.dead.Load() {
		return ErrClosed
	}
	if o := l.broken.Load(); o != nil && o.kind != offlineFull {
		return o.err
	}
	return nil
}

// revive tries to bring an offline log back. A full disk needs room; anything
// else needs a recovery, which writes the unsynced bytes again.
func (l *Log) revive() {
	release := l.take()
	defer release()
	o := l.broken.Load()
	if o == nil || l.dead.Load() || !l.store.hasRoom(0) {
		return
	}
	if err := l.reload(o); err != nil {
		l.store.env.Logger.Warn("partition stays offline", "log", l.tp.String(), "err", err)
		return
	}
	l.store.env.Logger.Info("partition online", "log", l.tp.String(), "logEndOffset", l.logEnd.Load())
	l.store.tellOffline(l.tp, nil)
}

// reload cuts what a failed append left, recovers the log from its files and
// syncs it.
func (l *Log) reload(o *offline) error {
	l.syncing <- struct{}{}
	err := l.reloadFiles()
	if err == nil {
		l.syncErr = nil // what it lost was written again
	}
	<-l.syncing
	if err != nil {
		return err
	}
	if err := l.flushTaken(); err != nil {
		return err
	}
	l.broken.CompareAndSwap(o, nil)
	return nil
}

func (l *Log) reloadFiles() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded.Load() {
		if err := active(l.list()).Restore(); err != nil {
			return err
		}
		for _, s := range l.list() {
			s.Close()
		}
	}
	l.loaded.Store(false)
	l.cuts.Add(1)
	l.durable.Store(min(l.durable.Load(), l.recoveryPoint.Load()))
	l.endKnown, l.unclean, l.rewrite = false, true, true
	l.dropUnflushed()
	return l.loadLocked()
}

// abandon makes every further use fail, and closes the files.
func (l *Log) abandon(why error) {
	l.mu.Lock()
	l.dead.Store(true)
	segments := l.list()
	l.dropUnflushed()
	l.mu.Unlock()
	for _, s := range segments {
		s.Close()
	}
	l.flush.drain(why)
}

func (l *Log) addUnflushed(n int64) {
	l.unflushed.Add(n)
	l.store.unflushed.Add(n)
}

func (l *Log) dropUnflushed() { l.store.unflushed.Add(-l.unflushed.Swap(0)) }
