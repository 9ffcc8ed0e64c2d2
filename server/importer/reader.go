package importer

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errShort = errors.New("the record ends early")

// reader reads Kafka's flexible encoding. The first mistake makes everything
// after it zero; err tells of it.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		if r.err == nil {
			r.err = errShort
		}
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) int8() int8 {
	if b := r.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *reader) int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) uuid() (id [16]byte) {
	copy(id[:], r.take(16))
	return id
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.err = errShort
		return 0
	}
	r.b = r.b[n:]
	return v
}

// length is that of a string or array, -1 for null.
func (r *reader) length() int {
	n := r.uvarint()
	if n > uint64(len(r.b))+1 && r.err == nil {
		r.err = fmt.Errorf("a length of %d in a record of which %d bytes are left", n-1, len(r.b))
		return -1
	}
	return int(n) - 1
}

func (r *reader) nullableString() *string {
	n := r.length()
	if n < 0 {
		return nil
	}
	s := string(r.take(n))
	return &s
}

func (r *reader) string() string {
	if s := r.nullableString(); s != nil {
		return *s
	}
	return ""
}

func (r *reader) int32s() []int32 {
	n := r.length()
	if n < 0 {
		return nil
	}
	list := make([]int32, 0, n)
	for range n {
		list = append(list, r.int32())
	}
	return list
}

// tags calls fn with each tagged field that follows.
func (r *reader) tags(fn func(tag uint64, field *reader)) {
	n := r.uvarint()
	for range n {
		if r.err != nil {
			return
		}
		tag, size := r.uvarint(), r.uvarint()
		if size > uint64(len(r.b)) {
			r.err = errShort
			return
		}
		field := &reader{b: r.take(int(size))}
		if fn != nil {
			fn(tag, field)
		}
		if field.err != nil && r.err == nil {
			r.err = field.err
		}
	}
}
