package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

const (
	// windowSize is the piece in which decompressed records are looked at.
	windowSize = 16 << 10
	// maxZstdWindow is the reference decoder's own default limit (2^27), which
	// level 22 needs. pooledZstdWindow holds what levels up to 19 need; a
	// decoder that may have grown beyond it is not kept.
	maxZstdWindow    = 128 << 20
	pooledZstdWindow = 8 << 20
)

// largeWindows lets one decoder with a large window exist at a time: a small frame
// can ask for one, so that many connections could otherwise fill the memory. It
// is held for one walk over a batch.
var largeWindows = make(chan struct{}, 1)

// decompressor is a reusable reader of one codec.
type decompressor struct {
	src  bytes.Reader
	gzip gzipMembers
	lz4  lz4Frame
	zstd *zstd.Decoder
	snap snappyReader
	// window is scratch space for a cursor.
	window []byte
	codec  Codec
	// large says that largeWindows is held.
	large bool
}

var decompressors [Zstd + 1]sync.Pool

// openRecords starts reading the records behind v's header, of which the caller
// wants at most limit bytes. close must follow. It may have to wait for another
// batch when v needs LargeBytes or more.
func openRecords(v View, limit int) (d *decompressor, r io.Reader, err error) {
	return openCompressed(v.Codec(), v.records(), limit)
}

// openCompressed is openRecords for bytes that stand elsewhere.
func openCompressed(codec Codec, src []byte, limit int) (d *decompressor, r io.Reader, err error) {
	if !codec.Known() {
		return nil, nil, protocol.Errorf(kerr.UnsupportedCompressionType, "compression type %d does not exist", int8(codec))
	}
	d, _ = decompressors[codec].Get().(*decompressor)
	if d == nil {
		d = &decompressor{codec: codec}
	}
	d.src.Reset(src)
	if r, err = d.reader(src, limit); err != nil {
		d.close()
		return nil, nil, decodeError(err)
	}
	return d, r, nil
}

func (d *decompressor) reader(src []byte, limit int) (io.Reader, error) {
	switch d.codec {
	case Gzip:
		return d.gzipReader()
	case Snappy:
		d.snap.reset(src, limit)
		return &d.snap, nil
	case LZ4:
		return d.lz4Reader(src)
	case Zstd:
		return d.zstdReader(src)
	}
	return &d.src, nil
}

func (d *decompressor) gzipReader() (io.Reader, error) {
	if d.gzip.Reader == nil {
		d.gzip.Reader, d.gzip.src = new(gzip.Reader), &d.src
	}
	return &d.gzip, d.gzip.begin()
}

// gzipMembers reads one gzip member after the other, as Java does: what follows a
// member and does not begin as one is ignored.
type gzipMembers struct {
	*gzip.Reader
	src   *bytes.Reader
	ended bool
}

func (g *gzipMembers) begin() error {
	if err := g.Reset(g.src); err != nil {
		return err
	}
	g.Multistream(false)
	g.ended = false
	return nil
}

func (g *gzipMembers) Read(p []byte) (int, error) {
	if g.ended {
		return 0, io.EOF
	}
	n, err := g.Reader.Read(p)
	if err == io.EOF {
		g.ended = g.src.Len() == 0 || g.begin() != nil
		err = nil
	}
	return n, err
}

func (d *decompressor) lz4Reader(src []byte) (io.Reader, error) {
	size, err := lz4FrameSize(src)
	if err != nil {
		return nil, err
	}
	d.src.Reset(src[:size])
	if d.lz4.Reader == nil {
		d.lz4.Reader = lz4.NewReader(nil)
		if err := d.lz4.Apply(lz4.ConcurrencyOption(1)); err != nil {
			return nil, err
		}
	}
	d.lz4.Reset(&d.src)
	return &d.lz4, nil
}

// lz4Frame does not hold a frame's content against the checksum behind it, as Kafka
// does not; that of a block counts.
type lz4Frame struct{ *lz4.Reader }

