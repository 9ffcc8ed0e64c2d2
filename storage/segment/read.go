package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

const (
	// RegionFrom is the size from which a read is answered with a Region: below
	// it a copy costs less than a map.
	RegionFrom = 256 << 10
	// readAhead is read beyond what was asked for, so that the batches between
	// an index entry and the wanted one cost no read of their own.
	readAhead = 8 << 10
)

// Result is what a read found: Data, a Region or nothing.
type Result struct {
	Data   []byte
	Region *Region
	// Beyond says that every batch of the segment ends before the offset: the
	// next segment may have it.
	Beyond bool
	// End is where the bytes end in the file.
	End int64
}

// Read returns batches from the one that holds offset, or the first after it,
// up to byte end of the file and about maxBytes.
func (s *Segment) Read(offset, end int64, maxBytes int, atLeastOne bool) (Result, error) {
	f, err := s.ref.Acquire()
	if err != nil {
		return Result{}, err
	}
	start, err := s.lookup(f, offset)
	if err != nil {
		s.ref.Release()
		return Result{}, err
	}
	if maxBytes < RegionFrom || end-start < RegionFrom {
		n := min(end-start, int64(min(maxBytes, RegionFrom))+readAhead)
		data, at, done, err := s.readSmall(f, start, n, offset, maxBytes)
		if done || err != nil {
			s.ref.Release()
			return Result{Data: data, End: at + int64(len(data))}, err
		}
	}
	return s.readExact(f, start, end, offset, maxBytes, atLeastOne)
}

// readSmall reads n bytes at start and picks the wanted batches out of them, which
// begin at position at. done is false when the first wanted batch is not whole in
// there.
func (s *Segment) readSmall(f vfs.File, start, n, offset int64, maxBytes int) (data []byte, at int64, done bool, err error) {
	if n <= 0 {
		return nil, 0, false, nil
	}
	buf := make([]byte, n)
	got, err := f.ReadAt(buf, start)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, false, fmt.Errorf("read %s: %w", s.ref.path, err)
	}
	rest := buf[:got]
	if len(rest) < batch.HeaderSize || !s.plausible(batch.View(rest), start, offset) {
		return nil, 0, false, nil
	}
	for len(rest) >= batch.HeaderSize && batch.View(rest).LastOffset() < offset {
		if _, rest, err = batch.Next(rest); err != nil {
			return nil, 0, false, nil
		}
	}
	data = wholeBatches(rest, maxBytes)
	return data, start + int64(got-len(rest)), len(data) > 0, nil
}

// wholeBatches cuts b behind the last batch that is whole and within maxBytes.
func wholeBatches(b []byte, maxBytes int) []byte {
	whole := 0
	for whole < len(b) {
		size, err := batch.PeekSize(b[whole:])
		if err != nil || size > len(b)-whole || whole+size > maxBytes {
			break
		}
		whole += size
	}
	return b[:whole:whole]
}

// readExact finds the first wanted batch by its header. It takes over the use
// of f.
func (s *Segment) readExact(f vfs.File, start, end, offset int64, maxBytes int, atLeastOne bool) (Result, error) {
	h, found, err := s.seek(f, start, end, offset)
	if err != nil || !found {
		s.ref.Release()
		return Result{Beyond: err == nil}, err
	}
	length := min(end-h.Position, int64(maxBytes))
	if first := int64(h.SizeBytes()); first > length {
		if !atLeastOne {
			s.ref.Release()
			return Result{End: h.Position}, nil
		}
		length = first
	}
	if length >= RegionFrom {
		return Result{Region: newRegion(s.ref, f, s.env.Maps, h.Position, int(length)), End: h.Position + length}, nil
	}
	defer s.ref.Release()
	buf := make([]byte, length)
	got, err := f.ReadAt(buf, h.Position)
	if err != nil && !errors.Is(err, io.EOF) {
		return Result{}, fmt.Errorf("read %s: %w", s.ref.path, err)
	}
	data := wholeBatches(buf[:got], int(length))
	return Result{Data: data, End: h.Position + int64(len(data))}, nil
}

// lookup is the position of the last index entry that is not beyond offset.
func (s *Segment) lookup(f vfs.File, offset int64) (int64, error) {
	e, ok, err := s.offsets.floor(offset - s.base)
	if err != nil || !ok {
		return 0, err
	}
	return int64(e.value), nil
}

