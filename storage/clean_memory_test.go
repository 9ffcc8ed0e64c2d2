package storage

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// cleanKeys is the number of distinct keys of TestCleanerMemory; `make compaction`
// takes ten million.
var cleanKeys = flag.Int("clean-keys", 300_000, "distinct keys that TestCleanerMemory cleans")

// TestCleanerMemory cleans more keys than the cleaner's memory has room for, and
// measures what it takes of the heap. The figure must not grow with the keys.
func TestCleanerMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes tens of megabytes")
	}
	keys := *cleanKeys
	// At ten million keys: 22 MiB for keys and 2 MiB for buffers; the rest is for
	// what the garbage collector has not seen yet. That depends on all of the process,
	// which is larger in a broker, and may be a fifth here: a whole cleaning makes no
	// more than 12 MiB of garbage.
	dedupe, limit := int64(22<<20), int64(32<<20)
	if keys < 10_000_000 {
		dedupe, limit = 2<<20, 6<<20
	}
	s, err := Open(Env{FS: vfs.OS(), Clock: clock.Real(), Logger: telemetry.Discard(), Rand: rand.New(rand.NewPCG(1, 1)).Uint64}, t.TempDir(),
		StoreConfig{ReserveBytes: -1, Cleaner: CleanerConfig{DedupeBufferBytes: dedupe, IOBufferBytes: 2 << 20, LoadFactor: 0.9}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg := compactConfig()
	cfg.SegmentBytes, cfg.IndexIntervalBytes, cfg.MinCleanableRatio = int64(max(keys, 1<<20)*10), 4096, 0
	cfg.DeleteRetentionMs = 1 << 40
	l, err := s.OpenLog(testTopic, testID, cfg)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	writeKeys(t, l, keys)
	written := time.Since(began)
	size := must(l.SizeBytes())

	var base, now runtime.MemStats
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	runtime.ReadMemStats(&base)
	peak, pieces := uint64(0), 0
	w := s.cleaner.newWorker()
	w.onPace = func() {
		if pieces++; pieces%16 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
		}
	}
	began = time.Now()
	rounds := 0
	for {
		p := must(l.compactionPlan())
		if !p.Due(0) {
			break
		}
		rounds++
		end, err := l.clean(w, p)
		if err != nil || end <= p.FirstDirty {
			t.Fatalf("round %d: cleaned to %d: %v", rounds, end, err)
		}
	}
	took := time.Since(began)
	used := int64(peak) - int64(base.HeapInuse)
	t.Logf("%d keys, %d MiB written in %v; %d rounds in %v with at most %.1f MiB of heap; %d MiB are left",
		keys, size>>20, written.Round(time.Millisecond), rounds, took.Round(time.Millisecond), float64(used)/(1<<20), must(l.SizeBytes())>>20)
	if used > limit {
		t.Errorf("cleaning took %d bytes of heap, more than %d", used, limit)
	}
	checkKeys(t, l, keys)
}

// writeKeys writes each key, then every third one again, then deletes every tenth,
// and at last a record that rolls the segment.
func writeKeys(t *testing.T, l *Log, keys int) {
	t.Helper()
	const perBatch = 400
	var b *batch.Builder
	flush := func() {
		if b == nil {
			return
		}
		res, err := l.Append(AppendRequest{Batches: b.Build()})
		if err != nil {
			t.Fatal(err)
		}
		l.SetHighWatermark(res.LastOffset + 1)
		b = nil
	}
	put := func(key int, value []byte) {
		if b == nil {
			b = batch.NewBuilder(batch.BuilderOptions{})
		}
		b.Add(1000, binary.BigEndian.AppendUint64(nil, uint64(key)), value)
		if b.Len() == perBatch {
			flush()
		}
	}
	for k := range keys {
		put(k, []byte("first"))
	}
	for k := 0; k < keys; k += 3 {
		put(k, []byte("second"))
	}
	for k := 0; k < keys; k += 10 {
		put(k, nil)
	}
	flush()
	l.mu.Lock()
	err := l.rollLocked(l.logEnd.Load())
	l.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
}

// checkKeys wants each key once, with its last value.
func checkKeys(t *testing.T, l *Log, keys int) {
	t.Helper()
	seen := make([]uint64, keys/64+1)
	n, end := 0, l.LogEndOffset()
	for offset := int64(0); offset < end; {
		r, err := l.Read(ReadRequest{Offset: offset, Limit: end, MaxBytes: 200 << 10, AtLeastOne: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Data) == 0 {
			break // the rest was a record that another replaced
		}
		for rest := r.Data; len(rest) > 0; {
			v, after, err := batch.Next(rest)
			if err != nil {
				t.Fatal(err)
			}
			err = batch.Records(v, 0, func(r batch.Record) error {
				k := int(binary.BigEndian.Uint64(r.Key))
				want := "first"
				switch {
				case k%10 == 0:
					want = ""
				case k%3 == 0:
					want = "second"
				}
				if string(r.Value) != want || seen[k/64]&(1<<(k%64)) != 0 {
					t.Fatalf("key %d at offset %d has %q, or is there twice", k, r.Offset, r.Value)
				}
				seen[k/64] |= 1 << (k % 64)
				n++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			offset, rest = v.NextOffset(), after
		}
	}
	if n != keys {
		t.Fatalf("%d keys are left of %d", n, keys)
	}
}
