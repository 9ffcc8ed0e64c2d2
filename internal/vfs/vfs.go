package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// FS is a file system. Names are paths as package path/filepath makes them.
// Errors wrap fs.ErrNotExist, fs.ErrExist and syscall.ENOSPC where they apply.
type FS interface {
	// OpenFile opens with the os.O_* flags; perm is used when it creates.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	MkdirAll(name string, perm fs.FileMode) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	RemoveAll(name string) error
	// Rename replaces newName atomically when it exists. It is durable only
	// after SyncDir of the parent folders.
	Rename(oldName, newName string) error
	// Link makes a hard link; errors.ErrUnsupported where there is none.
	Link(oldName, newName string) error
	// ReadDir lists a folder sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the folder's entries durable (a no-op where the system
	// has no such call).
	SyncDir(name string) error
	// Lock takes an exclusive lock on the file, made when missing, until the
	// closer is closed or the process ends. A held lock is ErrLocked.
	Lock(name string) (io.Closer, error)
	// ReadLock takes a lock that readers share on a file that is there, which it
	// leaves as it is, against programs that lock it as Java does (Lock's own is
	// another one). A file locked by such a program is ErrLocked,
	// errors.ErrUnsupported means that the file system has no such locks.
	ReadLock(name string) (io.Closer, error)
	// Usage is the space of the file system that holds name, in bytes.
	Usage(name string) (free, total uint64, err error)
}

// File is an open file. ReadAt and WriteAt are safe for concurrent use.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
	// Sync makes data and metadata durable.
	Sync() error
	// SyncData makes data durable, and the length when it changed.
	SyncData() error
	Truncate(sizeBytes int64) error
	// Preallocate reserves blocks without changing the length. It is a hint:
	// errors.ErrUnsupported where there is none.
	Preallocate(offset, lengthBytes int64) error
	// Map maps bytes of the file for sending. errors.ErrUnsupported where
	// there is none: use ReadAt instead.
	Map(offset int64, lengthBytes int) (Mapping, error)
}

// Mapping is a mapped part of a file. Its bytes may only be passed to write
// system calls, never read by the program: the file may have been cut, and a
// page fault would block or kill the process.
type Mapping interface {
	Bytes() []byte
	Unmap() error
}

// ErrLocked says that another process, or this one, holds the lock.
var ErrLocked = errors.New("locked by another process")
