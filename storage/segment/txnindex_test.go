package segment

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestTxnIndexBytes fixes the layout; that Kafka reads it is a test of its own tools.
func TestTxnIndexBytes(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 100)
	if _, err := os.Stat(path(dir, 100, TxnIndexSuffix)); !os.IsNotExist(err) {
		t.Fatalf("a segment without aborted transactions has an index of them: %v", err)
	}
	for _, a := range []AbortedTxn{{7, 90, 103, 101}, {7, 90, 103, 101}, {8, 101, 110, 111}} {
		if err := s.AddAborted(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.WriteIndexes(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path(dir, 100, TxnIndexSuffix))
	want := "0000" + "0000000000000007" + "000000000000005a" + "0000000000000067" + "0000000000000065" +
		"0000" + "0000000000000008" + "0000000000000065" + "000000000000006e" + "000000000000006f"
	if err != nil || hex.EncodeToString(b) != want {
		t.Fatalf("%v:\n%x\n%s", err, b, want)
	}
	var out strings.Builder
	if err := DumpTxnIndex(&out, bytes.NewReader(b), int64(len(b))); err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Fatalf("%v: %s", err, &out)
	}
	for _, damage := range [][]byte{b[:40], slices.Concat([]byte{0, 1}, b[2:]), make([]byte, TxnEntrySize-1)} {
		if err := DumpTxnIndex(&out, bytes.NewReader(damage), int64(len(damage))); !errors.Is(err, ErrCorruptIndex) {
			t.Errorf("%x: %v", damage, err)
		}
	}
}

// TestTxnIndexModel holds the index to a list, through writes, cuts and reopenings.
func TestTxnIndexModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		env := newEnv(vfs.NewMem())
		s, err := Create(env, "/", 1000, false)
		if err != nil {
			rt.Fatal(err)
		}
		var want []AbortedTxn
		next := int64(1000)
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				for range rapid.SampledFrom([]int{1, 3, txnTailMax + 5}).Draw(rt, "count") {
					next += 1 + int64(len(want)%3)
					first := next - 1 - int64(len(want)*7%40)
					a := AbortedTxn{ProducerID: int64(len(want) % 5), FirstOffset: first, LastOffset: next, LastStableOffset: next + 1 - int64(len(want)*3%20)}
					must(s.AddAborted(a))
					want = append(want, a)
				}
			},
			"again": func(*rapid.T) {
				if len(want) > 0 {
					must(s.AddAborted(want[len(want)-1]))
				}
			},
			"write": func(*rapid.T) { must(s.WriteAborted()) },
			"cut": func(rt *rapid.T) {
				to := rapid.Int64Range(1000, next+1).Draw(rt, "offset")
				must(s.CutAborted(to))
				want = slices.DeleteFunc(want, func(a AbortedTxn) bool { return a.LastOffset >= to })
			},
			"reopen": func(rt *rapid.T) {
				must(s.WriteAborted())
				s.Close()
				size := int64(-1)
				if info, err := env.FS.Stat(path("/", 1000, TxnIndexSuffix)); err == nil {
					size = info.Size()
				}
				s, err = Open(env, "/", 1000, Sizes{LogBytes: 0, IndexBytes: -1, TimeIndexBytes: -1, TxnIndexBytes: size})
				must(err)
			},
			"": func(rt *rapid.T) {
				from := rapid.Int64Range(990, next+10).Draw(rt, "from")
				upTo := from + rapid.Int64Range(1, 50).Draw(rt, "length")
				got, done, err := s.Aborted(nil, from, upTo)
				must(err)
				var expected []AbortedTxn
				ended := false
				for _, a := range want {
					if a.LastOffset < from {
						continue
					}
					if a.FirstOffset < upTo {
						expected = append(expected, a)
					}
					if ended = a.LastStableOffset >= upTo; ended {
						break
					}
				}
				if !slices.Equal(got, expected) || done != ended || s.HasAborted() != (len(want) > 0) {
					rt.Fatalf("in [%d, %d): %v, done %t; expected %v, %t", from, upTo, got, done, expected, ended)
				}
			},
		})
	})
}

// TestTxnIndexDamage opens files that can't be right.
func TestTxnIndexDamage(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 100)
	for i := range int64(5) {
		if err := s.AddAborted(AbortedTxn{ProducerID: 1, FirstOffset: 100 + i*2, LastOffset: 101 + i*2, LastStableOffset: 102 + i*2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.WriteAborted(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	name := path(dir, 100, TxnIndexSuffix)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	open := func(b []byte) *Segment {
		t.Helper()
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Open(env, dir, 100, Sizes{IndexBytes: -1, TimeIndexBytes: -1, TxnIndexBytes: int64(len(b))})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := open(whole[:100]); !s.AbortedDamaged() {
		t.Error("a length that is no multiple of an entry's was taken")
	}
	broken := slices.Clone(whole)
	broken[2*TxnEntrySize] = 9
	s = open(broken)
	if _, _, err := s.Aborted(nil, 0, 1<<40); !errors.Is(err, ErrCorruptIndex) || !s.AbortedDamaged() {
		t.Errorf("an entry of another version was taken: %v", err)
	}
	// A recovery keeps what is sound before its point.
	if err := s.CutAborted(1 << 40); err != nil || s.AbortedDamaged() {
		t.Fatal(err)
	}
	if got, _, err := s.Aborted(nil, 0, 1<<40); err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	// An entry of a marker that belongs to another segment.
	other := open(EncodeAbortedTxn(nil, AbortedTxn{ProducerID: 1, FirstOffset: 1, LastOffset: 99, LastStableOffset: 100}))
	if _, _, err := other.Aborted(nil, 0, 1<<40); !errors.Is(err, ErrCorruptIndex) {
		t.Errorf("a marker before the segment was taken: %v", err)
	}
}

// TestOffsetBehind compares with the batches themselves.
func TestOffsetBehind(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 100)
	all, next := fill(t, s, 100, 200, 30)
	for range 2 {
		position := int64(0)
		for _, v := range all {
			position += int64(len(v))
			offset, ok, err := s.OffsetBehind(position)
			if err != nil || ok && offset < v.NextOffset() {
				t.Fatalf("behind position %d, the end of offset %d: %d, %t, %v", position, v.LastOffset(), offset, ok, err)
			}
			if !ok && position+interval*3 < s.SizeBytes() || ok && offset >= next {
				t.Fatalf("behind position %d of %d: %d, %t", position, s.SizeBytes(), offset, ok)
			}
			if ok && offset > v.NextOffset()+30 {
				t.Fatalf("behind offset %d only %d is known", v.LastOffset(), offset)
			}
		}
		if err := s.Seal(); err != nil { // and once more from the file
			t.Fatal(err)
		}
		s.Close()
		var err error
		if s, err = Open(env, dir, 100, sizes(t, env, dir, 100)); err != nil {
			t.Fatal(err)
		}
	}
}
