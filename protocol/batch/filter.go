package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Head is what a cleaner of logs needs to know of a record.
type Head struct {
	// Index is the record's place among those that the batch still has.
	Index       int32
	Offset      int64
	TimestampMs int64
	// NullKey and NullValue: a record with a key and a null value deletes the key.
	NullKey, NullValue bool
}

// KeyWriter takes a record's key, in pieces; a hash.Hash is one.
type KeyWriter interface {
	io.Writer
	Reset()
}

// Heads calls fn with the head of every record of v in order, after its key was
// written to key, which was reset before. Records are decompressed piece by piece:
// however large they are, it needs WorkingBytes of memory. When fn returns ErrStop
// the walk ends without an error; other errors are passed on.
func Heads(v View, maxBytes int, key KeyWriter, fn func(Head) error) error {
	w, err := openWalk(v, maxBytes)
	if err != nil || w == nil {
		return err
	}
	defer w.close()
	for i := range v.NumRecords() {
		err := w.readHead(i, key, fn)
		if errors.Is(err, ErrStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return w.cursor.atEnd()
}

func (w *walk) readHead(index int32, key KeyWriter, fn func(Head) error) error {
	h, err := w.head()
	if err != nil {
		return err
	}
	key.Reset()
	r := Head{Index: index, Offset: w.v.BaseOffset() + int64(h.offsetDelta), TimestampMs: w.timestamp(h.timestampDelta)}
	if r.NullKey, err = w.writeField(key); err != nil {
		return err
	}
	if r.NullValue, err = w.skipField(); err != nil {
		return err
	}
	// Header fields were checked when the batch was stored.
	if err := w.skipRest(); err != nil {
		return err
	}
	return fn(r)
}

// RewriteOptions says what stays of a batch.
type RewriteOptions struct {
	// Keep says whether the record of that place stays; Kept is how many do, at
	// least one.
	Keep func(index int32) bool
	Kept int32
	// BaseTimestampMs is what the timestamps become relative to; with
	// DeleteHorizon it is the time after which tombstones or a marker may go
	// (KIP-534).
	BaseTimestampMs int64
	DeleteHorizon   bool
	// MaxTimestampMs is the largest timestamp of what stays.
	MaxTimestampMs int64
	// MaxDecodedBytes bounds decompression; 0 is DefaultMaxDecodedBytes.
	MaxDecodedBytes int
}

// Rewrite appends to dst the batch v with only some of its records, in the same
// codec. Offsets, sequence numbers and everything else of the header stay as they
// are.
func Rewrite(dst []byte, v View, o RewriteOptions) ([]byte, error) {
	from := len(dst)
	w := &appendWriter{b: append(dst, v[:HeaderSize]...)}
	c, err := openCompressor(v.Codec(), 0, w)
	if err != nil {
		return dst, err
	}
	defer c.put(v.Codec())
	r := rewriter{o: o, out: c}
	err = r.records(v)
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		return dst, fmt.Errorf("rewrite the batch at offset %d: %w", v.BaseOffset(), err)
	}
	r.header(View(w.b[from:]))
	return w.b, nil
}

// rewriter copies the records that stay.
type rewriter struct {
	o     RewriteOptions
	out   io.Writer
	front []byte
}

func (r *rewriter) records(v View) error {
	w, err := openWalk(v, r.o.MaxDecodedBytes)
	if err != nil || w == nil {
		return err
	}
	defer w.close()
	for i := range v.NumRecords() {
		if err := r.record(w, i); err != nil {
			return err
		}
	}
	return w.cursor.atEnd()
}

func (r *rewriter) record(w *walk, index int32) error {
	h, err := w.head()
	if err != nil {
		return err
	}
	if !r.o.Keep(index) {
		return w.skipRest()
	}
	rest := w.end - w.c.at()
	if rest < 0 {
		return errFieldEnds
	}
	body := append(r.front[:0], make([]byte, binary.MaxVarintLen64)...)
	body = append(body, 0)
	body = binary.AppendVarint(body, w.timestamp(h.timestampDelta)-r.o.BaseTimestampMs)
	body = binary.AppendVarint(body, int64(h.offsetDelta))
	r.front = body
	// The length before it is known only now.
	var length [binary.MaxVarintLen64]byte
	n := binary.PutVarint(length[:], int64(len(body)-binary.MaxVarintLen64+rest))
	start := binary.MaxVarintLen64 - n
	copy(body[start:], length[:n])
	if _, err := r.out.Write(body[start:]); err != nil {
		return err
	}
	return w.c.copyTo(r.out, rest)
}

// header fills in what has changed.
func (r *rewriter) header(v View) {
	attrs := v.Attributes() &^ attrDeleteHorizon
	if r.o.DeleteHorizon {
		attrs |= attrDeleteHorizon
	}
	be := binary.BigEndian
	be.PutUint32(v[posLength:], uint32(len(v)-LogOverhead))
	be.PutUint16(v[posAttributes:], uint16(attrs))
	be.PutUint64(v[posBaseTimestamp:], uint64(r.o.BaseTimestampMs))
	be.PutUint64(v[posMaxTimestamp:], uint64(r.o.MaxTimestampMs))
	be.PutUint32(v[posNumRecords:], uint32(r.o.Kept))
	v.updateCRC()
}

// AppendEmpty appends to dst the batch v without any record: what is kept of a
// producer's last batch, so that its sequence numbers and offsets stay known.
func AppendEmpty(dst []byte, v View) []byte {
	from := len(dst)
	dst = append(dst, v[:HeaderSize]...)
	out := View(dst[from:])
	be := binary.BigEndian
	be.PutUint32(out[posLength:], HeaderSize-LogOverhead)
	be.PutUint16(out[posAttributes:], uint16(v.Attributes()&^(attrCodec|attrDeleteHorizon)))
	be.PutUint64(out[posBaseTimestamp:], 1<<64-1) // NoTimestamp
	be.PutUint32(out[posNumRecords:], 0)
	out.updateCRC()
	return dst
}

// walk reads the records of a batch one after the other, in pieces.
type walk struct {
	walker
	cursor cursor
	d      *decompressor
}

var walks = sync.Pool{New: func() any { return new(walk) }}

// openWalk stands before the first record; nil when there is none. close must
// follow.
func openWalk(v View, maxBytes int) (*walk, error) {
	if v.NumRecords() == 0 {
		return nil, nil
	}
	if maxBytes <= 0 {
		maxBytes = DefaultMaxDecodedBytes
	}
	w := walks.Get().(*walk)
	w.cursor = cursor{b: v.records()}
	if v.Codec() != None {
		d, r, err := openRecords(v, maxBytes)
		if err != nil {
			walks.Put(w)
			return nil, err
		}
		w.d, w.cursor = d, d.cursor(r, maxBytes)
	}
	w.walker = walker{v: v, c: &w.cursor}
	return w, nil
}

func (w *walk) close() {
	if w.d != nil {
		w.d.close()
	}
	*w = walk{}
	walks.Put(w)
}

// skipRest passes over what is left of a record.
func (w *walk) skipRest() error {
	rest := w.end - w.c.at()
	if rest < 0 {
		return errFieldEnds
	}
	return w.c.skip(rest)
}

// writeField is field for a cursor that may be refilled.
func (w *walker) writeField(to io.Writer) (null bool, err error) {
	n, err := w.length()
	if err != nil || n < 0 {
		return true, err
	}
	return false, w.c.copyTo(to, n)
}

// copyTo passes on the next n bytes.
func (c *cursor) copyTo(to io.Writer, n int) error {
	for n > 0 {
		if c.pos == len(c.b) {
			if err := c.refill(); err != nil {
				return err
			}
		}
		piece := c.b[c.pos:min(len(c.b), c.pos+n)]
		if _, err := to.Write(piece); err != nil {
			return err
		}
		c.pos += len(piece)
		n -= len(piece)
	}
	return nil
}
