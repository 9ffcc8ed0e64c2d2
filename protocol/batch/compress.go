package batch

import (
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// zstdWriteWindow keeps every reader's memory small; batches seldom reach it.
const zstdWriteWindow = 1 << 20

// appendWriter is an io.Writer that appends, up to max bytes when max > 0.
type appendWriter struct {
	b   []byte
	max int
}

func (w *appendWriter) Write(p []byte) (int, error) {
	if w.max > 0 && len(w.b)+len(p) > w.max {
		return 0, batchTooLarge(len(w.b)+len(p), w.max)
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

// compressor is a reusable writer of one codec and level.
type compressor struct {
	resetWriter
	level int
}

type resetWriter interface {
	io.WriteCloser
	Reset(w io.Writer)
}

var compressors [Zstd + 1]sync.Pool

// openCompressor starts compressing into dst; put must follow. Level 0 is the
// codec's default; other levels are those of compression.gzip.level,
// compression.lz4.level and compression.zstd.level.
func openCompressor(codec Codec, level int, dst io.Writer) (*compressor, error) {
	if !codec.Known() {
		return nil, fmt.Errorf("%v can't compress", codec)
	}
	if c, _ := compressors[codec].Get().(*compressor); c != nil && c.level == level {
		c.Reset(dst)
		return c, nil
	}
	w, err := newWriter(codec, level, dst)
	return &compressor{w, level}, err
}

func (c *compressor) put(codec Codec) {
	c.Reset(nil)
	compressors[codec].Put(c)
}

func newWriter(codec Codec, level int, dst io.Writer) (resetWriter, error) {
	switch codec {
	case Gzip:
		return newGzipWriter(level, dst)
	case Snappy:
		w := &snappyWriter{pending: make([]byte, 0, xerialBlock)}
		w.Reset(dst)
		return w, nil
	case LZ4:
		return newLZ4Writer(level, dst)
	case Zstd:
		return newZstdWriter(level, dst)
	}
	return &plainWriter{dst}, nil
}

type plainWriter struct{ io.Writer }

func (w *plainWriter) Reset(dst io.Writer) { w.Writer = dst }
func (w *plainWriter) Close() error        { return nil }

func newGzipWriter(level int, dst io.Writer) (resetWriter, error) {
	if level < gzip.BestSpeed || level > gzip.BestCompression {
		level = gzip.DefaultCompression
	}
	return gzip.NewWriterLevel(dst, level)
}

// newLZ4Writer writes frames as Kafka's clients do: independent blocks of
// 64 KiB without checksums.
func newLZ4Writer(level int, dst io.Writer) (resetWriter, error) {
	w := lz4.NewWriter(dst)
	compression := lz4.Fast
	if level > 0 {
		compression = lz4.Level1 << (min(level, 9) - 1)
	}
	err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false),
		lz4.ConcurrencyOption(1), lz4.CompressionLevelOption(compression))
	return w, err
}

func newZstdWriter(level int, dst io.Writer) (resetWriter, error) {
	speed := zstd.SpeedDefault
	if level != 0 {
		speed = zstd.EncoderLevelFromZstd(level)
	}
	return zstd.NewWriter(dst, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWriteWindow), zstd.WithEncoderLevel(speed))
}

// compressInto appends plain to w, compressed.
func compressInto(w *appendWriter, codec Codec, level int, plain []byte) error {
	return compressWith(w, codec, level, func(c io.Writer) error {
		_, err := c.Write(plain)
		return err
	})
}

// compressFrom appends everything that r gives to w, compressed.
func compressFrom(w *appendWriter, codec Codec, level int, r io.Reader) error {
	return compressWith(w, codec, level, func(c io.Writer) error {
		_, err := io.Copy(c, r)
		return err
	})
}

func compressWith(w *appendWriter, codec Codec, level int, write func(io.Writer) error) error {
	c, err := openCompressor(codec, level, w)
	if err != nil {
		return err
	}
	defer c.put(codec)
	if err := write(c); err != nil {
		return err
	}
	return c.Close()
}
