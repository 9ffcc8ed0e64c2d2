package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errShort = errors.New("shorter than what it announces")

// Writer appends Kafka's flexible encoding; it cannot fail.
type Writer struct{ Buf []byte }

// The fixed and variable integers, the length of a list or string, and an id.
func (w *Writer) Int8(v int8)      { w.Buf = append(w.Buf, byte(v)) }
func (w *Writer) Int16(v int16)    { w.Buf = binary.BigEndian.AppendUint16(w.Buf, uint16(v)) }
func (w *Writer) Int32(v int32)    { w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(v)) }
func (w *Writer) Int64(v int64)    { w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(v)) }
func (w *Writer) Uvarint(v uint64) { w.Buf = binary.AppendUvarint(w.Buf, v) }
func (w *Writer) Count(n int)      { w.Uvarint(uint64(n) + 1) }
func (w *Writer) ID(v [16]byte)    { w.Buf = append(w.Buf, v[:]...) }

// ShortString is the encoding of keys, whose schemas are not flexible.
func (w *Writer) ShortString(s string) {
	w.Int16(int16(len(s)))
	w.Buf = append(w.Buf, s...)
}

func (w *Writer) String(s string) {
	w.Count(len(s))
	w.Buf = append(w.Buf, s...)
}

func (w *Writer) OptString(s *string) {
	if s == nil {
		w.Uvarint(0)
		return
	}
	w.String(*s)
}

func (w *Writer) Strings(list []string) {
	w.Count(len(list))
	for _, s := range list {
		w.String(s)
	}
}

func (w *Writer) Bytes(b []byte) {
	w.Count(len(b))
	w.Buf = append(w.Buf, b...)
}

func (w *Writer) Int32s(list []int32) {
	w.Count(len(list))
	for _, v := range list {
		w.Int32(v)
	}
}

// NoTags ends a structure without tagged fields.
func (w *Writer) NoTags() { w.Uvarint(0) }

// Tag ends a structure with the one tagged field 0.
func (w *Writer) Tag(field []byte) {
	w.Uvarint(1)
	w.Uvarint(0)
	w.Uvarint(uint64(len(field)))
	w.Buf = append(w.Buf, field...)
}

// TagInt64 ends a structure with the one tagged field 0, which 0 leaves out.
func (w *Writer) TagInt64(v int64) {
	if v == 0 {
		w.NoTags()
		return
	}
	var field Writer
	field.Int64(v)
	w.Tag(field.Buf)
}

// Reader takes it apart. After the first error every read gives zero values;
// every length is checked against the bytes left before anything is allocated.
type Reader struct {
	buf []byte
	err error
}

// NewReader reads b, whose bytes it does not keep.
func NewReader(b []byte) *Reader { return &Reader{buf: b} }

// Err is the first mistake.
func (r *Reader) Err() error { return r.err }

func (r *Reader) take(n int) []byte {
	if n < 0 || n > len(r.buf) {
		if r.err == nil {
			r.err = fmt.Errorf("%d bytes of %d: %w", n, len(r.buf), errShort)
		}
		r.buf = nil
		return nil
	}
	b := r.buf[:n]
	r.buf = r.buf[n:]
	return b
}

func (r *Reader) Int8() int8 {
	if b := r.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *Reader) Int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *Reader) Int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *Reader) Int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		r.take(len(r.buf) + 1)
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *Reader) ID() (id [16]byte) {
	copy(id[:], r.take(len(id)))
	return id
}

// Count is the length of a list or string, -1 for null. Each element of a list
// takes elementBytes at least.
func (r *Reader) Count(elementBytes int) int {
	n := r.Uvarint()
	if n > uint64(len(r.buf)/elementBytes)+1 {
		r.take(len(r.buf) + 1)
		return -1
	}
	return int(n) - 1
}

func (r *Reader) ShortString() string { return string(r.take(int(r.Int16()))) }

func (r *Reader) OptString() *string {
	n := r.Count(1)
	if n < 0 {
		return nil
	}
	s := string(r.take(n))
	return &s
}

func (r *Reader) String() string {
	if s := r.OptString(); s != nil {
		return *s
	}
	return ""
}

func (r *Reader) Bytes() []byte { return append([]byte(nil), r.take(max(r.Count(1), 0))...) }

func (r *Reader) Strings() []string {
	n := r.Count(1)
	if n <= 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.String()
	}
	return list
}

func (r *Reader) Int32s() []int32 {
	n := r.Count(4)
	if n <= 0 {
		return nil
	}
	list := make([]int32, n)
	for i := range list {
		list[i] = r.Int32()
	}
	return list
}

// Tags passes the tagged fields to fn, which leaves alone what it does not know.
func (r *Reader) Tags(fn func(tag uint64, field *Reader)) {
	for n := r.Uvarint(); n > 0 && r.err == nil; n-- {
		tag := r.Uvarint()
		size := r.Uvarint()
		if size > uint64(len(r.buf)) {
			size = uint64(len(r.buf)) + 1
		}
		field := &Reader{buf: r.take(int(size))}
		if fn != nil && r.err == nil {
			fn(tag, field)
			r.err = field.err
		}
	}
}

// TagInt64 reads what Writer.TagInt64 has written.
func (r *Reader) TagInt64() (v int64) {
	r.Tags(func(tag uint64, field *Reader) {
		if tag == 0 {
			v = field.Int64()
		}
	})
	return v
}
