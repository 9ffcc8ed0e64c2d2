package protocol

import (
	"encoding/binary"
	"math"
)

// What decoding costs beside the bytes themselves; measured by
// TestDecodedSizeIsAnUpperBound.
const (
	// stringBytes is what a string's own allocation and header are rounded up by.
	stringBytes = 32
	// firstTagBytes and tagBytes are what unknown tagged fields cost: kmsg keeps
	// them in a map.
	firstTagBytes = 400
	tagBytes      = 200
	// fallbackFactor is for what is not walked over: the inside of tagged fields
	// and versions whose layout could not be learned.
	fallbackFactor = 96
)

// Size is what is known of a request before it is decoded.
type Size struct {
	// Bytes is an upper estimate of the memory that decoding takes.
	Bytes int
	// Elements counts those of every array, the ones inside of others too: the work
	// on the request and the answer are in proportion to it.
	Elements int
	// LongString says that a string is longer than the protocol's strings may be,
	// which only their newer encoding can express. Kafka refuses such a request.
	LongString bool
}

// sizer adds up what a request becomes when it is decoded.
type sizer struct {
	reader
	Size
}

// structure walks over the fields of a struct that lies in memory already.
func (s *sizer) structure(l *structLayout) {
	for i := range l.fields {
		if s.bad {
			return
		}
		s.field(&l.fields[i])
	}
	if s.flexible && l.sizeBytes > 0 {
		s.tags()
	}
}

func (s *sizer) field(f *fieldLayout) {
	switch f.kind {
	case fixedField:
		s.skip(f.width)
	case stringField:
		n := s.stringLen()
		s.LongString = s.LongString || n > math.MaxInt16
		s.Bytes += max(n, 0) + stringBytes
		s.skip(n)
	case bytesField:
		s.skip(s.bytesLen())
	case structField:
		s.structure(f.elem)
	case optionalField:
		if len(s.b) > 0 && s.b[0] != 0xff {
			s.Bytes += f.elem.sizeBytes
			s.skip(1)
			s.structure(f.elem)
			return
		}
		s.skip(1)
	case arrayField:
		n := s.arrayLen()
		// kmsg refuses a count beyond the bytes left before it allocates.
		if n > len(s.b) {
			s.bad, s.b = true, nil
			return
		}
		if n > 0 {
			s.Elements += n
			s.Bytes += n*f.elemBytes + n*f.elemBytes/4 + stringBytes
		}
		for ; n > 0 && !s.bad; n-- {
			s.structure(f.elem)
		}
	}
}

func (s *sizer) tags() {
	if len(s.b) > 0 && s.b[0] == 0 {
		s.b = s.b[1:]
		return
	}
	count := s.uvarint()
	if count > 0 {
		s.Bytes += firstTagBytes
	}
	for ; count > 0 && !s.bad; count-- {
		s.Bytes += tagBytes
		s.uvarint()
		n := s.uvarint()
		s.Bytes += n * fallbackFactor // a known tagged field is decoded
		s.skip(n)
	}
}

// reader walks over encoded fields; once bad it stays so.
type reader struct {
	b        []byte
	flexible bool
	bad      bool
}

// skip passes over n bytes; a negative n is the length of null.
func (r *reader) skip(n int) {
	if n <= 0 {
		return
	}
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return
	}
	r.b = r.b[n:]
}

func (r *reader) uvarint() int {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		n := int(r.b[0])
		r.b = r.b[1:]
		return n
	}
	u, n := binary.Uvarint(r.b)
	if n <= 0 || u > 1<<32 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int(u)
}

func (r *reader) int32() int {
	if len(r.b) < 4 {
		r.bad, r.b = true, nil
		return 0
	}
	n := int(int32(binary.BigEndian.Uint32(r.b)))
	r.b = r.b[4:]
	return n
}

func (r *reader) arrayLen() int {
	if r.flexible {
		return r.uvarint() - 1
	}
	return r.int32()
}

func (r *reader) bytesLen() int { return r.arrayLen() }

func (r *reader) stringLen() int {
	if r.flexible {
		return r.uvarint() - 1
	}
	if len(r.b) < 2 {
		r.bad, r.b = true, nil
		return 0
	}
	n := int(int16(binary.BigEndian.Uint16(r.b)))
	r.b = r.b[2:]
	return n
}
