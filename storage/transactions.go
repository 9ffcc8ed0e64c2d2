package storage

import (
	"errors"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/storage/producer"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// LastStableOffset is the end of what read_committed may see at a high watermark:
// the first record of the oldest transaction that is open, or whose marker is not
// below the high watermark. It waits for the disk when the log is not Loaded.
func (l *Log) LastStableOffset(highWatermark int64) int64 {
	if !l.loaded.Load() {
		_ = l.ensure(false) // offline: what is known
	}
	return min(highWatermark, max(l.stable.lastStable(highWatermark), l.logStart.Load()))
}

// Loaded says that the log's files were read since the start.
func (l *Log) Loaded() bool { return l.loaded.Load() }

// StartVerification begins the verification of a transactional batch (KIP-890) and
// returns the guard for its append; zero when none is needed because the transaction
// is open here, or because VerifyTransactions is off. With noWait it fails with ErrBusy when the log is in use or not
// loaded.
func (l *Log) StartVerification(v Verification, noWait bool) (VerificationGuard, error) {
	if noWait {
		if !l.loaded.Load() || !l.mu.TryLock() {
			return 0, ErrBusy
		}
	} else {
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	if err := l.ensureLocked(); err != nil {
		return 0, fmt.Errorf("verify a transaction in %v: %w", l.tp, err)
	}
	if !v.EpochBump && !l.cfg.Load().VerifyTransactions {
		return 0, nil
	}
	guard, err := l.producers.Verify(v.ProducerID, v.ProducerEpoch, v.BaseSequence, v.EpochBump, l.nowMs())
	if err != nil {
		return 0, fmt.Errorf("verify a transaction in %v: %w", l.tp, err)
	}
	return VerificationGuard(guard), nil
}

// commitProducersLocked makes the staged producers those of the log, once their
// batches are written, and notes which transactions that ended: a reader who sees
// their end finds the aborted ones in the index.
func (l *Log) commitProducersLocked() error {
	ended := l.producers.Commit()
	if len(ended) > 0 {
		if err := noteAborted(active(l.list()), ended); err != nil {
			return err
		}
		l.stable.decide(ended, l.highWatermark.Load())
	}
	l.stable.open(&l.producers)
	return nil
}

// noteAborted adds the aborted ones among transactions that ended in a segment to
// its index.
func noteAborted(s *segment.Segment, ended []producer.Ended) error {
	for _, e := range ended {
		if e.Committed {
			continue
		}
		err := s.AddAborted(segment.AbortedTxn{
			ProducerID: e.ProducerID, FirstOffset: e.FirstOffset, LastOffset: e.LastOffset, LastStableOffset: e.LastStableOffset,
		})
		if err != nil {
			return fmt.Errorf("note an aborted transaction: %w", err)
		}
	}
	return nil
}

// repairAbortedLocked fills the transaction indexes anew that can't be right.
func (l *Log) repairAbortedLocked() error {
	segments := l.list()
	for i, s := range segments {
		if !s.AbortedDamaged() {
			continue
		}
		end := l.logEnd.Load()
		if i+1 < len(segments) {
			end = segments[i+1].BaseOffset()
		}
		l.store.env.Logger.Warn("rebuilding the transaction index of a segment", "log", l.tp.String(), "baseOffset", s.BaseOffset())
		if err := l.refillAbortedLocked(s, end); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) refillAbortedLocked(s *segment.Segment, end int64) error {
	table, from, err := l.nearestTableLocked(max(s.BaseOffset(), l.logStart.Load()))
	if err != nil {
		return err
	}
	if err := s.CutAborted(s.BaseOffset()); err != nil {
		return err
	}
	if err := l.replay(table, from, s.BaseOffset(), nil); err != nil {
		return err
	}
	if err := l.replay(table, max(from, s.BaseOffset()), end, noteAborted); err != nil {
		return err
	}
	if err := s.WriteIndexes(); err != nil {
		return err
	}
	return s.SyncIndexes() // no flush comes by here again
}

// aborted lists the aborted transactions that a reader of [from, the bytes' end)
// has to know of, as Kafka does: starting with the segment that was read.
func (l *Log) aborted(segments []*segment.Segment, from int64, readEnd int64, logEnd int64) (list []AbortedTxn, err error) {
	first := slices.IndexFunc(segments, (*segment.Segment).HasAborted)
	if first < 0 {
		return nil, nil
	}
	upTo, ok, err := segments[0].OffsetBehind(readEnd)
	if err != nil {
		return nil, err
	}
	if !ok {
		upTo = logEnd
		if len(segments) > 1 {
			upTo = segments[1].BaseOffset()
		}
	}
	for _, s := range segments[first:] {
		var done bool
		if list, done, err = s.Aborted(list, from, upTo); done || err != nil {
			return list, err
		}
	}
	return list, nil
}

// checksOf says how an append's batches are checked.
func checksOf(req AppendRequest, cfg *LogConfig) producer.Checks {
	c := producer.Checks{
		Origin: producer.Client, Verified: cfg.VerifyTransactions,
		Guard: uint64(req.Guard), TransactionVersion: req.TransactionVersion,
	}
	switch {
	case req.Replicated:
		c.Origin = producer.Replication
	case req.Internal:
		c.Origin = producer.Coordinator
	}
	return c
}

// abortedOrRepair is aborted, after a rebuild where an index turns out to be
// damaged.
func (l *Log) abortedOrRepair(segments []*segment.Segment, from, readEnd, logEnd int64) ([]AbortedTxn, error) {
	list, err := l.aborted(segments, from, readEnd, logEnd)
	if !errors.Is(err, segment.ErrCorruptIndex) {
		return list, err
	}
	l.store.env.Logger.Error("a transaction index is damaged", "log", l.tp.String(), "err", err)
	l.mu.Lock()
	err = l.readable()
	if err == nil {
		err = l.repairAbortedLocked()
	}
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return l.aborted(segments, from, readEnd, logEnd)
}
