package segment

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// FuzzRecover recovers any bytes as a .log with any bytes as indexes, and holds
// what is left to the rules: whole, checked batches, found by every offset.
func FuzzRecover(f *testing.F) {
	var sound []byte
	for i := range int64(4) {
		sound = append(sound, makeBatch(i*2, 1000+i, 2, 10)...)
	}
	f.Add(sound, []byte{}, []byte{}, int64(0))
	f.Add(sound[:len(sound)-3], make([]byte, 16), make([]byte, 24), int64(3))
	f.Add(sound, []byte{0, 0, 0, 3, 0, 0, 0, 91}, []byte{0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 3}, int64(6))
	f.Fuzz(func(t *testing.T, log, index, times []byte, from int64) {
		fs := vfs.NewMem()
		env := newEnv(fs)
		for suffix, b := range map[string][]byte{LogSuffix: log, IndexSuffix: index, TimeIndexSuffix: times} {
			h, err := fs.OpenFile(path("/", 0, suffix), os.O_RDWR|os.O_CREATE, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(env, "/", 0, Sizes{LogBytes: int64(len(log)), IndexBytes: int64(len(index)), TimeIndexBytes: int64(len(times)), TxnIndexBytes: -1})
		if err != nil && !errors.Is(err, ErrCorruptIndex) {
			t.Fatal(err)
		}
		r, err := s.Recover(RecoverOptions{From: from, IntervalBytes: 100})
		if err != nil {
			return // of an older format, or out of the segment's range
		}
		h, err := s.ref.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		defer s.ref.Release()
		sc := NewScanner(h, "x", 0, s.SizeBytes(), 0, false)
		for sc.Next() {
			want := sc.Header()
			got, err := s.Read(want.LastOffset(), s.SizeBytes(), 1, true)
			if err != nil || got.Data == nil && got.Region == nil {
				t.Fatalf("offset %d is not found: %v", want.LastOffset(), err)
			}
			if got.Region != nil {
				got.Region.Release()
			}
		}
		if from <= 0 && (sc.Err() != nil || sc.NextOffset() != r.NextOffset) {
			t.Fatalf("recovered to %d, a scan ends at %d: %v", r.NextOffset, sc.NextOffset(), sc.Err())
		}
		_, _, _ = s.FindTimestamp(1002, 0) // no panic
	})
}

// FuzzDumpIndex prints any bytes as an index.
func FuzzDumpIndex(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 80, 0, 0, 0, 4, 0, 0, 1, 0})
	f.Add(make([]byte, 48))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := DumpOffsetIndex(io.Discard, bytes.NewReader(b), 0, int64(len(b))); err != nil && !errors.Is(err, ErrCorruptIndex) {
			t.Fatal(err)
		}
		if err := DumpTimeIndex(io.Discard, bytes.NewReader(b), 0, int64(len(b))); err != nil && !errors.Is(err, ErrCorruptIndex) {
			t.Fatal(err)
		}
	})
}
