package storage

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// slowDisk is a disk on which the first sync of what is named so lasts until the test
// lets it go.
type slowDisk struct {
	vfs.FS
	suffix string
	gate   chan error // what the sync returns, after it was done if that is nil
	begun  bool
}

func (d *slowDisk) hold(name string) error {
	if d.begun || !strings.HasSuffix(name, d.suffix) {
		return nil
	}
	d.begun = true
	return <-d.gate
}

func (d *slowDisk) SyncDir(name string) error {
	if err := d.hold(name); err != nil {
		return err
	}
	return d.FS.SyncDir(name)
}

func (d *slowDisk) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	return slowFile{f, d}, err
}

type slowFile struct {
	vfs.File
	disk *slowDisk
}

func (f slowFile) SyncData() error {
	if err := f.disk.hold(f.Name()); err != nil {
		return err
	}
	return f.File.SyncData()
}

// A flush beside a sync that is under way finds nothing left to sync. It must not say
// that all is durable before that sync has ended, nor when it has failed.
func TestFlushBesideASync(t *testing.T) {
	for _, suffix := range []string{".log", "orders-0"} {
		for _, fate := range []error{nil, syscall.EIO} {
			t.Run(suffix, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { flushBesideASync(t, suffix, fate) })
			})
		}
	}
}

func flushBesideASync(t *testing.T, suffix string, fate error) {
	w := newWorld(t, 1)
	disk := &slowDisk{FS: w.fs, suffix: suffix, gate: make(chan error)}
	env := Env{FS: disk, Clock: w.clock, Logger: w.logger, Rand: w.rand.Uint64}
	store, err := openWith(env, "/data", w.cfg, w.spawn)
	mustDo(t, err)
	w.store = store
	l := w.log()
	mustAppend(t, l, makeBatch(1, "a", 3, nil))
	synced, flushed := make(chan error, 1), make(chan error, 1)
	go func() { synced <- l.syncData() }()
	synctest.Wait()
	go func() { flushed <- l.Flush() }()
	synctest.Wait()
	if len(flushed) > 0 || l.RecoveryPoint() != 0 || l.durable.Load() != 0 {
		t.Fatalf("durable up to %d, recovery point %d, while the sync is under way", l.durable.Load(), l.RecoveryPoint())
	}
	disk.gate <- fate
	for _, result := range []chan error{synced, flushed} {
		if err := <-result; (err == nil) != (fate == nil) {
			t.Fatalf("%v, when the sync said %v", err, fate)
		}
	}
	want := int64(3)
	if fate != nil {
		want = 0
	}
	if l.RecoveryPoint() != want || l.durable.Load() != want {
		t.Fatalf("durable up to %d, recovery point %d after %v", l.durable.Load(), l.RecoveryPoint(), fate)
	}
	w.abandon()
}

// After a failed sync the kernel takes the pages for clean: whoever failed, the next
// process has to write them again before it calls them durable.
func TestFailedSyncIsNoted(t *testing.T) {
	for name, fail := range map[string]func(w *world, l *Log) error{
		"flush": func(_ *world, l *Log) error { return l.Flush() },
		"stop":  func(w *world, _ *Log) error { return w.store.Close() },
		"truncation": func(_ *world, l *Log) error {
			mustAppend(t, l, makeBatch(1, "b", 2, nil))
			return l.TruncateTo(3)
		},
		"return of the partition": func(w *world, l *Log) error {
			l.fail(syscall.EIO, offlineBroken)
			l.revive()
			return l.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(8) {
				w := newWorld(t, 1)
				w.mustOpen()
				l := w.log()
				mustAppend(t, l, makeBatch(1, "a", 3, nil))
				w.fs.SetFault(func(op vfs.Op) error {
					if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".log") {
						return syscall.EIO
					}
					return nil
				})
				if err := fail(w, l); err == nil {
					t.Fatal("the sync did not fail")
				}
				w.crashed(false)
				l = w.log()
				mustDo(t, l.Flush())
				w.abandon()
				w.fs.Crash(seed)
				w.mustOpen()
				if all := contents(t, w.log()); len(all) != 1 {
					t.Fatalf("%d batches after the power failure, seed %d", len(all), seed)
				}
			}
		})
	}
}
