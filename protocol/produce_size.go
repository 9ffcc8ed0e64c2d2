package protocol

import "encoding/binary"

// produceRecordBytes adds up the record bytes of a Produce request without
// decoding it: 0 of what is malformed, which the decoder refuses later.
func produceRecordBytes(version int16, body []byte) int {
	r := reader{b: body, flexible: RequestIsFlexible(0, version)}
	if version >= 3 {
		r.skip(r.stringLen()) // transactional id
	}
	r.skip(2 + 4) // acks, timeout
	total := 0
	for topics := r.arrayLen(); topics > 0 && !r.bad; topics-- {
		if version >= 13 {
			r.skip(16)
		} else {
			r.skip(r.stringLen())
		}
		for partitions := r.arrayLen(); partitions > 0 && !r.bad; partitions-- {
			r.skip(4)
			n := r.bytesLen()
			r.skip(n)
			if !r.bad && n > 0 {
				total += n
			}
			r.skipTags()
		}
		r.skipTags()
	}
	return total
}

// reader walks over encoded fields; once bad it stays so.
type reader struct {
	b        []byte
	flexible bool
	bad      bool
}

func (r *reader) skip(n int) {
	if n < 0 {
		return // null
	}
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return
	}
	r.b = r.b[n:]
}

func (r *reader) uvarint() int {
	u, n := binary.Uvarint(r.b)
	if n <= 0 || u > 1<<31 {
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

func (r *reader) skipTags() {
	if !r.flexible || r.bad {
		return
	}
	rest, err := skipTags(r.b)
	if err != nil {
		r.bad, r.b = true, nil
		return
	}
	r.b = rest
}
