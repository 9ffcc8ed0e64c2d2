package batch

import (
	"encoding/binary"
	"errors"
)

// Record is one record of a batch. Key and Value are nil for null.
type Record struct {
	Offset      int64
	TimestampMs int64
	Key, Value  []byte
	Headers     []Header
}

// Header is one header of a record. Value is nil for null.
type Header struct {
	Key   string
	Value []byte
}

// DefaultMaxDecodedBytes bounds what one batch may expand to where no other
// bound is given. Producers bound a batch before compression, by about a MiB.
const DefaultMaxDecodedBytes = 256 << 20

// Records calls fn with every record of v in order. Keys, values and header
// values alias v or a buffer made for this call, so they may be kept as long as
// v's bytes stay. At most maxBytes are decompressed (0: the default). When fn
// returns ErrStop the walk ends without an error; other errors are passed on.
func Records(v View, maxBytes int, fn func(Record) error) error {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxDecodedBytes
	}
	plain, err := decompress(v, maxBytes)
	if err != nil {
		return err
	}
	c := cursor{b: plain}
	w := walker{v: v, c: &c}
	for range v.NumRecords() {
		var r Record
		if err := w.read(&r); err != nil {
			return err
		}
		if err := fn(r); err != nil {
			if errors.Is(err, ErrStop) {
				return nil
			}
			return err
		}
	}
	return c.atEnd()
}

// walker parses one record after another.
type walker struct {
	v View
	c *cursor
	// end is where the current record ends.
	end int
}

// head is what a record begins with.
type head struct {
	timestampDelta int64
	offsetDelta    int32
}

func (w *walker) head() (h head, err error) {
	length, err := w.c.varint()
	if err != nil {
		return h, err
	}
	if length < 0 || w.c.src == nil && int(length) > len(w.c.b)-w.c.pos {
		return h, errRecordEnds
	}
	w.end = w.c.at() + int(length)
	if _, err = w.c.byte(); err != nil { // attributes, of which none is in use
		return h, err
	}
	if h.timestampDelta, err = w.c.varlong(); err != nil {
		return h, err
	}
	h.offsetDelta, err = w.c.varint()
	return h, err
}

// timestamp is that of a record with the given delta.
func (w *walker) timestamp(delta int64) int64 {
	if w.v.TimestampType() == LogAppendTime {
		return w.v.MaxTimestamp()
	}
	return w.v.BaseTimestamp() + delta
}

// read parses a whole record of a cursor over a slice.
func (w *walker) read(r *Record) error {
	h, err := w.head()
	if err != nil {
		return err
	}
	r.Offset = w.v.BaseOffset() + int64(h.offsetDelta)
	r.TimestampMs = w.timestamp(h.timestampDelta)
	if r.Key, err = w.field(); err != nil {
		return err
	}
	if r.Value, err = w.field(); err != nil {
		return err
	}
	n, err := w.headerCount()
	if err != nil {
		return err
	}
	if n > 0 {
		r.Headers = make([]Header, n)
	}
	for i := range r.Headers {
		key, err := w.field()
		if err != nil {
			return err
		}
		if key == nil {
			return errHeaderKey
		}
		r.Headers[i].Key = string(key)
		if r.Headers[i].Value, err = w.field(); err != nil {
			return err
		}
	}
	return w.done()
}

// stream parses a whole record of a cursor over a window. It is copied to scratch,
// which is given back; the record lives until that is used again.
func (w *walker) stream(r *Record, scratch []byte) ([]byte, error) {
	length, err := w.c.varint()
	if err != nil {
		return scratch, err
	}
	switch {
	case length < 0:
		return scratch, errRecordEnds
	case length > maxInnerBytes:
		return scratch, tooLargeInside(int(length))
	}
	scratch = binary.AppendVarint(scratch[:0], int64(length))
	if scratch, err = w.c.appendNext(scratch, int(length)); err != nil {
		return scratch, err
	}
	one := walker{v: w.v, c: &cursor{b: scratch}}
	return scratch, one.read(r)
}

// next passes over a whole record.
func (w *walker) next(s *skimmed) (err error) {
	if w.c.src == nil {
		if next := skimPlain(w.c.b, w.c.pos, s); next >= 0 {
			w.c.pos = next
			return nil
		}
	}
	if s.head, err = w.head(); err != nil {
		return err
	}
	s.nullKey, err = w.skim()
	return err
}

// skim passes over the rest of a record after its head; it tells whether the
// key is null.
func (w *walker) skim() (nullKey bool, err error) {
	nullKey, err = w.skipField()
	if err != nil {
		return nullKey, err
	}
	if _, err = w.skipField(); err != nil {
		return nullKey, err
	}
	n, err := w.headerCount()
	if err != nil {
		return nullKey, err
	}
	for range n {
		null, err := w.skipField()
		if err != nil {
			return nullKey, err
		}
		if null {
			return nullKey, errHeaderKey
		}
		if _, err = w.skipField(); err != nil {
			return nullKey, err
		}
	}
	return nullKey, w.done()
}

// length reads a field's length and holds it against the record's end.
func (w *walker) length() (int, error) {
	n, err := w.c.varint()
	if err != nil {
		return 0, err
	}
	if int(n) > w.end-w.c.at() {
		return 0, errFieldEnds
	}
	return int(n), nil
}

func (w *walker) field() ([]byte, error) {
	n, err := w.length()
	if err != nil || n < 0 {
		return nil, err
	}
	return w.c.take(n)
}

func (w *walker) skipField() (null bool, err error) {
	n, err := w.length()
	if err != nil || n < 0 {
		return true, err
	}
	return false, w.c.skip(n)
}

// headerCount reads the number of headers; each takes two bytes at least.
func (w *walker) headerCount() (int, error) {
	n, err := w.c.varint()
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, errHeaders
	}
	if int(n) > (w.end-w.c.at())/2 {
		return 0, errFieldEnds
	}
	return int(n), nil
}

func (w *walker) done() error {
	switch at := w.c.at(); {
	case at > w.end:
		return errFieldEnds
	case at < w.end:
		return errRecordLeft
	}
	return nil
}
