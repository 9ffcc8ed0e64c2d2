package storage

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage/producer"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

const (
	// slowAppend is the time from which a write counts as disk pressure, which
	// then lasts pressureFor: the kernel throttles writers in bursts.
	slowAppend  = time.Millisecond
	pressureFor = 100 * time.Millisecond
)

// Append writes whole batches to the end of the log. For a leader's append it
// assigns the offsets, in place. It may wait for another append, for the disk,
// and the first time for the log to load.
func (l *Log) Append(req AppendRequest) (AppendResult, error) {
	l.mu.Lock()
	res, err := l.appendLocked(req)
	l.mu.Unlock()
	return res, l.appended(req, err)
}

// TryAppend is Append for callers that must not wait: it fails with ErrBusy when
// the log is in use or not loaded.
func (l *Log) TryAppend(req AppendRequest) (AppendResult, error) {
	if !l.loaded.Load() || !l.mu.TryLock() {
		return AppendResult{}, ErrBusy
	}
	res, err := l.appendLocked(req)
	l.mu.Unlock()
	return res, l.appended(req, err)
}

// appended does what follows an append outside the lock.
func (l *Log) appended(req AppendRequest, err error) error {
	if err != nil {
		return fmt.Errorf("append to %v: %w", l.tp, err)
	}
	l.store.metrics.appends.Inc()
	l.store.metrics.appendBytes.Add(float64(len(req.Batches)))
	l.store.flushBehind()
	return nil
}

// pending is what the walk over an append's batches found.
type pending struct {
	first, last  int64
	maxTimestamp int64
	dup          producer.BatchMeta
	isDup        bool
}

func (l *Log) appendLocked(req AppendRequest) (AppendResult, error) {
	if err := l.ensureLocked(); err != nil {
		return AppendResult{}, err
	}
	if req.LeaderEpoch < l.epochs.latest() {
		return AppendResult{}, fmt.Errorf("%w: %d, the append has %d", ErrFencedEpoch, l.epochs.latest(), req.LeaderEpoch)
	}
	cfg := l.cfg.Load()
	if n := int64(len(req.Batches)); n > cfg.SegmentBytes {
		return AppendResult{}, protocol.Errorf(kerr.RecordListTooLarge, "%d bytes do not fit a segment of %d", n, cfg.SegmentBytes)
	}
	if !l.store.hasRoomFor(req) {
		return AppendResult{}, l.store.refuseFull()
	}
	p, err := l.stage(req)
	if err != nil {
		return AppendResult{}, err
	}
	start := l.logStart.Load()
	if p.isDup {
		return AppendResult{FirstOffset: p.dup.FirstOffset(), LastOffset: p.dup.LastOffset, LogStartOffset: start,
			Duplicate: true, FlushBeforeAck: l.mustFlush(cfg, p.dup.LastOffset+1)}, nil
	}
	l.growingTo.Store(p.last + 1)
	err = l.writeLocked(req.Batches, p, cfg)
	if err == nil {
		err = l.commitProducersLocked()
	}
	if err != nil {
		kind := offlineBroken
		if isDiskFull(err) {
			kind = offlineFull
		}
		l.fail(err, kind)
		return AppendResult{}, l.Err()
	}
	l.noteEpochs(req, p)
	l.addUnflushed(int64(len(req.Batches)))
	l.logEnd.Store(p.last + 1)
	return AppendResult{FirstOffset: p.first, LastOffset: p.last, LogStartOffset: start, FlushBeforeAck: l.mustFlush(cfg, p.last+1)}, nil
}

// mustFlush says that flush.messages asks for a sync before the answer.
func (l *Log) mustFlush(cfg *LogConfig, end int64) bool {
	return end-l.durable.Load() >= cfg.FlushMessages
}

// stage walks over the batches: offsets are assigned or checked, producers are
// checked, and the log remembers what to index. Nothing else changes.
func (l *Log) stage(req AppendRequest) (pending, error) {
	next := l.logEnd.Load()
	p := pending{first: next, last: next - 1, maxTimestamp: segment.NoTimestamp}
	l.infos = l.infos[:0]
	l.producers.Begin()
	for rest := req.Batches; len(rest) > 0; {
		v, after, err := batch.Next(rest)
		if err != nil {
			return p, err
		}
		rest = after
		if err := place(v, req, &next); err != nil {
			return p, err
		}
		if len(l.infos) == 0 {
			p.first = v.BaseOffset()
		}
		p.last = v.LastOffset()
		p.maxTimestamp = max(p.maxTimestamp, v.MaxTimestamp())
		l.infos = append(l.infos, segment.BatchInfo{SizeBytes: len(v), LastOffset: p.last, MaxTimestampMs: v.MaxTimestamp()})
		if v.HasProducerID() {
			if done, err := l.stageProducer(v, req, &p); err != nil || done {
				return p, err
			}
		}
	}
	if len(l.infos) == 0 {
		return p, batch.ErrTruncated
	}
	return p, nil
}

// place gives a batch its offset and epoch, or checks the ones it has.
func place(v batch.View, req AppendRequest, next *int64) error {
	if v.LastOffsetDelta() < 0 {
		return batch.ErrCorrupt
	}
	if !req.Replicated {
		v.SetBaseOffset(*next)
		v.SetPartitionLeaderEpoch(req.LeaderEpoch)
	} else if v.BaseOffset() < *next {
		return fmt.Errorf("%w: offset %d, expected %d", ErrUnexpectedOffset, v.BaseOffset(), *next)
	}
	*next = v.NextOffset()
	return nil
}

// stageProducer checks a batch of an idempotent producer; done means that it is
// a duplicate.
func (l *Log) stageProducer(v batch.View, req AppendRequest, p *pending) (done bool, err error) {
	b, ok, err := producerBatch(v, v)
	if err != nil || !ok {
		return false, err
	}
	p.dup, p.isDup, err = l.producers.Stage(b, checksOf(req, l.cfg.Load()))
	return p.isDup, err
}

// writeLocked rolls when it is time and writes.
func (l *Log) writeLocked(batches []byte, p pending, cfg *LogConfig) error {
	if err := l.rollIfDue(int64(len(batches)), p, cfg); err != nil {
		return err
	}
	clock := l.store.env.Clock
	s := active(l.list())
	if s.SizeBytes() == 0 {
		l.folderNew = true // the file appears with its first write
	}
	began := clock.Elapsed()
	err := s.Append(batches, l.infos, cfg.IndexIntervalBytes, cfg.SegmentBytes)
	if took := clock.Elapsed() - began; took >= slowAppend {
		l.store.slowUntil.Store(int64(clock.Elapsed() + pressureFor))
		l.store.metrics.slowAppends.Inc()
	}
	return err
}

// noteEpochs keeps the leader epochs of what was written.
func (l *Log) noteEpochs(req AppendRequest, p pending) {
	if !req.Replicated {
		l.epochsNew = l.epochs.assign(req.LeaderEpoch, p.first) || l.epochsNew
		return
	}
	for rest := req.Batches; len(rest) > 0; {
		v, after, err := batch.Next(rest)
		if err != nil {
			return // stage has seen all of it
		}
		if epoch := v.PartitionLeaderEpoch(); epoch > l.epochs.latest() {
			l.epochsNew = l.epochs.assign(epoch, v.BaseOffset()) || l.epochsNew
		}
		rest = after
	}
}

// Pressure says that the disk was slow a moment ago: what must not wait should
// not append now.
func (s *Store) Pressure() bool {
	return int64(s.env.Clock.Elapsed()) < s.slowUntil.Load()
}
