package storage

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// TestUncleanable has a log with damage in it; others are cleaned all the same.
func TestUncleanable(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	other, err := w.store.OpenLog(TopicPartition{"other", 0}, TopicID{9}, compactConfig())
	if err != nil {
		t.Fatal(err)
	}
	w.fill(l, 30)
	w.fill(other, 30)
	w.damage("/data/orders-0/"+segment.FileName(0, segment.LogSuffix), 100)
	w.tick()
	state, ok := l.Compaction()
	if !ok || state.Err == nil || !strings.Contains(state.Err.Error(), "damaged at byte 0") {
		t.Fatalf("%+v, %v", state, ok)
	}
	if l.cleanedTo.Load() >= 0 || other.cleanedTo.Load() < 0 || l.Err() != nil {
		t.Fatalf("cleaned to %d and %d", l.cleanedTo.Load(), other.cleanedTo.Load())
	}
	if n := w.store.cleaner.uncleanableBytes(); n < 1000 || len(w.store.cleaner.uncleanable()) != 1 {
		t.Fatalf("%v bytes are uncleanable", n)
	}
	// It is forgotten with the log.
	if err := w.store.Delete(testTopic); err != nil {
		t.Fatal(err)
	}
	w.tick()
	if len(w.store.cleaner.uncleanable()) != 0 {
		t.Fatal("a deleted log is still uncleanable")
	}
	w.close()
}

// damage flips a bit of a file.
func (w *world) damage(name string, at int64) {
	w.t.Helper()
	f, err := w.fs.OpenFile(name, 2, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		w.t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil {
		w.t.Fatal(err)
	}
}

// TestCleaningWithoutRoom leaves a part of the reserve free, and no files. A disk
// that is too full for appends is cleaned.
func TestCleaningWithoutRoom(t *testing.T) {
	const reserve = 40_000
	w := newCleaningWorld(t)
	w.cfg.ReserveBytes = reserve
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	w.fill(l, 50)
	used := w.used()
	w.fs.SetCapacity(used + reserve/growFrom + 500)
	w.tick()
	if l.cleanedTo.Load() >= 0 || len(w.names(segment.CleanedSuffix)) > 0 || l.Err() != nil {
		t.Fatalf("cleaned to %d, files %v", l.cleanedTo.Load(), w.names(segment.CleanedSuffix))
	}
	w.fs.SetCapacity(used + reserve)
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); !errors.Is(err, ErrOffline) {
		t.Fatalf("append to a full disk: %v", err)
	}
	w.tick()
	if l.cleanedTo.Load() < 0 {
		t.Fatal("not cleaned once there was room")
	}
	w.close()
}

// used is what the files take of the disk.
func (w *world) used() uint64 {
	w.t.Helper()
	w.fs.SetCapacity(1 << 40)
	free, total, err := w.fs.Usage("/data")
	if err != nil {
		w.t.Fatal(err)
	}
	return total - free
}

// TestCleaningFails has every operation of a cleaning fail once. The log stays, or
// comes back, with the same records, and is cleaned in the end.
func TestCleaningFails(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := int64(1); ; n++ {
			w := newCleaningWorld(t)
			w.mustOpen()
			l := w.compactedLog(compactConfig())
			w.fill(l, 40)
			want := newest(w.records(l))
			w.fs.FailAt(n, cause)
			w.tick()
			done := l.cleanedTo.Load() >= 0 && l.Err() == nil
			w.fs.SetFault(nil)
			w.clock.Advance(5 * time.Second)
			w.settle()
			w.clock.Advance(5 * time.Second)
			if err := l.Err(); err != nil {
				t.Fatalf("operation %d, %v: the log stays offline: %v", n, cause, err)
			}
			if got := newest(w.records(l)); got != want {
				t.Fatalf("operation %d, %v: the newest records are %s, not %s", n, cause, got, want)
			}
			if names := w.names(segment.SwapSuffix); len(names) > 0 {
				t.Fatalf("operation %d, %v: left %v", n, cause, names)
			}
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			if done && n > 30 {
				break
			}
			if n > 500 {
				t.Fatal("the cleaning never ends")
			}
		}
	}
}

// newest are the newest records of all keys.
func newest(records string) string {
	m := map[string]string{}
	for _, r := range strings.Fields(records) {
		offset, rest, _ := strings.Cut(r, ":")
		key, _, _ := strings.Cut(rest, "=")
		m[key] = offset + ":" + rest
	}
	return fmt.Sprint(m)
}

// TestCleaningIsAbandoned has the log cut, deleted or reconfigured while it is
// cleaned.
func TestCleaningIsAbandoned(t *testing.T) {
	for name, disturb := range map[string]func(*world, *Log){
		"truncated":    func(w *world, l *Log) { must(0, l.TruncateTo(5)) },
		"restarted":    func(w *world, l *Log) { must(0, l.TruncateFullyAndStartAt(100)) },
		"reconfigured": func(w *world, l *Log) { l.Reconfigure(testLogConfig()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newCleaningWorld(t)
			w.mustOpen()
			l := w.compactedLog(compactConfig())
			w.fill(l, 50)
			p := must(l.compactionPlan())
			worker := w.store.cleaner.newWorker()
			done := false
			worker.onPace = func() {
				if !done {
					done = true
					disturb(w, l)
				}
			}
			if _, err := l.clean(worker, p); !errors.Is(err, errAbandoned) || !done {
				t.Fatalf("cleaned: %v", err)
			}
			if l.cleanedTo.Load() >= 0 || len(w.names(segment.CleanedSuffix)) > 0 || l.Err() != nil {
				t.Fatalf("cleaned to %d, files %v, %v", l.cleanedTo.Load(), w.names(segment.CleanedSuffix), l.Err())
			}
			contents(t, l)
			w.close()
		})
	}
}

// TestTruncationForgetsCleaning: offsets that are used again are dirty.
func TestTruncationForgetsCleaning(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	w.fill(l, 50)
	w.tick()
	if err := l.TruncateTo(20); err != nil {
		t.Fatal(err)
	}
	if l.cleanedTo.Load() > 20 {
		t.Fatalf("clean up to %d", l.cleanedTo.Load())
	}
	w.settle()
	if got := w.read("cleaner-offset-checkpoint"); got != "0\n1\norders 0 20\n" {
		t.Fatalf("the checkpoint is %q", got)
	}
	w.close()
}
