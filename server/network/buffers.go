package network

import (
	"math/bits"
	"sync"
)

// Sizes of the read path.
const (
	// inlineFrameMax is the largest frame that is served on a loop, and the size
	// of the buffer a loop reads into: measured, larger frames raise the latency
	// of everything else on the loop.
	inlineFrameMax = 64 << 10
	// smallBufferMin is the first allocation for a torn frame.
	smallBufferMin = 512
	// pooledMax is the largest buffer that is kept for reuse; one frame may be
	// larger, but keeping such buffers would hold memory for a rare case.
	pooledMax = 16 << 20
	// chunkBytes is how much of an unmapped region is read at a time.
	chunkBytes = 256 << 10
)

// bufferPools hold buffers of more than inlineFrameMax by size class. There are
// four classes for each doubling, so at most a fifth of a buffer is unused.
var bufferPools [bits.UintSize * 4]sync.Pool

// sizeClass rounds up to a quarter of the power of two below, and names the class.
func sizeClass(sizeBytes int) (class, capBytes int) {
	shift := bits.Len(uint(sizeBytes-1)) - 3
	steps := (sizeBytes + 1<<shift - 1) >> shift
	return shift*4 + steps - 4, steps << shift
}

// getBuffer is an empty buffer of at least sizeBytes.
func getBuffer(sizeBytes int) []byte {
	if sizeBytes <= inlineFrameMax || sizeBytes > pooledMax {
		return make([]byte, 0, sizeBytes)
	}
	class, capBytes := sizeClass(sizeBytes)
	if p, ok := bufferPools[class].Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return make([]byte, 0, capBytes)
}

// putBuffer gives a buffer of getBuffer back.
func putBuffer(b []byte) {
	if cap(b) <= inlineFrameMax || cap(b) > pooledMax {
		return
	}
	class, capBytes := sizeClass(cap(b))
	if capBytes != cap(b) {
		return
	}
	b = b[:0]
	bufferPools[class].Put(&b)
}

// grownSize is the capacity of the next buffer for a frame of frameBytes of which
// haveBytes have arrived: four times what is there, never more than the frame. So
// memory follows the bytes that a client has really sent.
func grownSize(haveBytes, frameBytes int) int {
	target := max(4*haveBytes, smallBufferMin)
	if target >= frameBytes {
		target = frameBytes
	}
	if target <= inlineFrameMax || target > pooledMax {
		return target
	}
	_, capBytes := sizeClass(target)
	return capBytes
}
