package kv

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	pebblevfs "github.com/cockroachdb/pebble/v2/vfs"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

const (
	filePerm = 0o644
	dirPerm  = 0o755
)

// adapter is pebble's file system over ours. pebble meets an error of the disk
// with retries without end, with the end of the process, or with a panic; so it
// never meets one. The first operation that fails to change something fails the
// store, and its goroutine stops for good, as does every other that comes here
// afterwards: nothing touches the disk any more. Errors of reading and names
// that exist or not are pebble's own business.
type adapter struct {
	fs      vfs.FS
	stopped atomic.Bool
	// fail ends the store.
	fail func(error)
	// lock is the held lock of the store's folder.
	lock atomic.Pointer[onceCloser]
}

// stop also gives up the folder's lock: nothing is written any more.
func (a *adapter) stop() {
	a.stopped.Store(true)
	if lock := a.lock.Load(); lock != nil {
		lock.Close()
	}
}

// enter lets nobody in after the store has failed.
func (a *adapter) enter() {
	if a.stopped.Load() {
		select {}
	}
}

// changed is the end of an operation that changes something.
func (a *adapter) changed(err error) error {
	if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		a.fail(err)
		select {}
	}
	return err
}

// onceCloser closes once, whoever comes first.
type onceCloser struct {
	once sync.Once
	c    io.Closer
	err  error
}

func (o *onceCloser) Close() error {
	o.once.Do(func() { o.err = o.c.Close() })
	return o.err
}

func (a *adapter) open(name string, flag int) (*file, error) {
	a.enter()
	f, err := a.fs.OpenFile(name, flag, filePerm)
	if flag&os.O_CREATE != 0 {
		err = a.changed(err)
	}
	if err != nil {
		return nil, err
	}
	return &file{File: f, a: a}, nil
}

// Create makes a new file even when the name is taken: the old one may be
// linked from elsewhere.
func (a *adapter) Create(name string, _ pebblevfs.DiskWriteCategory) (pebblevfs.File, error) {
	f, err := a.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if errors.Is(err, fs.ErrExist) {
		if err := a.Remove(name); err != nil {
			return nil, err
		}
		f, err = a.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	}
	if err != nil {
		return nil, err
	}
	// pebble takes a manifest that it has synced for one that a crash cannot
	// lose, and lets a marker point to it. Not every file system makes a new
	// file's name durable with its content.
	f.syncName = strings.HasPrefix(filepath.Base(name), "MANIFEST-")
	return f, nil
}

func (a *adapter) Link(oldName, newName string) error {
	a.enter()
	return a.changed(a.fs.Link(oldName, newName))
}

func (a *adapter) Open(name string, opts ...pebblevfs.OpenOption) (pebblevfs.File, error) {
	return a.openWith(name, os.O_RDONLY, opts)
}

func (a *adapter) OpenReadWrite(name string, _ pebblevfs.DiskWriteCategory, opts ...pebblevfs.OpenOption) (pebblevfs.File, error) {
	return a.openWith(name, os.O_RDWR|os.O_CREATE, opts)
}

func (a *adapter) openWith(name string, flag int, opts []pebblevfs.OpenOption) (pebblevfs.File, error) {
	f, err := a.open(name, flag)
	if err != nil {
		return nil, err
	}
	for _, opt := range opts {
		opt.Apply(f)
	}
	return f, nil
}

// OpenDir gives a handle whose only use is Sync.
func (a *adapter) OpenDir(name string) (pebblevfs.File, error) {
	a.enter()
	if _, err := a.fs.Stat(name); err != nil {
		return nil, err
	}
	return &folder{name: name, a: a}, nil
}

// Remove makes the marker that replaces a marker durable first: pebble syncs the
// folder only afterwards, and not every file system keeps the order of changes.
func (a *adapter) Remove(name string) error {
	a.enter()
	if strings.HasPrefix(filepath.Base(name), "marker.") {
		if err := a.changed(a.fs.SyncDir(filepath.Dir(name))); err != nil {
			return err
		}
	}
	return a.changed(a.fs.Remove(name))
}

func (a *adapter) RemoveAll(name string) error {
	a.enter()
	return a.changed(a.fs.RemoveAll(name))
}

func (a *adapter) Rename(oldName, newName string) error {
	a.enter()
	return a.changed(a.fs.Rename(oldName, newName))
}

