package storage

import (
	"strings"
	"testing"
)

// timesOf is a log with a record each 10 ms from 1000 on, up to before endMs.
type timesOf struct {
	*Log
	endMs int64
}

func (l *timesOf) more(t *testing.T) {
	t.Helper()
	mustAppend(t, l.Log, makeBatch(l.endMs, "old", 1, nil))
	l.endMs += 10
}

// check looks for each record by its time.
func (l *timesOf) check(t *testing.T, found *Log) {
	t.Helper()
	for at := int64(1000); at < l.endMs; at += 10 {
		f, ok, err := found.OffsetForTimestamp(at)
		if want := (at - 1000) / 10; err != nil || !ok || f.Offset != want {
			t.Fatalf("the record of %d ms is at offset %d and not at %d (found %v, %v)", at, want, f.Offset, ok, err)
		}
	}
}

// A sealed segment's largest timestamp is what its time index ends with, so that entry
// is as durable as the records: without it the newest ones would not be found by time,
// and go too early.
func TestSealedSegmentKeepsItsTimes(t *testing.T) {
	for name, seal := range map[string]func(*testing.T, *world, *timesOf){
		"roll": func(t *testing.T, w *world, l *timesOf) {
			for l.Segments() == 1 {
				mustDo(t, l.Flush()) // before the roll nothing was left to flush
				l.more(t)
			}
			w.settle()
			mustDo(t, l.Flush())
			mustDo(t, w.store.writeCheckpoints())
			w.abandon()
		},
		"stop": func(t *testing.T, w *world, l *timesOf) {
			mustDo(t, l.Flush())
			mustDo(t, w.close())
		},
		"stop after an index was lost": func(t *testing.T, w *world, l *timesOf) {
			for l.Segments() == 1 {
				l.more(t)
			}
			mustDo(t, w.close())
			removeTimeIndex(t, w)
			w.mustOpen()
			l.check(t, w.log())
			mustDo(t, w.close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(16) {
				w := newWorld(t, 1)
				w.cfg.FlushBehindBytes = -1
				w.mustOpen()
				l := &timesOf{w.log(), 1000}
				for range 12 {
					l.more(t)
				}
				seal(t, w, l)
				w.fs.Crash(seed)
				w.mustOpen()
				l.check(t, w.log())
			}
		})
	}
}

// removeTimeIndex removes the time index of the first segment.
func removeTimeIndex(t *testing.T, w *world) {
	t.Helper()
	entries, err := w.fs.ReadDir("/data/orders-0")
	mustDo(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".timeindex") {
			mustDo(t, w.fs.Remove("/data/orders-0/"+e.Name()))
			return
		}
	}
	t.Fatal("no time index")
}
