package storage

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// TestReadersWhileCleaning has readers go through a log again and again while a
// writer appends and cleaners replace its segments. Each of them sees rising
// offsets and, at the end of its way, for each key the last value that was written
// below that end.
func TestReadersWhileCleaning(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open(Env{FS: fs, Clock: clock.Real(), Logger: telemetry.Discard(), Rand: rand.New(rand.NewPCG(1, 1)).Uint64}, "/data",
		StoreConfig{ReserveBytes: -1, OpenFiles: 3, Cleaner: CleanerConfig{Threads: 2, Backoff: time.Millisecond, DedupeBufferBytes: 2 << 20, IOBufferBytes: 16 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := compactConfig()
	cfg.SegmentBytes, cfg.MinCleanableRatio, cfg.FileDeleteDelayMs = 4000, 0.1, 0
	l, err := s.OpenLog(testTopic, testID, cfg)
	if err != nil {
		t.Fatal(err)
	}
	const writes, keys = 3000, 20
	w := &lastValues{}
	var readers sync.WaitGroup
	for i := range 3 {
		readers.Go(func() {
			for !w.done.Load() {
				if err := w.readThrough(l, int64(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := 0; i < writes || l.cleanedTo.Load() < writes/2; i++ {
		if err := w.write(l, fmt.Sprint("key", i%keys)); err != nil {
			t.Error(err)
			break
		}
	}
	w.done.Store(true)
	readers.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// lastValues knows what was written. The value of a record is its offset.
type lastValues struct {
	done atomic.Bool

	mu   sync.Mutex
	keys []string // by offset
}

func (w *lastValues) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.keys)
}

func (w *lastValues) write(l *Log, key string) error {
	b := batch.NewBuilder(batch.BuilderOptions{})
	w.mu.Lock()
	n := len(w.keys)
	w.mu.Unlock()
	b.Add(int64(n), []byte(key), fmt.Append(nil, n))
	res, err := l.Append(AppendRequest{Batches: b.Build()})
	if err != nil || res.FirstOffset != int64(n) {
		return fmt.Errorf("appended at %d, not %d: %w", res.FirstOffset, n, err)
	}
	w.mu.Lock()
	w.keys = append(w.keys, key)
	w.mu.Unlock()
	l.SetHighWatermark(res.LastOffset + 1)
	return nil
}

// readThrough reads from an offset to the end as it is now.
func (w *lastValues) readThrough(l *Log, from int64) error {
	end := int64(w.count())
	seen := map[string]int64{}
	for offset := from; offset < end; {
		r, err := l.Read(ReadRequest{Offset: offset, Limit: end, MaxBytes: 1000, AtLeastOne: true})
		if err != nil {
			return fmt.Errorf("read at %d: %w", offset, err)
		}
		if len(r.Data) == 0 {
			break // all that was left below end was replaced meanwhile
		}
		for rest := r.Data; len(rest) > 0; {
			v, after, err := batch.Next(rest)
			if err != nil {
				return err
			}
			if v.LastOffset() < offset || v.CRC() != v.ComputeCRC() {
				return fmt.Errorf("a read at %d finds a batch at %d", offset, v.BaseOffset())
			}
			err = batch.Records(v, 0, func(r batch.Record) error {
				if string(r.Value) != fmt.Sprint(r.Offset) {
					return fmt.Errorf("offset %d has value %s", r.Offset, r.Value)
				}
				if newest, ok := seen[string(r.Key)]; ok && newest >= r.Offset {
					return fmt.Errorf("offset %d follows %d", r.Offset, newest)
				}
				seen[string(r.Key)] = r.Offset
				return nil
			})
			if err != nil {
				return err
			}
			offset, rest = v.NextOffset(), after
		}
	}
	// What was written later may have taken the last record below end away, so a
	// key may be missing; one that is older than what the reader passed may not.
	w.mu.Lock()
	defer w.mu.Unlock()
	last := map[string]int64{}
	for offset, key := range w.keys {
		last[key] = int64(offset)
	}
	for key, offset := range last {
		if offset >= from && offset < end && seen[key] < offset {
			return fmt.Errorf("key %s was last seen at %d, it is at %d", key, seen[key], offset)
		}
	}
	return nil
}
