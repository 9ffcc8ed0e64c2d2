package storage

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// Read returns batches from an offset on, without a lock. Beyond the limit there
// is nothing: not an error as long as the offset is in [log start, log end].
func (l *Log) Read(req ReadRequest) (ReadResult, error) {
	if !l.loaded.Load() {
		if err := l.ensure(false); err != nil && l.readable() != nil {
			return ReadResult{}, fmt.Errorf("read %v: %w", l.tp, err)
		}
	}
	// The end first: whatever is published later only adds.
	res := ReadResult{LogEndOffset: l.logEnd.Load(), LogStartOffset: l.logStart.Load()}
	if err := l.readable(); err != nil {
		return res, fmt.Errorf("read %v: %w", l.tp, err)
	}
	if req.Offset < res.LogStartOffset || req.Offset > res.LogEndOffset {
		return res, fmt.Errorf("read %v: %w: offset %d is not in [%d, %d]", l.tp, ErrOffsetOutOfRange, req.Offset, res.LogStartOffset, res.LogEndOffset)
	}
	limit := min(req.Limit, res.LogEndOffset)
	if req.Offset >= limit || req.MaxBytes <= 0 && !req.AtLeastOne {
		return res, nil
	}
	err := l.readOnce(req, limit, &res)
	for retry := 0; err != nil && gone(err) && retry < maxReadRetries && !l.dead.Load(); retry++ {
		// Compaction put another segment in its place.
		err = l.readOnce(req, limit, &res)
	}
	if err != nil {
		return res, l.readFailed(err)
	}
	return res, nil
}

// readOnce reads records, and the aborted transactions among them from the same
// segments: compaction may drop both together.
func (l *Log) readOnce(req ReadRequest, limit int64, res *ReadResult) error {
	found, in, err := l.readSegments(req, limit, res.LogEndOffset)
	if err != nil {
		return err
	}
	if req.Aborted && len(in) > 0 {
		res.Aborted, err = l.abortedOrRepair(in, req.Offset, found.End, res.LogEndOffset)
	}
	if err != nil {
		if found.Region != nil {
			found.Region.Release()
		}
		return err
	}
	res.Data, res.Region = found.Data, found.Region
	return nil
}

// maxReadRetries bounds how often a read begins anew: compaction would have to
// replace the segment under it each time.
const maxReadRetries = 10

// readSegments looks in the segment that may hold the offset, and in the next
// ones when compaction left nothing from there on. It returns the segments from
// the one on that was read; none where there is nothing to read.
func (l *Log) readSegments(req ReadRequest, limit, end int64) (segment.Result, []*segment.Segment, error) {
	segments := l.list()
	i := floorSegment(segments, req.Offset)
	if i < 0 { // retention was faster
		return segment.Result{}, nil, ErrOffsetOutOfRange
	}
	for ; i < len(segments); i++ {
		s := segments[i]
		if s.BaseOffset() >= limit {
			break
		}
		to := s.SizeBytes()
		next := end
		if i+1 < len(segments) {
			next = segments[i+1].BaseOffset()
		}
		// The file may have grown since the end was looked at: what is not to be
		// served would be among the bytes.
		if limit < next || i+1 == len(segments) && l.growingTo.Load() != end {
			var err error
			if to, err = s.Position(limit); err != nil {
				return segment.Result{}, nil, err
			}
		}
		r, err := s.Read(req.Offset, to, req.MaxBytes, req.AtLeastOne)
		if err != nil || !r.Beyond {
			return r, segments[i:], err
		}
		if next < limit {
			l.tellGap(s, req.Offset, segments[i+1])
		}
	}
	return segment.Result{}, nil, nil
}

// readFailed decides what an error of a read means. A segment that was deleted
// or truncated under the reader is no failure of the disk.
func (l *Log) readFailed(err error) error {
	if gone(err) || errors.Is(err, ErrOffsetOutOfRange) || l.dead.Load() {
		return fmt.Errorf("read %v: %w: the segment is gone", l.tp, ErrOffsetOutOfRange)
	}
	var bad *segment.CorruptError
	if errors.As(err, &bad) {
		l.store.env.Logger.Error("a read found damaged bytes", "log", l.tp.String(), "file", bad.Path, "position", bad.Position, "why", bad.Reason)
		return fmt.Errorf("read %v: %w", l.tp, asCorruptMessage(bad))
	}
	l.fail(fmt.Errorf("read log %v: %w", l.tp, err), offlineBroken)
	return fmt.Errorf("read %v: %w", l.tp, l.Err())
}
