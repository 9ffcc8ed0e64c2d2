package importer

import (
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

const (
	// windowBytes is what is read of a segment at once, maxBatchBytes the largest
	// batch that is believed.
	windowBytes   = 1 << 20
	maxBatchBytes = 512 << 20
	// noEpoch is the leader epoch of batches that come from messages of old
	// formats, which have none.
	noEpoch = -1
)

// batchReader reads a .log file from its start, batch by batch, each with a sound
// checksum. Messages of format v0 and v1 come as batches.
type batchReader struct {
	f       vfs.File
	path    string
	sizeLog int64
	base    int64

	// buf is what was read and not given out yet, a part of arena.
	buf, arena []byte
	// pos is where buf begins in the file.
	pos  int64
	last int64

	// converted says that the batch was made of messages of an old format.
	converted bool
}

func newBatchReader(f vfs.File, path string, sizeBytes, base int64) *batchReader {
	return &batchReader{f: f, path: path, sizeLog: sizeBytes, base: base, last: base - 1}
}

// nextOffset is the first offset after what was read.
func (r *batchReader) nextOffset() int64 { return r.last + 1 }

func (r *batchReader) corrupt(format string, args ...any) error {
	return &segment.CorruptError{Path: r.path, Position: r.pos, BaseOffset: r.last, Reason: fmt.Sprintf(format, args...)}
}

// next is the next batch, valid until the call after it; io.EOF at the end and a
// *segment.CorruptError where the bytes make no sense.
func (r *batchReader) next() (batch.View, error) {
	left := r.sizeLog - r.pos
	if left == 0 {
		return nil, io.EOF
	}
	if left < batch.LogOverhead+1 {
		return nil, r.corrupt("%d bytes are left", left)
	}
	if err := r.fill(min(batch.HeaderSize, left)); err != nil {
		return nil, err
	}
	size, err := batch.PeekSize(r.buf)
	switch {
	case errors.Is(err, batch.ErrOldMagic):
		return r.nextOld()
	case err != nil:
		return nil, r.corrupt("%v", err)
	case int64(size) > left || size > maxBatchBytes:
		return nil, r.corrupt("a batch of %d bytes, and %d are left", size, left)
	}
	if err := r.fill(int64(size)); err != nil {
		return nil, err
	}
	v := batch.View(r.buf[:size:size])
	if v.CRC() != v.ComputeCRC() {
		return nil, r.corrupt("the checksum is %08x, the computed one %08x", v.CRC(), v.ComputeCRC())
	}
	r.converted = false
	return v, r.step(v, size)
}

// nextOld converts what it can of messages of an old format.
func (r *batchReader) nextOld() (batch.View, error) {
	want := min(int64(windowBytes), r.sizeLog-r.pos)
	for {
		if err := r.fill(want); err != nil {
			return nil, err
		}
		v, rest, err := batch.ConvertStored(r.buf[:want], noEpoch, 0)
		switch {
		case errors.Is(err, batch.ErrTruncated) && want < r.sizeLog-r.pos && want < maxBatchBytes:
			want = min(4*want, r.sizeLog-r.pos)
			continue
		case err != nil:
			return nil, r.corrupt("%v", err)
		}
		r.converted = true
		return v, r.step(v, int(want)-len(rest))
	}
}

// step moves behind a batch whose offsets are in order.
func (r *batchReader) step(v batch.View, sizeBytes int) error {
	if v.LastOffsetDelta() < 0 || v.BaseOffset() <= r.last || v.BaseOffset() < r.base {
		return r.corrupt("offset %d follows offset %d", v.BaseOffset(), r.last)
	}
	r.last = v.LastOffset()
	r.buf = r.buf[sizeBytes:]
	r.pos += int64(sizeBytes)
	return nil
}

// fill makes sure that the buffer has n bytes.
func (r *batchReader) fill(n int64) error {
	if int64(len(r.buf)) >= n {
		return nil
	}
	want := min(max(n, windowBytes), r.sizeLog-r.pos)
	to := r.arena
	if int64(len(to)) < want {
		to = make([]byte, want)
	}
	have := copy(to, r.buf)
	got, err := r.f.ReadAt(to[have:want], r.pos+int64(have))
	r.buf, r.arena = to[:have+got], to
	if int64(len(r.buf)) >= n {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return r.corrupt("the file ends after %d of %d bytes", len(r.buf), n)
	}
	return fmt.Errorf("read %s: %w", r.path, err)
}