func (f *lz4Frame) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, lz4.ErrInvalidFrameChecksum) {
		err = io.EOF
	}
	return n, err
}

func (d *decompressor) zstdReader(src []byte) (io.Reader, error) {
	if zstdWindow(src) > pooledZstdWindow {
		largeWindows <- struct{}{}
		d.large = true
		large, err := newZstdDecoder(maxZstdWindow)
		if err != nil {
			return nil, err
		}
		return large, large.Reset(&d.src)
	}
	if d.zstd == nil {
		var err error
		if d.zstd, err = newZstdDecoder(pooledZstdWindow); err != nil {
			return nil, err
		}
	}
	return d.zstd, d.zstd.Reset(&d.src)
}

// newZstdDecoder makes a decoder that runs in its caller and never decodes into
// memory beyond its window.
func newZstdDecoder(window uint64) (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecodeBuffersBelow(0))
}

// zstdWindow is the window that the first frame announces.
func zstdWindow(src []byte) uint64 {
	var h zstd.Header
	if h.Decode(src) != nil || h.Skippable {
		return 0
	}
	if h.SingleSegment {
		return h.FrameContentSize
	}
	return h.WindowSize
}

// close drops every reference to the batch and keeps the decompressor.
func (d *decompressor) close() {
	if d.large {
		d.large = false
		<-largeWindows
	}
	d.src.Reset(nil)
	d.snap.reset(nil, 0)
	if d.lz4.Reader != nil {
		d.lz4.Reset(nil)
	}
	if d.zstd != nil {
		// Reset(nil) only drops the source; it has no other error than that of
		// a closed decoder, which this one never is.
		_ = d.zstd.Reset(nil)
	}
	decompressors[d.codec].Put(d)
}

// cursor walks over what r gives, at most limit bytes.
func (d *decompressor) cursor(r io.Reader, limit int) cursor {
	if d.window == nil {
		d.window = make([]byte, windowSize)
	}
	return cursor{b: d.window[:0], src: r, limit: limit}
}

// LargeBytes is the WorkingBytes from which on a batch may have to wait for
// another one: not for an event loop.
const LargeBytes = pooledZstdWindow + 1<<20

// WorkingBytes is an upper estimate of the memory that Validate and Records
// need to decompress v, besides what Records keeps: for a memory budget.
func WorkingBytes(v View) int {
	switch v.Codec() {
	case Gzip:
		return windowSize + 64<<10
	case Snappy:
		return windowSize + snappyWorkingBytes(v.records())
	case LZ4:
		return windowSize + 2*lz4MaxBlock
	case Zstd:
		return windowSize + int(min(zstdWindow(v.records()), maxZstdWindow)) + 512<<10
	}
	return 0
}

// lz4MaxBlock is the largest block of the LZ4 frame format.
const lz4MaxBlock = 4 << 20

// decompress returns the records of v uncompressed: the bytes of v themselves
// when they are.
func decompress(v View, maxBytes int) ([]byte, error) {
	if v.Codec() == None {
		return v.records(), nil
	}
	return Decompress(v.Codec(), v.records(), maxBytes)
}

// IsTooLarge says that Decompress met its bound.
func IsTooLarge(err error) bool { return errors.Is(err, kerr.MessageTooLarge) }

// Decompress returns what a codec made src of. The result grows as bytes arrive, up
// to maxBytes; beyond, IsTooLarge tells. It may have to wait for another large one.
func Decompress(codec Codec, src []byte, maxBytes int) ([]byte, error) {
	d, r, err := openCompressed(codec, src, maxBytes)
	if err != nil {
		return nil, err
	}
	defer d.close()
	out := make([]byte, 0, min(maxBytes, 4*len(src)+64))
	for {
		if len(out) == cap(out) {
			grown := make([]byte, len(out), 2*cap(out)+windowSize)
			copy(grown, out)
			out = grown
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if len(out) > maxBytes {
			return nil, tooLarge(maxBytes)
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, decodeError(fmt.Errorf("%v: %w", codec, err))
		}
	}
}
