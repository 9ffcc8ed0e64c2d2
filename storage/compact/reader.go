package compact

import (
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// Source is a segment to read.
type Source interface {
	io.ReaderAt
	// Name is for error messages.
	Name() string
	BaseOffset() int64
	SizeBytes() int64
}

// CorruptError says that a segment holds bytes that can't be cleaned.
type CorruptError struct {
	Name     string
	Position int64
	Err      error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %v", e.Name, e.Position, e.Err)
}

// Unwrap is what is wrong.
func (e *CorruptError) Unwrap() error { return e.Err }

var errChecksum = errors.New("the checksum of a batch does not match its bytes")

// reader walks over the batches of a segment, checksums included: a batch that is
// written again gets a new checksum, which must not vouch for rotten bytes.
type reader struct {
	src Source
	pos int64 // of the next batch
	end int64
	// buf holds the bytes from bufPos on. It grows for a batch that is larger,
	// and no further than that.
	buf    []byte
	bufPos int64
	have   int
}

// start is where a walk begins: at a batch's start.
func (r *reader) reset(src Source, position int64) {
	r.src, r.pos, r.end = src, position, src.SizeBytes()
	r.bufPos, r.have = position, 0
}

// next is the next batch, valid until the call after it; io.EOF at the end.
func (r *reader) next(c *Cleaner) (batch.View, error) {
	if r.pos >= r.end {
		return nil, io.EOF
	}
	size, err := batch.PeekSize(r.window())
	if errors.Is(err, batch.ErrTruncated) {
		if err := r.fill(c, batch.HeaderSize); err != nil {
			return nil, err
		}
		size, err = batch.PeekSize(r.window())
	}
	if err == nil && int64(size) > r.end-r.pos {
		err = batch.ErrTruncated
	}
	if err != nil {
		return nil, r.corrupt(err)
	}
	if size > len(r.window()) {
		if err := r.fill(c, size); err != nil {
			return nil, err
		}
	}
	v := batch.View(r.window()[:size:size])
	if v.LastOffsetDelta() < 0 || v.ComputeCRC() != v.CRC() {
		return nil, r.corrupt(errChecksum)
	}
	r.pos += int64(size)
	return v, nil
}

func (r *reader) corrupt(err error) error {
	return &CorruptError{Name: r.src.Name(), Position: r.pos, Err: err}
}

// window is what was read from the position on.
func (r *reader) window() []byte {
	from := r.pos - r.bufPos
	if from < 0 || from > int64(r.have) {
		return nil
	}
	return r.buf[from:r.have]
}

// fill reads from the position on, at least n bytes.
func (r *reader) fill(c *Cleaner, n int) error {
	if err := c.pace(0); err != nil {
		return err
	}
	want := max(c.bufferBytes, n)
	if want > len(r.buf) || len(r.buf) > c.bufferBytes && n <= c.bufferBytes {
		r.buf = make([]byte, want)
	}
	got, err := r.src.ReadAt(r.buf[:min(int64(len(r.buf)), r.end-r.pos)], r.pos)
	r.bufPos, r.have = r.pos, got
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", r.src.Name(), err)
	}
	if got < n {
		return r.corrupt(batch.ErrTruncated)
	}
	return c.pace(got)
}
