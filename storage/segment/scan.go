package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// CorruptError says where a .log file stops making sense.
type CorruptError struct {
	Path       string
	Position   int64
	BaseOffset int64
	Reason     string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt at byte %d (after offset %d): %s", e.Path, e.Position, e.BaseOffset, e.Reason)
}

const (
	// crcFrom is where the checksummed part of a batch starts, oldCRCFrom that of
	// a message of format v0 or v1, behind its checksum.
	crcFrom, oldCRCFrom = 21, 16
	// A scan of headers reads headerWindow at once, and up to scanWindow once it
	// turns out that it goes on over small batches. A scan that checks batches
	// reads crcWindow.
	headerWindow = 4 << 10
	scanWindow   = 64 << 10
	crcWindow    = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is the header of a batch in a .log file. Only the accessors of the view
// that need no records may be used.
type Header struct {
	batch.View
	Position int64
}

// newest is the largest timestamp of the batch's records, NoTimestamp when
// compaction has left none.
func (h Header) newest() int64 {
	if h.NumRecords() == 0 {
		return NoTimestamp
	}
	return h.MaxTimestamp()
}

// Scanner walks over the batches of a .log file between two positions, header by
// header. The header is valid until the next call.
type Scanner struct {
	r    io.ReaderAt
	path string
	pos  int64 // of the next batch
	end  int64
	crc  bool
	base int64 // of the segment
	last int64 // the last offset seen, for messages and the order check

	buf     []byte
	bufPos  int64
	bufLen  int
	window  int
	headBuf [batch.HeaderSize]byte // the window may move on while head is in use
	head    Header
	err     error
}

// NewScanner reads batches from position up to end, the size of the file or
// less. With crc, the checksum of each batch is verified.
func NewScanner(r io.ReaderAt, path string, position, end, baseOffset int64, crc bool) *Scanner {
	s := &Scanner{r: r, path: path, pos: position, end: end, crc: crc, base: baseOffset, last: baseOffset - 1, window: headerWindow}
	if crc {
		s.window = crcWindow
	}
	return s
}

// Next moves to the next batch. It returns false at the end, at an error and at
// the first byte that can't be right; Err tells which.
func (s *Scanner) Next() bool {
	if s.err != nil || s.pos >= s.end {
		return false
	}
	h, size, err := s.header()
	if err == nil && s.crc {
		err = s.verify(h, size)
	}
	if err != nil {
		s.err = err
		return false
	}
	s.head = Header{View: h, Position: s.pos}
	s.last = h.LastOffset()
	s.pos += size
	return true
}

// Header is the batch that Next found.
func (s *Scanner) Header() Header { return s.head }

// Position is where the next batch starts: the end of the valid bytes after
// Next returned false.
func (s *Scanner) Position() int64 { return s.pos }

// NextOffset is the first offset after the batches seen.
func (s *Scanner) NextOffset() int64 { return s.last + 1 }

// Err is nil at a clean end; a *CorruptError when the bytes are wrong.
func (s *Scanner) Err() error { return s.err }

func (s *Scanner) corrupt(format string, args ...any) error {
	return &CorruptError{Path: s.path, Position: s.pos, BaseOffset: s.last, Reason: fmt.Sprintf(format, args...)}
}

func (s *Scanner) header() (batch.View, int64, error) {
	if s.end-s.pos < batch.HeaderSize {
		return nil, 0, s.corrupt("%d bytes are left, a batch has at least %d", s.end-s.pos, batch.HeaderSize)
	}
	b, err := s.bytes(s.pos, batch.HeaderSize)
	if err != nil {
		return nil, 0, err
	}
	size, err := batch.PeekSize(b)
	if errors.Is(err, batch.ErrOldMagic) && s.oldMessage() {
		return nil, 0, fmt.Errorf("%s at byte %d: %w", s.path, s.pos, err)
	}
	if err != nil {
		return nil, 0, s.corrupt("%v", err)
	}
	if int64(size) > s.end-s.pos {
		return nil, 0, s.corrupt("a batch of %d bytes, but %d are left", size, s.end-s.pos)
	}
	copy(s.headBuf[:], b)
	v := batch.View(s.headBuf[:])
	if v.LastOffsetDelta() < 0 {
		return nil, 0, s.corrupt("last offset delta %d", v.LastOffsetDelta())
	}
	if v.BaseOffset() <= s.last {
		return nil, 0, s.corrupt("base offset %d follows offset %d", v.BaseOffset(), s.last)
	}
	// The checksum does not cover the base offset.
	if v.BaseOffset()-s.base > math.MaxInt32-int64(v.LastOffsetDelta()) {
		return nil, 0, s.corrupt("base offset %d is out of the segment's range", v.BaseOffset())
	}
	return v, int64(size), nil
}

// oldMessage says that a whole message of format v0 or v1 is at the position,
// and not a batch with a damaged magic byte.
func (s *Scanner) oldMessage() bool {
	head, err := s.bytes(s.pos, batch.HeaderSize)
	if err != nil {
		return false
	}
	want, size := binary.BigEndian.Uint32(head[oldCRCFrom-4:]), int64(binary.BigEndian.Uint32(head[8:]))
	end := s.pos + batch.LogOverhead + size
	if end > s.end {
		return false
	}
	sum, err := s.sum(crc32.IEEETable, s.pos+oldCRCFrom, end)
	return err == nil && sum == want
}

// bytes returns n bytes at position off through the window.
func (s *Scanner) bytes(off int64, n int) ([]byte, error) {
	if off >= s.bufPos && off+int64(n) <= s.bufPos+int64(s.bufLen) {
		return s.buf[off-s.bufPos:][:n], nil
	}
	if near := off - s.bufPos - int64(s.bufLen); s.bufLen > 0 && near < headerWindow/4 && s.window < scanWindow {
		s.window *= 2
	}
	window := int(min(int64(max(s.window, n)), s.end-off))
	if cap(s.buf) < window {
		s.buf = make([]byte, window)
	}
	got, err := s.r.ReadAt(s.buf[:window], off)
	s.bufPos, s.bufLen = off, got
	if got < n {
		if err == nil || errors.Is(err, io.EOF) {
			return nil, s.corrupt("the file ends after %d of %d bytes", got, n)
		}
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	return s.buf[:n], nil
}

// verify computes the checksum, in pieces when the batch is larger than the
// window.
func (s *Scanner) verify(v batch.View, size int64) error {
	sum, err := s.sum(castagnoli, s.pos+crcFrom, s.pos+size)
	if err != nil {
		return err
	}
	if sum != v.CRC() {
		return s.corrupt("checksum %08x, computed %08x", v.CRC(), sum)
	}
	return nil
}

func (s *Scanner) sum(table *crc32.Table, from, to int64) (sum uint32, err error) {
	for off := from; off < to; {
		n := to - off
		if have := s.bufPos + int64(s.bufLen) - off; have > 0 && off >= s.bufPos {
			n = min(n, have)
		}
		b, err := s.bytes(off, int(min(n, crcWindow)))
		if err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, table, b)
		off += int64(len(b))
	}
	return sum, nil
}
