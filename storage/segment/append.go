package segment

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// BatchInfo is what the indexes need to know of a batch that is appended.
type BatchInfo struct {
	SizeBytes      int
	LastOffset     int64
	MaxTimestampMs int64
}

const (
	// reserveFrom is the size from which a segment is preallocated: a partition
	// with a few records shall not hold megabytes.
	reserveFrom = 1 << 20
	// reserveStep is the most that is preallocated ahead; measured, more gains
	// nothing.
	reserveStep = 16 << 20
)

// Append writes whole batches behind the last one with a single write, and index
// entries for those that are intervalBytes apart. After an error nothing is
// visible to readers, but the file may hold a torn tail: the segment takes no
// further append before Restore.
func (s *Segment) Append(batches []byte, infos []BatchInfo, intervalBytes, limitBytes int64) error {
	f, err := s.ref.Acquire()
	if err != nil {
		return err
	}
	defer s.ref.Release()
	size := s.size.Load()
	if end := size + int64(len(batches)); end > s.reserved && size >= reserveFrom && !s.reserveFailed {
		if err := s.reserve(f, size, end, limitBytes); err != nil {
			return err
		}
	}
	_, err = f.WriteAt(batches, size)
	// After the write: a sync that cleared the flag before may not have seen it.
	if !s.unsynced.Load() {
		s.unsynced.Store(true)
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", s.ref.path, err)
	}
	if err := s.note(size, infos, intervalBytes); err != nil {
		return err
	}
	s.size.Store(size + int64(len(batches)))
	return nil
}

// reserve asks for blocks ahead of the writer, which makes its writes cheaper.
// A full disk is an error; a system that can't do it is not.
func (s *Segment) reserve(f vfs.File, size, end, limitBytes int64) error {
	from := max(s.reserved, size)
	to := max(end, min(end+min(size, reserveStep), limitBytes))
	if s.env.Room != nil && to > end && !s.env.Room(to-end) {
		// What is left is not for this segment alone.
		s.reserved = end
		return nil
	}
	err := f.Preallocate(from, to-from)
	if err == nil {
		s.reserved = to
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) {
		// Close to full the last bytes may still fit; the write decides.
		s.reserved = end
		return nil
	}
	s.reserveFailed = true
	return nil
}

// note indexes the batches that start at position.
func (s *Segment) note(position int64, infos []BatchInfo, intervalBytes int64) error {
	for _, b := range infos {
		if err := s.noteOne(position, b, intervalBytes); err != nil {
			return err
		}
		position += int64(b.SizeBytes)
	}
	return nil
}

func (s *Segment) noteOne(position int64, b BatchInfo, intervalBytes int64) error {
	if position == 0 {
		s.firstMs, s.firstKnown = b.MaxTimestampMs, true
	}
	if b.MaxTimestampMs > s.maxTimestampMs {
		s.maxTimestampMs, s.maxOffset = b.MaxTimestampMs, b.LastOffset
	}
	if s.sinceIndex > intervalBytes {
		if err := s.offsets.append(entry{key: b.LastOffset - s.base, value: uint32(position)}); err != nil {
			return err
		}
		if err := s.noteTime(); err != nil {
			return err
		}
		s.sinceIndex = 0
	}
	s.sinceIndex += int64(b.SizeBytes)
	return nil
}

// noteTime adds the largest timestamp so far, unless the index has it already.
func (s *Segment) noteTime() error {
	last, ok, err := s.times.last()
	if err != nil {
		return err
	}
	if s.maxTimestampMs < 0 || ok && s.maxTimestampMs <= last.key {
		return nil
	}
	return s.times.append(entry{key: s.maxTimestampMs, value: uint32(s.maxOffset - s.base)})
}

// Seal prepares the segment for never being written again: the largest timestamp
// ends the time index, the indexes are in their files, blocks reserved beyond
// the end are given back.
func (s *Segment) Seal() error {
	if s.size.Load() == 0 {
		return s.trim()
	}
	if _, _, err := s.MaxTimestamp(); err != nil {
		return err
	}
	if err := s.noteTime(); err != nil {
		return err
	}
	if err := s.WriteIndexes(); err != nil {
		return err
	}
	return s.trim()
}

// WriteIndexes brings the index files up to date with the entries in memory.
func (s *Segment) WriteIndexes() error {
	if err := s.offsets.writeOut(); err != nil {
		return err
	}
	if err := s.times.writeOut(); err != nil {
		return err
	}
	return s.txns.writeOut()
}

// trim gives back what was reserved beyond the end.
func (s *Segment) trim() error {
	if s.reserved <= s.size.Load() {
		return nil
	}
	return s.cutFile(s.size.Load())
}

func (s *Segment) cutFile(sizeBytes int64) error {
	f, err := s.ref.Acquire()
	if err != nil {
		return err
	}
	defer s.ref.Release()
	s.reserved = 0
	err = f.Truncate(sizeBytes)
	s.unsynced.Store(true)
	if err != nil {
		return fmt.Errorf("cut %s: %w", s.ref.path, err)
	}
	return nil
}

// Restore drops the torn tail of a failed append.
func (s *Segment) Restore() error { return s.cutFile(s.size.Load()) }

// Unsynced says that the .log was written since the last SyncLog began.
func (s *Segment) Unsynced() bool { return s.unsynced.Load() }

// SyncLog makes the .log durable. Anyone may call it, beside appends.
func (s *Segment) SyncLog() error {
	f, err := s.ref.Acquire()
	if err != nil {
		return err
	}
	defer s.ref.Release()
	s.unsynced.Store(false)
	if err := f.SyncData(); err != nil {
		s.unsynced.Store(true)
		return fmt.Errorf("sync %s: %w", s.ref.path, err)
	}
	return nil
}

// SyncIndexes makes the index files durable. Anyone may call it.
func (s *Segment) SyncIndexes() error {
	if err := s.offsets.sync(); err != nil {
		return err
	}
	if err := s.times.sync(); err != nil {
		return err
	}
	return s.txns.sync()
}
