package compact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

func hashed(h *hasher, s string) key {
	h.Reset()
	io.WriteString(h, s)
	return h.key()
}

func TestOffsetMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(2, 200).Draw(t, "slots")
		factor := rapid.Float64Range(0.01, 1).Draw(t, "load factor")
		m, model, h := NewOffsetMap(slots, factor), map[string]int64{}, newHasher()
		for offset := range rapid.Int64Range(0, 400).Draw(t, "records") {
			k := fmt.Sprint("key ", rapid.IntRange(0, 300).Draw(t, "key"))
			_, known := model[k]
			room := known || len(model) < max(1, min(int(float64(slots)*factor), slots-1))
			if put := m.put(hashed(h, k), offset); put != room {
				t.Fatalf("put %s into a map of %d with %d keys: %v", k, slots, len(model), put)
			}
			if room {
				model[k] = offset
				if m.Latest() != offset {
					t.Fatalf("latest %d, not %d", m.Latest(), offset)
				}
			}
		}
		for k := range 300 {
			k := fmt.Sprint("key ", k)
			want, ok := model[k]
			if !ok {
				want = -1
			}
			if got := m.get(hashed(h, k)); got != want {
				t.Fatalf("%s is at %d, not %d", k, got, want)
			}
		}
		if m.Len() != len(model) {
			t.Fatalf("%d keys, not %d", m.Len(), len(model))
		}
	})
}

// TestOffsetMapNearlyFull looks up keys in a map that is as full as it may get,
// where a poor order of probing would go on for ever or miss.
func TestOffsetMapNearlyFull(t *testing.T) {
	for _, slots := range []int{2, 16, 64, 1 << 16} {
		m, h := NewOffsetMap(slots, 1), newHasher()
		n := int64(0)
		for ; m.put(hashed(h, fmt.Sprint(n)), n); n++ {
		}
		if n != int64(slots-1) {
			t.Fatalf("%d of %d slots hold a key", n, slots)
		}
		for i := range n {
			if got := m.get(hashed(h, fmt.Sprint(i))); got != i {
				t.Fatalf("%d slots: key %d is at %d", slots, i, got)
			}
		}
		if got := m.get(hashed(h, "none")); got != -1 {
			t.Fatalf("a key that is not there is at %d", got)
		}
	}
}

func TestSlots(t *testing.T) {
	for _, test := range []struct {
		keys, size int64
		factor     float64
		want       int
	}{
		{900, 1 << 30, 0.9, 1002}, {math.MaxInt64, 24 << 20, 0.9, 1 << 20}, {0, 1 << 20, 0.9, 2}, {10, 0, 0.9, 2}, {10, 5 * EntryBytes, 1, 5},
	} {
		if got := Slots(test.keys, test.size, test.factor); got != test.want {
			t.Errorf("%d keys in %d bytes at %v: %d slots, not %d", test.keys, test.size, test.factor, got, test.want)
		}
	}
}

// plain is a log of segments with one batch each.
func plain(sizes ...int) *memLog {
	l := newMemLog()
	for i, n := range sizes {
		l.roll()
		b := batch.NewBuilder(batch.BuilderOptions{BaseOffset: l.next})
		b.Add(int64(i), []byte("key"), bytes.Repeat([]byte{byte(i)}, n))
		b.Add(int64(i), fmt.Append(nil, i), bytes.Repeat([]byte{byte(i)}, n))
		l.add(b.Build())
	}
	return l
}

// TestLargeBatches has batches beyond the buffers, in the middle of small ones.
func TestLargeBatches(t *testing.T) {
	l := plain(10, 100_000, 10, 1_000_000, 10, 10)
	if _, st, err := l.clean(cleanOptions{end: l.next, keys: 100, segmentBytes: 1 << 30}); err != nil || st.RecordsWritten != 7 {
		t.Fatalf("%+v, %v", st, err)
	}
	if got := l.print(t); strings.Count(got, "key=") != 1 || len(l.segments) != 1 {
		t.Fatalf("%d segments", len(l.segments))
	}
}

func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(*memSegment){
		"a flipped bit":    func(s *memSegment) { s.data[len(s.data)-1] ^= 1 },
		"a cut batch":      func(s *memSegment) { s.data = s.data[:len(s.data)-5] },
		"a cut header":     func(s *memSegment) { s.data = append(s.data, make([]byte, 20)...) },
		"zeros":            func(s *memSegment) { s.data = append(s.data, make([]byte, 200)...) },
		"an old message":   func(s *memSegment) { s.data[16] = 1 },
		"a senseless size": func(s *memSegment) { s.data[8] = 0x7f },
	} {
		t.Run(name, func(t *testing.T) {
			l := plain(10, 10, 10)
			damage(l.segments[1])
			var bad *CorruptError
			if _, _, err := l.clean(cleanOptions{end: l.next, keys: 100, segmentBytes: 1 << 30}); !errors.As(err, &bad) || bad.Name != "2.log" {
				t.Fatalf("cleaned: %v", err)
			}
		})
	}
}

