package storage

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func benchLog(b *testing.B, cfg LogConfig) *Log {
	b.Helper()
	env := Env{FS: vfs.OS(), Clock: clock.Real(), Logger: telemetry.Discard(), Rand: rand.Uint64}
	s, err := Open(env, b.TempDir(), StoreConfig{FlushBehindBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	cfg.IndexIntervalBytes = 4096
	cfg.RetentionMs, cfg.RetentionBytes = -1, -1
	l, err := s.OpenLog(testTopic, testID, cfg)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// benchBatch is a batch of about sizeBytes.
func benchBatch(sizeBytes int) []byte {
	n := max(1, sizeBytes/110)
	return makeBatch(1_000_000, fmt.Sprintf("%080d", 1), n, nil)
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 11 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			l := benchLog(b, LogConfig{})
			batch := benchBatch(size)
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Append(AppendRequest{Batches: batch}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendIdempotent(b *testing.B) {
	l := benchLog(b, LogConfig{})
	n := 100
	batch := makeBatch(1_000_000, fmt.Sprintf("%080d", 1), n, stamp(1, 0, 0))
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	sequence := int32(0)
	for b.Loop() {
		batch[53], batch[54], batch[55], batch[56] = byte(sequence>>24), byte(sequence>>16), byte(sequence>>8), byte(sequence)
		if _, err := l.Append(AppendRequest{Batches: batch}); err != nil {
			b.Fatal(err)
		}
		sequence += int32(n)
	}
}

func BenchmarkRead(b *testing.B) {
	l := benchLog(b, LogConfig{})
	batch := benchBatch(11 << 10)
	for range 20000 {
		if _, err := l.Append(AppendRequest{Batches: batch}); err != nil {
			b.Fatal(err)
		}
	}
	end := l.LogEndOffset()
	for _, max := range []int{16 << 10, 64 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dKiB", max>>10), func(b *testing.B) {
			b.ReportAllocs()
			offset, bytes := int64(0), 0
			for b.Loop() {
				r, err := l.Read(ReadRequest{Offset: offset % end, Limit: end, MaxBytes: max, AtLeastOne: true})
				if err != nil {
					b.Fatal(err)
				}
				bytes += len(r.Data)
				if r.Region != nil {
					bytes += r.Region.Len()
					r.Region.Release()
				}
				offset += 977
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "B/read")
		})
	}
}
