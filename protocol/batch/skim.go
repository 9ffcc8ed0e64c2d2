package batch

// skimmed is what a broker needs to know of one record.
type skimmed struct {
	head
	nullKey bool
}

// skimPlain reads the record at b[pos:] of uncompressed records and returns
// where the next one begins: the fast path of walker.head and walker.skim,
// without an error value on the way. It returns -1 for everything that is out
// of the ordinary (headers included); the walker then says what it is.
func skimPlain(b []byte, pos int, s *skimmed) (next int) {
	length, pos := varintAt(b, pos)
	if pos < 0 || length < 0 || int(length) > len(b)-pos {
		return -1
	}
	next = pos + int(length)
	b = b[:next]
	if pos++; pos > next { // attributes
		return -1
	}
	if s.timestampDelta, pos = varlongAt(b, pos); pos < 0 {
		return -1
	}
	if s.offsetDelta, pos = varintAt(b, pos); pos < 0 {
		return -1
	}
	var n int32
	if n, pos = varintAt(b, pos); pos < 0 || int(n) > next-pos {
		return -1
	}
	s.nullKey = n < 0
	pos += int(max(n, 0))
	if n, pos = varintAt(b, pos); pos < 0 || int(n) > next-pos {
		return -1
	}
	pos += int(max(n, 0))
	// No headers is one zero byte.
	if pos != next-1 || b[pos] != 0 {
		return -1
	}
	return next
}

// varintAt reads a zigzag number of at most 32 bits; next is -1 when there is
// none.
func varintAt(b []byte, pos int) (n int32, next int) {
	if pos < len(b) && b[pos] < 0x80 {
		u := uint32(b[pos])
		return int32(u>>1) ^ -int32(u&1), pos + 1
	}
	var u uint32
	for shift := uint(0); shift < 32 && pos < len(b); shift += 7 {
		c := b[pos]
		pos++
		u |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), pos
		}
	}
	return 0, -1
}

// varlongAt is varintAt for 64 bits.
func varlongAt(b []byte, pos int) (n int64, next int) {
	var u uint64
	for shift := uint(0); shift < 64 && pos < len(b); shift += 7 {
		c := b[pos]
		pos++
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), pos
		}
	}
	return 0, -1
}