func (a *adapter) ReuseForWrite(oldName, newName string, _ pebblevfs.DiskWriteCategory) (pebblevfs.File, error) {
	if err := a.Rename(oldName, newName); err != nil {
		return nil, err
	}
	return a.openWith(newName, os.O_RDWR|os.O_CREATE, nil)
}

func (a *adapter) MkdirAll(dir string, _ os.FileMode) error {
	a.enter()
	return a.changed(a.fs.MkdirAll(dir, dirPerm))
}

func (a *adapter) Lock(name string) (io.Closer, error) {
	a.enter()
	c, err := a.fs.Lock(name)
	if err != nil {
		return nil, err
	}
	lock := &onceCloser{c: c}
	a.lock.Store(lock)
	return lock, nil
}

func (a *adapter) List(dir string) ([]string, error) {
	a.enter()
	entries, err := a.fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (a *adapter) Stat(name string) (pebblevfs.FileInfo, error) {
	a.enter()
	return infoOf(a.fs.Stat(name))
}

func (a *adapter) PathBase(path string) string    { return filepath.Base(path) }
func (a *adapter) PathJoin(elem ...string) string { return filepath.Join(elem...) }
func (a *adapter) PathDir(path string) string     { return filepath.Dir(path) }
func (a *adapter) Unwrap() pebblevfs.FS           { return nil }

func (a *adapter) GetDiskUsage(path string) (pebblevfs.DiskUsage, error) {
	free, total, err := a.fs.Usage(path)
	return pebblevfs.DiskUsage{AvailBytes: free, TotalBytes: total, UsedBytes: total - min(free, total)}, err
}

// info has no device: pebble uses it only to tell two WAL folders apart.
type info struct{ fs.FileInfo }

func (info) DeviceID() pebblevfs.DeviceID { return pebblevfs.DeviceID{} }

func infoOf(fi fs.FileInfo, err error) (pebblevfs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return info{fi}, nil
}

type file struct {
	vfs.File
	a *adapter
	// syncName says that the next Sync makes the file's name durable as well.
	syncName bool
}

func (f *file) Write(p []byte) (int, error) {
	f.a.enter()
	n, err := f.File.Write(p)
	return n, f.a.changed(err)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.a.enter()
	n, err := f.File.WriteAt(p, off)
	return n, f.a.changed(err)
}

func (f *file) Sync() error {
	f.a.enter()
	err := f.File.Sync()
	if err == nil && f.syncName {
		f.syncName = false
		err = f.a.fs.SyncDir(filepath.Dir(f.Name()))
	}
	return f.a.changed(err)
}

func (f *file) SyncData() error {
	f.a.enter()
	return f.a.changed(f.File.SyncData())
}

// SyncTo starts no write-back of its own: the kernel's is good enough for the
// small files here.
func (f *file) SyncTo(int64) (fullSync bool, err error) { return false, nil }

func (f *file) Preallocate(offset, lengthBytes int64) error {
	f.a.enter()
	if err := f.File.Preallocate(offset, lengthBytes); !errors.Is(err, errors.ErrUnsupported) {
		return f.a.changed(err)
	}
	return nil
}

func (f *file) Stat() (pebblevfs.FileInfo, error) { return infoOf(f.File.Stat()) }
func (f *file) Prefetch(int64, int64) error       { return nil }
func (f *file) Fd() uintptr                       { return pebblevfs.InvalidFd }

// folder is an open folder: it can only be synced.
type folder struct {
	name string
	a    *adapter
}

var errFolder = errors.New("is a folder")

func (d *folder) Close() error                       { return nil }
func (d *folder) Read([]byte) (int, error)           { return 0, errFolder }
func (d *folder) ReadAt([]byte, int64) (int, error)  { return 0, errFolder }
func (d *folder) Write([]byte) (int, error)          { return 0, errFolder }
func (d *folder) WriteAt([]byte, int64) (int, error) { return 0, errFolder }
func (d *folder) Preallocate(int64, int64) error     { return nil }
func (d *folder) Stat() (pebblevfs.FileInfo, error)  { return d.a.Stat(d.name) }
func (d *folder) SyncTo(int64) (bool, error)         { return false, nil }
func (d *folder) SyncData() error                    { return d.Sync() }
func (d *folder) Prefetch(int64, int64) error        { return nil }
func (d *folder) Fd() uintptr                        { return pebblevfs.InvalidFd }

func (d *folder) Sync() error {
	d.a.enter()
	return d.a.changed(d.a.fs.SyncDir(d.name))
}
