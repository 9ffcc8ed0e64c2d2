package storage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// BenchmarkOpenClean opens 10,000 partitions after a clean stop and asks each
// for its offsets.
func BenchmarkOpenClean(b *testing.B) {
	dir := b.TempDir()
	env := Env{FS: vfs.OS(), Clock: clock.Real(), Logger: telemetry.Discard(), Rand: rand.Uint64}
	const n = 10_000
	open := func() *Store {
		s, err := Open(env, dir, StoreConfig{})
		if err != nil {
			b.Fatal(err)
		}
		for i := range n {
			l, err := s.OpenLog(TopicPartition{"t", int32(i)}, TopicID{1}, LogConfig{})
			if err != nil {
				b.Fatal(err)
			}
			_ = l.LogEndOffset() + l.LogStartOffset() + l.HighWatermark()
		}
		return s
	}
	s := open()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := open()
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkRecover reports how long, after a process was killed with
// BENCH_MIB (512) in unrolled segments of 100 partitions, the first append and
// the whole recovery take.
func BenchmarkRecover(b *testing.B) {
	mib := 512
	if text := os.Getenv("BENCH_MIB"); text != "" {
		if _, err := fmt.Sscan(text, &mib); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	env := Env{FS: vfs.OS(), Clock: clock.Real(), Logger: telemetry.Discard(), Rand: rand.Uint64}
	const n = 100
	open := func() (*Store, []*Log) {
		s, err := Open(env, dir, StoreConfig{})
		if err != nil {
			b.Fatal(err)
		}
		logs := make([]*Log, n)
		for i := range logs {
			if logs[i], err = s.OpenLog(TopicPartition{"t", int32(i)}, TopicID{1}, LogConfig{IndexIntervalBytes: 4096}); err != nil {
				b.Fatal(err)
			}
		}
		return s, logs
	}
	s, logs := open()
	batch := benchBatch(11 << 10)
	for i := range mib << 20 / len(batch) {
		if _, err := logs[i%n].Append(AppendRequest{Batches: batch}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		kill(s)
		began := time.Now()
		s, logs = open()
		if _, err := logs[n-1].Append(AppendRequest{Batches: batch}); err != nil {
			b.Fatal(err)
		}
		first := time.Since(began)
		for _, l := range logs {
			_ = l.LogEndOffset()
		}
		b.ReportMetric(first.Seconds()*1000, "ms-first")
		b.ReportMetric(time.Since(began).Seconds()*1000, "ms-all")
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// kill ends a store as the end of its process would, but for its goroutines.
func kill(s *Store) {
	s.mu.Lock()
	s.closed = true
	timers := s.timers
	s.mu.Unlock()
	for _, t := range timers {
		t.Stop()
	}
	s.recovering.stop()
	s.work.Wait()
	_ = s.lock.Close()
	for _, l := range s.Logs() {
		l.abandon(ErrClosed)
	}
}
