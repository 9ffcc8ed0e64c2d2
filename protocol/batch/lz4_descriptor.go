package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// Clients of message format v0 compute the checksum in the LZ4 frame's header
// wrongly: over the header from its magic number on instead of from behind it
// (KAFKA-3160). The oldest of them refuse the right one, others never wrote the
// wrong one: for v0 any is taken, and the wrong one given.

var lz4Magic = []byte{0x04, 0x22, 0x4d, 0x18}

// Bits of the descriptor's flags and of a block's size.
const (
	lz4DictID           = 0x01
	lz4ContentChecksum  = 0x04
	lz4ContentSize      = 0x08
	lz4BlockChecksum    = 0x10
	lz4IndependentBlock = 0x20
	lz4PlainBlock       = 0x80000000
)

var (
	errLZ4Frame     = errors.New("lz4: no whole frame")
	errLZ4Dependent = errors.New("lz4: the blocks depend on each other, which Kafka's clients cannot read")
)

// lz4FrameSize is the size of the frame that src begins with. Kafka reads one frame
// of independent blocks, and ignores what follows; what other readers take beside
// that (dependent blocks, several frames, frames to skip) no Java client could read
// again.
func lz4FrameSize(src []byte) (int, error) {
	end := lz4HeaderEnd(src)
	if end == 0 {
		return 0, errLZ4Frame
	}
	flags, tail := src[4], 0
	if flags&lz4IndependentBlock == 0 {
		return 0, errLZ4Dependent
	}
	if flags&lz4BlockChecksum != 0 {
		tail = 4
	}
	const lengthBytes = 4
	for at := end + 1; at+lengthBytes <= len(src); {
		size := binary.LittleEndian.Uint32(src[at:])
		at += lengthBytes
		if size != 0 {
			size &^= lz4PlainBlock
			if uint64(size) > uint64(len(src)-at) {
				break
			}
			at += int(size) + tail
			continue
		}
		if flags&lz4ContentChecksum != 0 {
			at += 4
		}
		if at > len(src) {
			break
		}
		return at, nil
	}
	return 0, errLZ4Frame
}

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
