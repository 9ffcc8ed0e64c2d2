package storage

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

func asCorruptMessage(err *segment.CorruptError) error {
	return protocol.Errorf(kerr.CorruptMessage, "%w", err)
}

// OffsetForTimestamp finds the first record whose timestamp is at least
// timestampMs; ok is false when there is none.
func (l *Log) OffsetForTimestamp(timestampMs int64) (found TimestampOffset, ok bool, err error) {
	err = l.search(func(segments []*segment.Segment) error {
		start := l.logStart.Load()
		for _, s := range segments {
			most, _, err := s.MaxTimestamp()
			if err != nil {
				return err
			}
			if most < timestampMs {
				continue
			}
			f, has, err := s.FindTimestamp(timestampMs, start)
			if err != nil || has {
				found, ok = TimestampOffset(f), has
				return err
			}
		}
		return nil
	})
	return found, ok, err
}

// MaxTimestamp finds the first record with the largest timestamp (KIP-734); ok
// is false in a log without timestamps.
func (l *Log) MaxTimestamp() (found TimestampOffset, ok bool, err error) {
	err = l.search(func(segments []*segment.Segment) error {
		var best *segment.Segment
		most := int64(segment.NoTimestamp)
		for _, s := range segments {
			ts, _, err := s.MaxTimestamp()
			if err != nil {
				return err
			}
			if ts > most {
				best, most = s, ts
			}
		}
		if best == nil {
			return nil
		}
		f, has, err := best.FindMaxTimestamp()
		found, ok = TimestampOffset(f), has
		return err
	})
	return found, ok, err
}

// search runs fn under the appender's lock: the newest index entries and
// timestamps belong to the writer.
func (l *Log) search(fn func([]*segment.Segment) error) error {
	if err := l.ensure(false); err != nil && l.readable() != nil {
		return fmt.Errorf("search %v: %w", l.tp, err)
	}
	l.mu.Lock()
	err := l.readable()
	if err != nil {
		l.mu.Unlock()
		return fmt.Errorf("search %v: %w", l.tp, err)
	}
	err = fn(l.list())
	l.mu.Unlock()
	if err != nil {
		return l.readFailed(err)
	}
	return nil
}

// EpochAt is the leader epoch of the record at an offset, NoEpoch when unknown.
// At the log's end it is the newest epoch.
func (l *Log) EpochAt(offset int64) int32 {
	_ = l.ensure(false) // offline: what is known
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.at(offset)
}

// LatestEpoch is the newest leader epoch, NoEpoch when there is none.
func (l *Log) LatestEpoch() int32 {
	_ = l.ensure(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.latest()
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest epoch that is not
// above the asked one, and where it ends; (NoEpoch, NoOffset) when unknown.
func (l *Log) EndOffsetForEpoch(epoch int32) (int32, int64) {
	_ = l.ensure(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.endOffset(epoch, l.logEnd.Load())
}

// Epochs are all leader epochs of the log.
func (l *Log) Epochs() []EpochStart {
	_ = l.ensure(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]EpochStart(nil), l.epochs...)
}

// AssignEpoch notes that a leader of this epoch starts at the log's end, even
// when it never writes. The file follows with the next flush: until something is
// written in the epoch, losing the note changes no answer.
func (l *Log) AssignEpoch(epoch int32) error {
	if err := l.ensure(true); err != nil {
		return fmt.Errorf("assign epoch %d to %v: %w", epoch, l.tp, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if latest := l.epochs.latest(); epoch < latest {
		return fmt.Errorf("assign epoch %d to %v: %w: %d", epoch, l.tp, ErrFencedEpoch, latest)
	}
	l.epochsNew = l.epochs.assign(epoch, l.logEnd.Load()) || l.epochsNew
	return nil
}
