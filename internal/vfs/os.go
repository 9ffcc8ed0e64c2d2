package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// OS is the machine's file system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := openFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &osFile{f: f}, nil
}

func (osFS) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) RemoveAll(name string) error { return os.RemoveAll(name) }

func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

func (osFS) Link(oldName, newName string) error { return os.Link(oldName, newName) }

func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (osFS) SyncDir(name string) error { return syncDir(name) }

func (osFS) Usage(name string) (free, total uint64, err error) {
	free, total, err = usage(name)
	if err != nil {
		return 0, 0, &fs.PathError{Op: "usage", Path: name, Err: err}
	}
	return free, total, nil
}

// Lock keeps the file open, and with it the system's lock: a process that dies
// leaves none behind.
func (osFS) Lock(name string) (io.Closer, error) {
	f, err := lockFile(name)
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("lock %s: %w", name, ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}

func (osFS) ReadLock(name string) (io.Closer, error) {
	f, err := readLockFile(name)
	if err != nil {
		return nil, fmt.Errorf("lock %s for reading: %w", name, err)
	}
	return f, nil
}

// osFile is a type of its own so that nobody reaches os.File's other methods.
type osFile struct{ f *os.File }

func (o *osFile) Read(p []byte) (int, error)               { return o.f.Read(p) }
func (o *osFile) Write(p []byte) (int, error)              { return o.f.Write(p) }
func (o *osFile) ReadAt(p []byte, off int64) (int, error)  { return o.f.ReadAt(p, off) }
func (o *osFile) WriteAt(p []byte, off int64) (int, error) { return o.f.WriteAt(p, off) }
func (o *osFile) Close() error                             { return o.f.Close() }
func (o *osFile) Name() string                             { return o.f.Name() }
func (o *osFile) Stat() (fs.FileInfo, error)               { return o.f.Stat() }
func (o *osFile) Sync() error                              { return o.f.Sync() }
func (o *osFile) Truncate(sizeBytes int64) error           { return o.f.Truncate(sizeBytes) }

func (o *osFile) SyncData() error { return syncData(o.f) }

func (o *osFile) Preallocate(offset, lengthBytes int64) error {
	if err := preallocate(o.f, offset, lengthBytes); err != nil {
		return fmt.Errorf("preallocate %s: %w", o.f.Name(), err)
	}
	return nil
}

func (o *osFile) Map(offset int64, lengthBytes int) (Mapping, error) {
	m, err := mapFile(o.f, offset, lengthBytes)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", o.f.Name(), err)
	}
	return m, nil
}

// control runs fn with the descriptor, which cannot be closed meanwhile.
func control(f *os.File, fn func(fd uintptr) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = fn(fd) }); err != nil {
		return err
	}
	return inner
}
