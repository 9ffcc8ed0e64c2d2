package batch

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Clients of message format v0 compute the checksum in the LZ4 frame's header
// wrongly: over the header from its magic number on instead of from behind it
// (KAFKA-3160). The oldest of them refuse the right one, others never wrote the
// wrong one: for v0 any is taken, and the wrong one given.

var lz4Magic = []byte{0x04, 0x22, 0x4d, 0x18}

const (
	lz4DictID      = 0x01
	lz4ContentSize = 0x08
)

// lz4HeaderEnd is where the header's checksum stands, 0 when src is no LZ4 frame
// with a whole header.
func lz4HeaderEnd(src []byte) int {
	if len(src) < 7 || !bytes.HasPrefix(src, lz4Magic) {
		return 0
	}
	end, flags := 6, src[4]
	if flags&lz4ContentSize != 0 {
		end += 8
	}
	if flags&lz4DictID != 0 {
		end += 4
	}
	if end >= len(src) {
		return 0
	}
	return end
}

// rightLZ4Checksum is src with the header checksum that the frame format asks
// for; src itself when it has that or is no frame.
func rightLZ4Checksum(src []byte) []byte {
	end := lz4HeaderEnd(src)
	if end == 0 {
		return src
	}
	right := byte(shortXXH32(src[4:end]) >> 8)
	if src[end] == right {
		return src
	}
	fixed := bytes.Clone(src)
	fixed[end] = right
	return fixed
}

// wrongLZ4Checksum writes the header checksum of message format v0 into frame,
// whose header has no optional field.
func wrongLZ4Checksum(frame []byte) {
	if end := lz4HeaderEnd(frame); end == 6 {
		frame[end] = byte(shortXXH32(frame[:end]) >> 8)
	}
}

// shortXXH32 is XXH32 with seed 0 of fewer than 16 bytes.
func shortXXH32(b []byte) uint32 {
	const prime1, prime2, prime3, prime4, prime5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	h := uint32(prime5) + uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*prime3, 17) * prime4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}