// seek finds the first batch from position on that ends at offset or later.
func (s *Segment) seek(f vfs.File, position, end, offset int64) (Header, bool, error) {
	h, found, err := s.walk(f, position, end, offset)
	if position > 0 && (errors.Is(err, errMisled) || isCorrupt(err) || errors.Is(err, batch.ErrOldMagic)) {
		return s.walk(f, 0, end, offset)
	}
	return h, found, err
}

// errMisled says that an index entry did not lead to its batch. The file itself
// decides then.
var errMisled = errors.New("the index points elsewhere")

func isCorrupt(err error) bool {
	var bad *CorruptError
	return errors.As(err, &bad)
}

// plausible says that an index entry, or the start of the file, may have led to
// v on the way to offset.
func (s *Segment) plausible(v batch.View, position, offset int64) bool {
	return v.Magic() == 2 && v.BaseOffset() >= s.base && (position == 0 || v.BaseOffset() <= offset)
}

func (s *Segment) walk(f vfs.File, position, end, offset int64) (Header, bool, error) {
	sc := NewScanner(f, s.ref.path, position, end, s.base, false)
	for first := true; sc.Next(); first = false {
		if first && !s.plausible(sc.Header().View, position, offset) {
			return Header{}, false, errMisled
		}
		if sc.Header().LastOffset() >= offset {
			return sc.Header(), true, nil
		}
	}
	return Header{}, false, sc.Err()
}

// Position is where the first batch starts that holds offset or a later one; the
// end of the segment when there is none.
func (s *Segment) Position(offset int64) (int64, error) {
	f, err := s.ref.Acquire()
	if err != nil {
		return 0, err
	}
	defer s.ref.Release()
	start, err := s.lookup(f, offset)
	if err != nil {
		return 0, err
	}
	size := s.SizeBytes()
	h, found, err := s.seek(f, start, size, offset)
	if err != nil {
		return 0, err
	}
	if !found {
		return size, nil
	}
	return h.Position, nil
}

// Scan calls fn with the header of every batch from the one that holds offset
// on, until fn returns false.
func (s *Segment) Scan(offset int64, fn func(Header) bool) error {
	f, err := s.ref.Acquire()
	if err != nil {
		return err
	}
	defer s.ref.Release()
	start, err := s.lookup(f, offset)
	if err != nil {
		return err
	}
	size := s.SizeBytes()
	h, found, err := s.seek(f, start, size, offset)
	if err != nil || !found {
		return err
	}
	sc := NewScanner(f, s.ref.path, h.Position, size, s.base, false)
	for sc.Next() {
		if !fn(sc.Header()) {
			return nil
		}
	}
	return sc.Err()
}

// Batch reads a whole batch whose header was found.
func (s *Segment) Batch(h Header) (batch.View, error) {
	size := int64(h.SizeBytes())
	if size > s.SizeBytes()-h.Position {
		return nil, &CorruptError{Path: s.ref.path, Position: h.Position, BaseOffset: h.BaseOffset(), Reason: "the batch is longer than the file"}
	}
	f, err := s.ref.Acquire()
	if err != nil {
		return nil, err
	}
	defer s.ref.Release()
	buf := make([]byte, size)
	if _, err := f.ReadAt(buf, h.Position); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.ref.path, err)
	}
	v, _, err := batch.Next(buf)
	if err != nil {
		return nil, &CorruptError{Path: s.ref.path, Position: h.Position, BaseOffset: h.BaseOffset(), Reason: err.Error()}
	}
	return v, nil
}

// OffsetNear is an offset whose batch starts at or shortly before a position;
// the segment's base when the index does not reach so far back.
func (s *Segment) OffsetNear(position int64) (int64, error) {
	e, ok, err := s.offsets.floorBy(func(e entry) int64 { return int64(e.value) }, position)
	if err != nil || !ok {
		return s.base, err
	}
	return s.base + e.key, nil
}

// OffsetBehind is an offset that no batch before a position reaches, as near as
// the index tells; ok is false when it has no entry from there on.
func (s *Segment) OffsetBehind(position int64) (offset int64, ok bool, err error) {
	e, ok, err := s.offsets.ceilBy(func(e entry) int64 { return int64(e.value) }, position)
	return s.base + e.key, ok, err
}
