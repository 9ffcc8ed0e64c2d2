package batch

import (
	"fmt"
	"io"

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

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// newCompressor compresses into dst. Level 0 is the codec's default; other
// levels are those of compression.gzip.level, compression.lz4.level and
// compression.zstd.level.
func newCompressor(codec Codec, level int, dst io.Writer) (io.WriteCloser, error) {
	switch codec {
	case None:
		return nopCloser{dst}, nil
	case Gzip:
		return newGzipWriter(level, dst)
	case Snappy:
		return newSnappyWriter(dst)
	case LZ4:
		return newLZ4Writer(level, dst)
	case Zstd:
		return newZstdWriter(level, dst)
	}
	return nil, fmt.Errorf("%v can't compress", codec)
}

func newGzipWriter(level int, dst io.Writer) (io.WriteCloser, error) {
	if level < gzip.BestSpeed || level > gzip.BestCompression {
		level = gzip.DefaultCompression
	}
	return gzip.NewWriterLevel(dst, level)
}

// newLZ4Writer writes frames as Kafka's clients do: independent blocks of
// 64 KiB without checksums.
func newLZ4Writer(level int, dst io.Writer) (io.WriteCloser, error) {
	w := lz4.NewWriter(dst)
	compression := lz4.Fast
	if level > 0 {
		compression = lz4.Level1 << (min(level, 9) - 1)
	}
	err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false),
		lz4.ConcurrencyOption(1), lz4.CompressionLevelOption(compression))
	return w, err
}

func newZstdWriter(level int, dst io.Writer) (io.WriteCloser, error) {
	speed := zstd.SpeedDefault
	if level != 0 {
		speed = zstd.EncoderLevelFromZstd(level)
	}
	return zstd.NewWriter(dst, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWriteWindow), zstd.WithEncoderLevel(speed))
}
