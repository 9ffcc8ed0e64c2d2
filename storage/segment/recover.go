package segment

import (
	"errors"
	"fmt"
	"math"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// Recovery is what a recovery of one segment found.
type Recovery struct {
	// NextOffset is the first offset after the valid batches.
	NextOffset int64
	// ValidBytes is where they end, CutBytes what was behind them.
	ValidBytes, CutBytes int64
	// ScannedBytes is what was read and checked.
	ScannedBytes int64
	// Corrupt says why the tail was not valid; nil when there was none.
	Corrupt *CorruptError
}

// RecoverOptions says how to recover a segment.
type RecoverOptions struct {
	// From is the recovery point: batches and index entries before it were
	// synced, and are trusted when the index is sound.
	From int64
	// IntervalBytes is index.interval.bytes.
	IntervalBytes int64
	// Rewrite writes the valid bytes back, after a failed fsync: the kernel has
	// marked pages clean that never reached the disk.
	Rewrite bool
	// Keep is called with the torn tail before it is cut.
	Keep func(f vfs.File, position, sizeBytes int64, why *CorruptError) error
	// Each is called with the header of every batch that was checked.
	Each func(Header)
}

// Recover checks every batch from the recovery point on, cuts the file behind
// the last valid one and rebuilds the index entries.
func (s *Segment) Recover(o RecoverOptions) (Recovery, error) {
	f, err := s.ref.Acquire()
	if err != nil {
		return Recovery{}, err
	}
	defer s.ref.Release()
	info, err := f.Stat()
	if err != nil {
		return Recovery{}, fmt.Errorf("recover %s: %w", s.ref.path, err)
	}
	size := min(info.Size(), MaxSizeBytes)
	s.size.Store(size)
	start, err := s.trusted(f, o.From)
	if err != nil {
		return Recovery{}, err
	}
	r, err := s.rebuild(f, start, size, o)
	if err != nil {
		return Recovery{}, err
	}
	if r.Corrupt != nil && o.Keep != nil {
		if err := o.Keep(f, r.ValidBytes, size-r.ValidBytes, r.Corrupt); err != nil {
			return Recovery{}, err
		}
	}
	if o.Rewrite {
		if err := rewrite(f, start, r.ValidBytes); err != nil {
			return Recovery{}, fmt.Errorf("recover %s: %w", s.ref.path, err)
		}
	}
	r.CutBytes, r.ScannedBytes = size-r.ValidBytes, r.ValidBytes-start
	// Even when nothing is cut: it frees blocks reserved beyond the end.
	if err := s.cutFile(r.ValidBytes); err != nil {
		return Recovery{}, err
	}
	s.size.Store(r.ValidBytes)
	return r, nil
}

// trusted cuts the indexes to the entries before the recovery point and returns
// where the last of them points, with the state that belongs there. When the
// index is unsound everything is rebuilt.
func (s *Segment) trusted(f vfs.File, from int64) (int64, error) {
	s.maxTimestampMs, s.maxOffset, s.maxKnown = NoTimestamp, s.base, true
	s.firstKnown = false
	if from > s.base && s.offsets.exists.Load() && s.times.exists.Load() {
		start, ok, err := s.keepBefore(f, from)
		if err != nil || ok {
			return start, err
		}
	}
	s.maxTimestampMs, s.maxOffset = NoTimestamp, s.base
	if err := s.offsets.reset(); err != nil {
		return 0, err
	}
	return 0, s.times.reset()
}

// keepBefore drops the entries of both indexes from an offset on. ok is false
// when the entries that stay do not fit the .log.
func (s *Segment) keepBefore(f vfs.File, from int64) (start int64, ok bool, err error) {
	if from-s.base > math.MaxInt32 {
		from = s.base + math.MaxInt32
	}
	rel := from - s.base
	if err := s.offsets.truncate(func(e entry) bool { return e.key >= rel }); err != nil {
		return 0, false, err
	}
	if err := s.times.truncate(func(e entry) bool { return int64(e.value) >= rel }); err != nil {
		return 0, false, err
	}
	last, has, err := s.offsets.last()
	if err != nil || !has {
		return 0, false, err
	}
	if h, found, err := s.walk(f, int64(last.value), s.size.Load(), s.base+last.key); err != nil || !found || h.LastOffset() != s.base+last.key {
		if err != nil && !isCorrupt(err) && !errors.Is(err, errMisled) && !errors.Is(err, batch.ErrOldMagic) {
			return 0, false, err
		}
		return 0, false, nil
	}
	if e, has, err := s.times.last(); err != nil {
		return 0, false, err
	} else if has {
		s.maxTimestampMs, s.maxOffset = e.key, s.base+int64(e.value)
	}
	return int64(last.value), true, nil
}

// rebuild scans from start and indexes what it finds.
func (s *Segment) rebuild(f vfs.File, start, size int64, o RecoverOptions) (Recovery, error) {
	sc := NewScanner(f, s.ref.path, start, size, s.base, true)
	s.sinceIndex = 0 // the batch at start has its entry already
	for sc.Next() {
		h := sc.Header()
		if o.Each != nil {
			o.Each(h)
		}
		info := BatchInfo{SizeBytes: h.SizeBytes(), LastOffset: h.LastOffset(), MaxTimestampMs: h.newest()}
		if err := s.noteOne(h.Position, info, o.IntervalBytes); err != nil {
			return Recovery{}, err
		}
	}
	r := Recovery{NextOffset: sc.NextOffset(), ValidBytes: sc.Position()}
	if err := sc.Err(); err != nil && !errors.As(err, &r.Corrupt) {
		return Recovery{}, err
	}
	return r, nil
}

// rewrite writes bytes back over themselves.
func rewrite(f vfs.File, from, to int64) error {
	buf := make([]byte, min(crcWindow, to-from))
	for from < to {
		b := buf[:min(int64(len(buf)), to-from)]
		if _, err := f.ReadAt(b, from); err != nil {
			return err
		}
		if _, err := f.WriteAt(b, from); err != nil {
			return err
		}
		from += int64(len(b))
	}
	return nil
}

// RebuildIndexes makes both indexes new from the headers of the .log.
func (s *Segment) RebuildIndexes(intervalBytes int64) error {
	f, err := s.ref.Acquire()
	if err != nil {
		return err
	}
	defer s.ref.Release()
	if err := s.offsets.reset(); err != nil {
		return err
	}
	if err := s.times.reset(); err != nil {
		return err
	}
	s.maxTimestampMs, s.maxOffset, s.sinceIndex = NoTimestamp, s.base, 0
	sc := NewScanner(f, s.ref.path, 0, s.size.Load(), s.base, false)
	for sc.Next() {
		h := sc.Header()
		info := BatchInfo{SizeBytes: h.SizeBytes(), LastOffset: h.LastOffset(), MaxTimestampMs: h.newest()}
		if err := s.noteOne(h.Position, info, intervalBytes); err != nil {
			return err
		}
	}
	s.maxKnown = true
	if s.complete {
		if err := s.noteTime(); err != nil {
			return err
		}
	}
	if err := s.WriteIndexes(); err != nil {
		return err
	}
	return sc.Err()
}

// LoadEnd finds the offset behind the last batch of a segment that was stopped
// cleanly, and gets it ready for appends.
func (s *Segment) LoadEnd() (nextOffset int64, err error) {
	if err := s.offsets.check(); err != nil {
		return 0, err
	}
	if err := s.times.check(); err != nil {
		return 0, err
	}
	if _, _, err := s.MaxTimestamp(); err != nil {
		return 0, err
	}
	e, ok, err := s.offsets.last()
	if err != nil {
		return 0, err
	}
	next := s.base
	from := s.base
	if ok {
		from = s.base + e.key
	}
	err = s.Scan(from, func(h Header) bool {
		next = h.LastOffset() + 1
		return true
	})
	return next, err
}

// Truncate drops every batch that holds offset or a later one, and returns the
// offset behind what is left.
func (s *Segment) Truncate(offset int64) (nextOffset int64, err error) {
	position, err := s.Position(offset)
	if err != nil {
		return 0, err
	}
	rel := min(max(offset-s.base, 0), math.MaxInt32)
	if err := s.offsets.truncate(func(e entry) bool { return e.key >= rel || int64(e.value) >= position }); err != nil {
		return 0, err
	}
	if err := s.times.truncate(func(e entry) bool { return int64(e.value) >= rel }); err != nil {
		return 0, err
	}
	if err := s.txns.truncate(offset); err != nil {
		return 0, err
	}
	s.size.Store(position)
	if err := s.cutFile(position); err != nil {
		return 0, err
	}
	s.maxTimestampMs, s.maxOffset, s.maxKnown, s.complete, s.sinceIndex = NoTimestamp, s.base, false, false, 0
	if position == 0 {
		s.firstMs, s.firstKnown = NoTimestamp, true
	}
	return s.LoadEnd()
}
