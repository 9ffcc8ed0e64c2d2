package storage

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

var newTestID = TopicID{9, 9}

// trimmed is a store with a log that begins at offset 50, which the checkpoints say.
func trimmed(t *testing.T) *world {
	w := newWorld(t, 1)
	w.cfg.FlushBehindBytes = -1 // it writes the checkpoints as well
	w.mustOpen()
	l := w.log()
	for i := range 20 {
		mustAppend(t, l, makeBatch(int64(i), "old", 5, nil))
	}
	l.SetHighWatermark(100)
	if _, err := l.DeleteRecordsTo(50); err != nil {
		t.Fatal(err)
	}
	return w
}

func mustAppend(t *testing.T, l *Log, b []byte) {
	t.Helper()
	if _, err := l.Append(AppendRequest{Batches: b}); err != nil {
		t.Fatal(err)
	}
}

// crashed is another process after a power failure, or after a kill when everything
// that was written survives.
func (w *world) crashed(power bool) {
	w.t.Helper()
	w.abandon()
	if w.fs.Kill(); power {
		w.fs.Crash(7)
	}
	w.mustOpen()
}

func (w *world) recreated() *Log {
	w.t.Helper()
	l, err := w.store.OpenLog(testTopic, newTestID, testLogConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// What the checkpoint files say of a deleted topic must not be said of one that is
// made with its name: a crash would lose all that is below the old log's start.
func TestRecreatedTopicInheritsNoCheckpoint(t *testing.T) {
	for name, remove := range map[string]func(*world) error{
		"deleted": func(w *world) error { return w.store.Delete(testTopic) },
		"deleted before a restart": func(w *world) error {
			err := w.store.Delete(testTopic)
			w.crashed(false)
			return err
		},
		"discarded": func(w *world) error {
			w.crashed(false)
			return w.store.Delete(testTopic)
		},
		"set aside": func(w *world) error {
			w.crashed(false)
			return nil
		},
	} {
		for _, power := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s power=%v", name, power), func(t *testing.T) {
				w := trimmed(t)
				if err := remove(w); err != nil {
					t.Fatal(err)
				}
				l := w.recreated()
				mustAppend(t, l, makeBatch(1, "new", 3, nil))
				if err := l.syncData(); err != nil {
					t.Fatal(err)
				}
				w.crashed(power)
				l = w.recreated()
				w.settle()
				if start, end := l.LogStartOffset(), l.LogEndOffset(); start != 0 || end != 3 {
					t.Fatalf("the new topic's log is [%d, %d), not [0, 3)", start, end)
				}
			})
		}
	}
}

func TestAdoptedFolderInheritsNoCheckpoint(t *testing.T) {
	w := trimmed(t)
	if err := w.store.Delete(testTopic); err != nil {
		t.Fatal(err)
	}
	if err := w.fs.MkdirAll("/data/import.partial/orders-0", 0o755); err != nil {
		t.Fatal(err)
	}
	w.fs.CrashAt(3) // behind the rename, if nothing was written before it
	_ = w.store.Adopt([]Adoption{{TopicPartition: testTopic, Path: "/data/import.partial/orders-0"}})
	w.crashed(false)
	if l := w.recreated(); l.LogStartOffset() != 0 {
		t.Fatalf("the adopted log begins at %d", l.LogStartOffset())
	}
}

// A topic must not be made in the folder of an earlier one that could not be moved.
func TestRecreatedTopicBesideAFolderThatStays(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := trimmed(t)
		if restart {
			w.crashed(false)
		}
		w.fs.SetFault(func(op vfs.Op) error {
			if op.Kind == vfs.OpRename {
				return syscall.EIO
			}
			return nil
		})
		if err := w.store.Delete(testTopic); err == nil {
			t.Fatal("deleted, although the folder can't be moved")
		}
		w.fs.SetFault(nil)
		l := w.recreated()
		mustAppend(t, l, makeBatch(1, "new", 5, nil)) // as long as what was there
		w.crashed(false)
		l = w.recreated()
		w.settle()
		if start, end := l.LogStartOffset(), l.LogEndOffset(); start != 0 || end != 5 {
			t.Fatalf("the new topic's log is [%d, %d), not [0, 5)", start, end)
		}
	}
}
