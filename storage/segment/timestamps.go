package segment

import (
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// MaxTimestamp is the largest timestamp of the segment and the last offset of
// the first batch that has it; NoTimestamp when there is none.
func (s *Segment) MaxTimestamp() (timestampMs, lastOffset int64, err error) {
	if s.maxKnown {
		return s.maxTimestampMs, s.maxOffset, nil
	}
	e, ok, err := s.times.last()
	if err != nil {
		return 0, 0, err
	}
	from := s.base
	if ok {
		s.maxTimestampMs, s.maxOffset = e.key, s.base+int64(e.value)
		from = s.maxOffset
	}
	// Without an entry there is no timestamp, or the index was lost.
	if s.complete && ok {
		s.maxKnown = true
		return s.maxTimestampMs, s.maxOffset, nil
	}
	// Batches behind the last entry may be younger.
	err = s.Scan(from, func(h Header) bool {
		if h.newest() > s.maxTimestampMs {
			s.maxTimestampMs, s.maxOffset = h.newest(), h.LastOffset()
		}
		return true
	})
	if err != nil {
		return 0, 0, err
	}
	s.maxKnown = true
	return s.maxTimestampMs, s.maxOffset, nil
}

// Found is one record that a search by time found.
type Found struct {
	Offset      int64
	TimestampMs int64
	LeaderEpoch int32
}

// FindTimestamp finds the first record at or after fromOffset whose timestamp
// is at least timestampMs.
func (s *Segment) FindTimestamp(timestampMs, fromOffset int64) (found Found, ok bool, err error) {
	start := max(fromOffset, s.base)
	e, has, err := s.times.floor(timestampMs)
	if err != nil {
		return Found{}, false, err
	}
	if has {
		start = max(start, s.base+int64(e.value))
	}
	var inner error
	err = s.Scan(start, func(h Header) bool {
		if h.MaxTimestamp() < timestampMs {
			return true
		}
		found, ok, inner = s.recordAt(h, func(r batch.Record) bool {
			return r.TimestampMs >= timestampMs && r.Offset >= fromOffset
		})
		return !ok && inner == nil
	})
	if err == nil {
		err = inner
	}
	return found, ok, err
}

// FindMaxTimestamp finds the first record with the segment's largest timestamp.
func (s *Segment) FindMaxTimestamp() (found Found, ok bool, err error) {
	most, offset, err := s.MaxTimestamp()
	if err != nil || most < 0 {
		return Found{}, false, err
	}
	var inner error
	err = s.Scan(offset, func(h Header) bool {
		if h.MaxTimestamp() == most {
			found, ok, inner = s.recordAt(h, func(r batch.Record) bool { return r.TimestampMs == most })
		}
		return !ok && inner == nil
	})
	if err == nil {
		err = inner
	}
	return found, ok, err
}

// recordAt finds the first record of a batch that want accepts. Under
// LogAppendTime all records have the batch's max timestamp.
func (s *Segment) recordAt(h Header, want func(batch.Record) bool) (found Found, ok bool, err error) {
	v, err := s.Batch(h)
	if err != nil {
		return Found{}, false, err
	}
	err = batch.Records(v, 0, func(r batch.Record) error {
		if !want(r) {
			return nil
		}
		found = Found{Offset: r.Offset, TimestampMs: r.TimestampMs, LeaderEpoch: v.PartitionLeaderEpoch()}
		ok = true
		return batch.ErrStop
	})
	return found, ok, err
}
