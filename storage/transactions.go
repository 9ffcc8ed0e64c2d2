package storage

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/storage/producer"
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
// returns the guard for its append; zero when the transaction is open here, so that
// none is needed. With noWait it fails with ErrBusy when the log is in use or not
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
	guard, err := l.producers.Verify(v.ProducerID, v.ProducerEpoch, v.BaseSequence, v.EpochBump, l.nowMs())
	if err != nil {
		return 0, fmt.Errorf("verify a transaction in %v: %w", l.tp, err)
	}
	return VerificationGuard(guard), nil
}

// commitProducersLocked makes the staged producers those of the log, once their
// batches are written, and notes which transactions that ended.
func (l *Log) commitProducersLocked() {
	ended := l.producers.Commit()
	l.stable.decide(ended, l.highWatermark.Load())
	l.stable.firstOpen.Store(l.producers.FirstOpen())
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
