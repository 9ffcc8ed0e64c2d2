package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// memFile is a handle of a Mem's file.
type memFile struct {
	fs    *Mem
	node  *inode
	name  string
	epoch int
	flag  int

	// pos and closed are guarded by fs.mu.
	pos    int64
	closed bool
}

func (f *memFile) Name() string { return f.name }

// checkLocked says whether the operation may happen.
func (f *memFile) checkLocked(kind OpKind) error {
	if f.closed {
		return fs.ErrClosed
	}
	if f.epoch != f.fs.epoch {
		return ErrCrashed
	}
	return f.fs.faults.check(kind, f.name)
}

func (f *memFile) Read(p []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n, err := f.readLocked(p, f.pos)
	f.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.readLocked(p, off)
}

func (f *memFile) readLocked(p []byte, off int64) (int, error) {
	if err := f.checkLocked(OpRead); err != nil {
		return 0, pathError("read", f.name, err)
	}
	if off < 0 {
		return 0, pathError("read", f.name, syscall.EINVAL)
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.flag&os.O_APPEND != 0 {
		f.pos = int64(len(f.node.data))
	}
	n, err := f.writeLocked(p, f.pos)
	f.pos += int64(n)
	return n, err
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.writeLocked(p, off)
}

// writeLocked writes what fits; an injected error leaves the first half, as a
// disk does that fails on the way.
func (f *memFile) writeLocked(p []byte, off int64) (int, error) {
	if f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return 0, pathError("write", f.name, syscall.EBADF)
	}
	if off < 0 {
		return 0, pathError("write", f.name, syscall.EINVAL)
	}
	err := f.checkLocked(OpWrite)
	if f.closed || f.epoch != f.fs.epoch {
		return 0, pathError("write", f.name, err)
	}
	n := len(p)
	if err != nil {
		n /= 2
	} else if room := f.roomLocked(off); int64(n) > room {
		n, err = int(room), syscall.ENOSPC
	}
	if n > 0 {
		f.node.change(dataOp{off: off, b: slices.Clone(p[:n])})
		f.node.mod = f.fs.now()
	}
	if err != nil {
		return n, pathError("write", f.name, err)
	}
	return n, nil
}

// roomLocked is how many bytes may be written at off.
func (f *memFile) roomLocked(off int64) int64 {
	if f.fs.capacity == 0 {
		return unlimited
	}
	used := f.fs.usedLocked()
	free := int64(f.fs.capacity - min(used, f.fs.capacity))
	return max(f.node.space()-off, 0) + free
}

func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	return nil
}

func (f *memFile) Stat() (fs.FileInfo, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.checkLocked(OpRead); err != nil {
		return nil, pathError("stat", f.name, err)
	}
	return f.node.info(f.name), nil
}

// Sync makes the content durable. After an injected error the changes so far
// count as clean although they never reached the disk: as on Linux, a later sync
// succeeds without them.
func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	err := f.checkLocked(OpSync)
	if err == nil {
		for _, op := range f.node.pending {
			f.node.kept = op.apply(f.node.kept)
		}
	}
	if err == nil || !errors.Is(err, fs.ErrClosed) && !errors.Is(err, ErrCrashed) {
		f.node.pending = nil
	}
	if err != nil {
		return pathError("sync", f.name, err)
	}
	return nil
}

func (f *memFile) SyncData() error { return f.Sync() }

func (f *memFile) Truncate(sizeBytes int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.checkLocked(OpTruncate); err != nil {
		return pathError("truncate", f.name, err)
	}
	if sizeBytes < 0 {
		return pathError("truncate", f.name, syscall.EINVAL)
	}
	f.node.change(dataOp{off: sizeBytes})
	return nil
}

// Preallocate takes space of the capacity until the file is truncated.
func (f *memFile) Preallocate(offset, lengthBytes int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.checkLocked(OpPreallocate); err != nil {
		return pathError("preallocate", f.name, err)
	}
	if f.roomLocked(offset) < lengthBytes {
		return pathError("preallocate", f.name, syscall.ENOSPC)
	}
	f.node.reserved = max(f.node.reserved, offset+lengthBytes)
	return nil
}

// Map is not supported.
func (f *memFile) Map(int64, int) (Mapping, error) {
	return nil, pathError("map", f.name, errors.ErrUnsupported)
}

type memInfo struct {
	name   string
	size   int64
	folder bool
	mod    time.Time
	node   *inode
}

func (n *inode) info(name string) fs.FileInfo {
	return memInfo{name: name, size: int64(len(n.data)), folder: n.folder, mod: n.mod, node: n}
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return i.mod }
func (i memInfo) IsDir() bool        { return i.folder }
func (i memInfo) Sys() any           { return i.node }

func (i memInfo) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