// TestPaceEndsTheRound has every piece of work refused once.
func TestPaceEndsTheRound(t *testing.T) {
	stop := errors.New("stop")
	for n := 0; ; n++ {
		left := n
		c := NewCleaner(0, func(int) error {
			if left--; left < 0 {
				return stop
			}
			return nil
		})
		l := plain(10, 10_000, 10)
		r := &Round{End: l.next, Aborted: l.Aborted, LastRecord: func(int64) (LastRecord, bool) { return LastRecord{}, false }}
		m := NewOffsetMap(100, 0.9)
		err := c.Map(r, asSources(l.segments), 0, m)
		if err == nil {
			err = c.CleanGroup(r, asSources(l.segments), l.next, m, NewTransactions(), &memSegment{})
		}
		if err == nil {
			if n < 10 {
				t.Fatalf("the work was paced %d times only", n)
			}
			return
		}
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
}

// TestNewPlan is about what may be cleaned, and when.
func TestNewPlan(t *testing.T) {
	base := func() Log {
		return Log{
			Segments:  []Segment{{BaseOffset: 0, SizeBytes: 100}, {BaseOffset: 10, SizeBytes: 200}, {BaseOffset: 20, SizeBytes: 400}, {BaseOffset: 30, SizeBytes: 800}},
			EndOffset: 40, LastStableOffset: 40, CleanedTo: -1,
			NewestMs: func(i int) (int64, error) { return int64(i+1) * 1000, nil },
			OldestMs: func(i int) (int64, error) { return int64(i)*1000 + 1, nil },
		}
	}
	for _, test := range []struct {
		name  string
		set   func(*Log)
		nowMs int64
		want  Plan
		ratio float64
		due   bool // at a ratio of 0.5
	}{
		{"never cleaned", func(*Log) {}, 9000, Plan{FirstDirty: 0, End: 30, DirtyBytes: 700}, 1, true},
		{"all clean", func(l *Log) { l.CleanedTo = 30 }, 9000, Plan{FirstDirty: 30, End: 30, CleanBytes: 700}, 0, false},
		{"mostly clean", func(l *Log) { l.Segments[2].SizeBytes, l.CleanedTo = 200, 20 }, 9000, Plan{FirstDirty: 20, End: 30, CleanBytes: 300, DirtyBytes: 200}, 0.4, false},
		{"at the ratio", func(l *Log) { l.Segments[2].SizeBytes, l.CleanedTo = 300, 20 }, 9000, Plan{FirstDirty: 20, End: 30, CleanBytes: 300, DirtyBytes: 300}, 0.5, false},
		// Partly cleaned, a segment counts twice, as in Kafka.
		{"inside a segment", func(l *Log) { l.CleanedTo = 15 }, 9000, Plan{FirstDirty: 15, End: 30, CleanBytes: 300, DirtyBytes: 600}, 600.0 / 900, true},
		{"an open transaction", func(l *Log) { l.LastStableOffset = 25 }, 9000, Plan{FirstDirty: 0, End: 20, DirtyBytes: 300}, 1, true},
		{"one from a segment's start", func(l *Log) { l.LastStableOffset = 20 }, 9000, Plan{FirstDirty: 0, End: 20, DirtyBytes: 300}, 1, true},
		{"one from the start", func(l *Log) { l.LastStableOffset = 0 }, 9000, Plan{FirstDirty: 0, End: 0}, 0, false},
		{"one in the clean part", func(l *Log) { l.LastStableOffset, l.CleanedTo = 5, 20 }, 9000, Plan{FirstDirty: 20, End: 20, CleanBytes: 300}, 0, false},
		{"too young", func(l *Log) { l.MinLagMs = 500 }, 2400, Plan{FirstDirty: 0, End: 10, DirtyBytes: 100}, 1, true},
		{"just old enough", func(l *Log) { l.MinLagMs = 500 }, 2500, Plan{FirstDirty: 0, End: 20, DirtyBytes: 300}, 1, true},
		{"all too young", func(l *Log) { l.MinLagMs = 500 }, 100, Plan{FirstDirty: 0, End: 0}, 0, false},
		{"overdue", func(l *Log) { l.Segments[2].SizeBytes, l.CleanedTo, l.MaxLagMs = 100, 20, 1000 }, 3500,
			Plan{FirstDirty: 20, End: 30, CleanBytes: 300, DirtyBytes: 100, OverdueMs: 499}, 0.25, true},
		{"not yet overdue", func(l *Log) { l.Segments[2].SizeBytes, l.CleanedTo, l.MaxLagMs = 100, 20, 1000 }, 3001,
			Plan{FirstDirty: 20, End: 30, CleanBytes: 300, DirtyBytes: 100}, 0.25, false},
		{"overdue but unstable", func(l *Log) { l.LastStableOffset, l.MaxLagMs = 0, 1000 }, 9000, Plan{OverdueMs: 7999}, 0, false},
		{"below the start", func(l *Log) { l.StartOffset, l.CleanedTo = 12, 5 }, 9000, Plan{FirstDirty: 12, End: 30, Reset: true, CleanBytes: 300, DirtyBytes: 600}, 600.0 / 900, true},
		{"behind the end", func(l *Log) { l.CleanedTo = 41 }, 9000, Plan{FirstDirty: 0, End: 30, Reset: true, DirtyBytes: 700}, 1, true},
		{"only the active segment", func(l *Log) { l.Segments = l.Segments[:1] }, 9000, Plan{}, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := base()
			test.set(&l)
			got, err := NewPlan(l, test.nowMs)
			if err != nil || got != test.want || math.Abs(got.Ratio()-test.ratio) > 1e-9 || got.Due(0.5) != test.due {
				t.Fatalf("%+v, ratio %v, due %v, %v\nwant %+v", got, got.Ratio(), got.Due(0.5), err, test.want)
			}
		})
	}
}

