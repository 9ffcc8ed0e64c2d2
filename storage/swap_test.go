package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// singles are the bytes of a .log with one record at each offset; the value says
// which file it is from.
func singles(from string, offsets ...int64) []byte {
	var out []byte
	for _, offset := range offsets {
		b := batch.NewBuilder(batch.BuilderOptions{BaseOffset: offset})
		b.Add(1000, []byte("k"), []byte(from))
		out = append(out, b.Build()...)
	}
	return out
}

// TestInterruptedSwap starts on folders as Kafka's cleaner leaves them when it is
// stopped between any two of its steps, and as it leaves the splitting of a segment.
func TestInterruptedSwap(t *testing.T) {
	old := map[string][]byte{
		"0.log": singles("old", 0, 1, 2), "3.log": singles("old", 3, 4, 5), "6.log": singles("old", 6, 7), "8.log": singles("active", 8),
	}
	const before, after = "0:old 1:old 2:old 3:old 4:old 5:old 6:old 7:old 8:active", "2:new 5:new 6:old 7:old 8:active"
	merged := singles("new", 2, 5)
	for _, test := range []struct {
		name  string
		files map[string][]byte // added; nil removes
		want  string
	}{
		{"while it is written", map[string][]byte{"0.log.cleaned": merged[:90], "0.index.cleaned": {}}, before},
		{"written", map[string][]byte{"0.log.cleaned": merged, "0.index.cleaned": {}, "0.timeindex.cleaned": {}}, before},
		{"one file has its next name", map[string][]byte{"0.log.swap": merged, "0.index.cleaned": {}, "0.timeindex.cleaned": {}}, before},
		{"one file lacks it", map[string][]byte{"0.log.swap": merged, "0.index.swap": {}, "0.timeindex.cleaned": {}}, before},
		{"to be put in place", map[string][]byte{"0.log.swap": merged, "0.index.swap": {}, "0.timeindex.swap": {}}, after},
		{"the first old one is gone", map[string][]byte{"0.log.swap": merged, "0.log": nil, "0.log.deleted": singles("old", 0, 1, 2)}, after},
		{"both are", map[string][]byte{"0.log.swap": merged, "0.log": nil, "3.log": nil}, after},
		{"only the log is in place", map[string][]byte{"0.log": merged, "0.index.swap": {}, "0.timeindex.swap": {}, "3.log": nil}, after},
		{"a stale index of the old one", map[string][]byte{"0.log.swap": merged, "0.index": make([]byte, 8), "0.txnindex": make([]byte, 34)}, after},
		{"all records went", map[string][]byte{"0.log.swap": {}, "3.log": nil}, "6:old 7:old 8:active"},
		// Its end is not known any more; what it replaced comes back, and goes again
		// with the next cleaning.
		{"all records went, the second old one is left", map[string][]byte{"0.log.swap": {}}, "3:old 4:old 5:old 6:old 7:old 8:active"},
		{"a split that has begun", map[string][]byte{"0.log.cleaned": singles("new", 0), "1.log.swap": singles("new", 1, 2)}, before},
		{"a split that has ended", map[string][]byte{"0.log.swap": singles("new", 0), "1.log.swap": singles("new", 1, 2)},
			"0:new 1:new 2:new 3:old 4:old 5:old 6:old 7:old 8:active"},
		{"a strange name", map[string][]byte{"x.log.swap": {}, "y.cleaned": {}}, before},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.mustOpen()
			w.compactedLog(compactConfig())
			mustDo(t, w.close())
			files := map[string][]byte{}
			for _, m := range []map[string][]byte{old, test.files} {
				for name, b := range m {
					files[name] = b
				}
			}
			dir := "/data/" + testTopic.String() + "/"
			for name, b := range files {
				if base, rest, _ := strings.Cut(name, "."); base != "x" && base != "y" {
					name = strings.Repeat("0", 20-len(base)) + base + "." + rest
				}
				if b != nil {
					mustDo(t, writeFile(w.fs, dir+name, b))
				}
			}
			// As after a clean stop that had this log's end as its recovery point.
			c := OffsetCheckpoint{testTopic: 9}
			mustDo(t, writeFile(w.fs, "/data/recovery-point-offset-checkpoint", c.Encode()))
			mustDo(t, w.fs.Remove("/data/.kafka_cleanshutdown"))
			for start := range 2 {
				w.mustOpen()
				l := w.compactedLog(compactConfig())
				w.settle()
				if got := valuesOf(t, l); got != test.want || l.LogEndOffset() != 9 || l.Err() != nil {
					t.Fatalf("start %d: %s\nwant     %s\nthe log ends at %d, %v", start+1, got, test.want, l.LogEndOffset(), l.Err())
				}
				if left := slices.Concat(w.names(".swap"), w.names(".cleaned"), w.names(".deleted")); len(left) > 0 {
					t.Fatalf("left %v", left)
				}
				mustDo(t, w.close())
			}
		})
	}
}

func valuesOf(t *testing.T, l *Log) string {
	t.Helper()
	var out []string
	for _, v := range contents(t, l) {
		mustDo(t, batch.Records(v, 0, func(r batch.Record) error {
			out = append(out, fmt.Sprintf("%d:%s", r.Offset, r.Value))
			return nil
		}))
	}
	return strings.Join(out, " ")
}

func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := &throttle{clock: clock.Real()}
		th.setRate(1000)
		began := time.Now()
		never := make(chan struct{})
		checks := 0
		for range 100 {
			mustDo(t, th.wait(th.take(100), never, func() error { checks++; return nil }))
		}
		// Ten thousand bytes at a thousand a second.
		if took := time.Since(began); took < 9900*time.Millisecond || took > 10100*time.Millisecond || checks < 50 {
			t.Fatalf("it took %v, with %d checks", took, checks)
		}
		// What was not used is not saved up.
		time.Sleep(time.Hour)
		if wait := th.take(1000); wait != time.Second {
			t.Fatalf("a wait of %v", wait)
		}
		// A long wait ends when the work does.
		stop := errors.New("stop")
		began = time.Now()
		if err := th.wait(time.Hour, never, func() error {
			if time.Since(began) > 5*time.Second {
				return stop
			}
			return nil
		}); !errors.Is(err, stop) || time.Since(began) > 6*time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		closed := make(chan struct{})
		close(closed)
		began = time.Now()
		if err := th.wait(time.Hour, closed, func() error { return stop }); !errors.Is(err, stop) || time.Since(began) > 0 {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		for _, none := range []float64{0, -1, 1e308} {
			th.setRate(none)
			if wait := th.take(1 << 40); wait != 0 {
				t.Fatalf("at %v bytes a second: a wait of %v", none, wait)
			}
		}
	})
}
