package group

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errShort = errors.New("shorter than what it announces")

// wireWriter appends Kafka's flexible encoding; it cannot fail.
type wireWriter struct{ buf []byte }

func (w *wireWriter) int8(v int8)      { w.buf = append(w.buf, byte(v)) }
func (w *wireWriter) int16(v int16)    { w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(v)) }
func (w *wireWriter) int32(v int32)    { w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(v)) }
func (w *wireWriter) int64(v int64)    { w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(v)) }
func (w *wireWriter) uvarint(v uint64) { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *wireWriter) count(n int)      { w.uvarint(uint64(n) + 1) }
func (w *wireWriter) id(v [16]byte)    { w.buf = append(w.buf, v[:]...) }

// shortString is the encoding of keys, whose schemas are not flexible.
func (w *wireWriter) shortString(s string) {
	w.int16(int16(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *wireWriter) string(s string) {
	w.count(len(s))
	w.buf = append(w.buf, s...)
}

func (w *wireWriter) optString(s *string) {
	if s == nil {
		w.uvarint(0)
		return
	}
	w.string(*s)
}

func (w *wireWriter) strings(list []string) {
	w.count(len(list))
	for _, s := range list {
		w.string(s)
	}
}

func (w *wireWriter) bytes(b []byte) {
	w.count(len(b))
	w.buf = append(w.buf, b...)
}

func (w *wireWriter) int32s(list []int32) {
	w.count(len(list))
	for _, v := range list {
		w.int32(v)
	}
}

// noTags ends a structure without tagged fields.
func (w *wireWriter) noTags() { w.uvarint(0) }

// tag ends a structure with the one tagged field 0.
func (w *wireWriter) tag(field []byte) {
	w.uvarint(1)
	w.uvarint(0)
	w.uvarint(uint64(len(field)))
	w.buf = append(w.buf, field...)
}

// wireReader takes it apart. After the first error every read gives zero values;
// every length is checked against the bytes left before anything is allocated.
type wireReader struct {
	buf []byte
	err error
}

func (r *wireReader) take(n int) []byte {
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

func (r *wireReader) int8() int8 {
	if b := r.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *wireReader) int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *wireReader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *wireReader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *wireReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		r.take(len(r.buf) + 1)
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *wireReader) id() (id [16]byte) {
	copy(id[:], r.take(len(id)))
	return id
}

// count is the length of a list or string, -1 for null. Each element of a list
// takes elementBytes at least.
func (r *wireReader) count(elementBytes int) int {
	n := r.uvarint()
	if n > uint64(len(r.buf)/elementBytes)+1 {
		r.take(len(r.buf) + 1)
		return -1
	}
	return int(n) - 1
}

func (r *wireReader) shortString() string { return string(r.take(int(r.int16()))) }

func (r *wireReader) optString() *string {
	n := r.count(1)
	if n < 0 {
		return nil
	}
	s := string(r.take(n))
	return &s
}

func (r *wireReader) string() string {
	if s := r.optString(); s != nil {
		return *s
	}
	return ""
}

func (r *wireReader) bytes() []byte { return append([]byte(nil), r.take(max(r.count(1), 0))...) }

func (r *wireReader) strings() []string {
	n := r.count(1)
	if n <= 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.string()
	}
	return list
}

func (r *wireReader) int32s() []int32 {
	n := r.count(4)
	if n <= 0 {
		return nil
	}
	list := make([]int32, n)
	for i := range list {
		list[i] = r.int32()
	}
	return list
}

// tags passes the tagged fields to fn, which leaves alone what it does not know.
func (r *wireReader) tags(fn func(tag uint64, field *wireReader)) {
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		tag := r.uvarint()
		size := r.uvarint()
		if size > uint64(len(r.buf)) {
			size = uint64(len(r.buf)) + 1
		}
		field := &wireReader{buf: r.take(int(size))}
		if fn != nil && r.err == nil {
			fn(tag, field)
			r.err = field.err
		}
	}
}