func TestPlanOrder(t *testing.T) {
	dirty, dirtier := Plan{CleanBytes: 50, DirtyBytes: 50}, Plan{DirtyBytes: 1}
	late, later := Plan{CleanBytes: 99, DirtyBytes: 1, OverdueMs: 1}, Plan{CleanBytes: 99, DirtyBytes: 1, OverdueMs: 5}
	for _, pair := range [][2]Plan{{dirtier, dirty}, {late, dirtier}, {later, late}} {
		if !pair[0].Before(pair[1]) || pair[1].Before(pair[0]) {
			t.Errorf("%+v does not come before %+v", pair[0], pair[1])
		}
	}
}

func TestGroup(t *testing.T) {
	sized := func(sizes ...int64) (list []Segment) {
		for i, n := range sizes {
			list = append(list, Segment{BaseOffset: int64(i) * 10, SizeBytes: n, IndexBytes: 8, TimeIndexBytes: 12})
		}
		return list
	}
	limits := Limits{SizeBytes: 100, IndexBytes: 1000}
	for _, test := range []struct {
		name     string
		segments []Segment
		limits   Limits
		want     string
	}{
		{"none", nil, limits, "[]"},
		{"all fit", sized(30, 30, 40), limits, "[3]"},
		{"size", sized(60, 60, 40, 1), limits, "[1 2 1]"},
		{"larger than a segment", sized(500, 10, 500), limits, "[1 1 1]"},
		{"offset index", sized(1, 1, 1), Limits{SizeBytes: 100, IndexBytes: 23}, "[1 1 1]"},
		{"time index", sized(1, 1, 1), Limits{SizeBytes: 100, IndexBytes: 24}, "[2 1]"},
		{"offsets", []Segment{{BaseOffset: 0, SizeBytes: 1}, {BaseOffset: 5, SizeBytes: 1}, {BaseOffset: math.MaxInt32, SizeBytes: 1}, {BaseOffset: math.MaxInt32 + 1, SizeBytes: 1}}, limits, "[3 1]"},
		{"one offset too many", []Segment{{BaseOffset: 0, SizeBytes: 1}, {BaseOffset: 100, SizeBytes: 1}, {BaseOffset: math.MaxInt32 + 2, SizeBytes: 1}}, limits, "[1 2]"},
		{"empty ones take no offsets", []Segment{{BaseOffset: 0, SizeBytes: 1}, {BaseOffset: math.MaxInt32 + 2}, {BaseOffset: 3 * math.MaxInt32}}, limits, "[3]"},
	} {
		end := int64(0)
		if n := len(test.segments); n > 0 {
			end = test.segments[n-1].BaseOffset + 10
		}
		if got := fmt.Sprint(Group(test.segments, end, test.limits)); got != test.want {
			t.Errorf("%s: %s, not %s", test.name, got, test.want)
		}
	}
}
