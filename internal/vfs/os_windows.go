package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// openFile lets others rename and delete the file while it is open, as on the
// other systems; os.OpenFile does not.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var access uint32 = windows.GENERIC_READ
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		access = windows.GENERIC_WRITE
	case os.O_RDWR:
		access = windows.GENERIC_READ | windows.GENERIC_WRITE
	}
	if flag&os.O_APPEND != 0 {
		access = access&^windows.GENERIC_WRITE | windows.FILE_APPEND_DATA
	}
	share := uint32(windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE)
	handle, err := windows.CreateFile(path, access, share, nil, creation(flag), windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(handle), name), nil
}

func creation(flag int) uint32 {
	switch {
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return windows.CREATE_NEW
	case flag&(os.O_CREATE|os.O_TRUNC) == os.O_CREATE|os.O_TRUNC:
		return windows.CREATE_ALWAYS
	case flag&os.O_CREATE != 0:
		return windows.OPEN_ALWAYS
	case flag&os.O_TRUNC != 0:
		return windows.TRUNCATE_EXISTING
	}
	return windows.OPEN_EXISTING
}

// syncDir does nothing: NTFS journals its entries and has no such call.
func syncDir(string) error { return nil }

func syncData(f *os.File) error { return f.Sync() }

func preallocate(*os.File, int64, int64) error { return errors.ErrUnsupported }

func mapFile(*os.File, int64, int) (Mapping, error) { return nil, errors.ErrUnsupported }

func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = control(f, func(fd uintptr) error {
		flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
		return windows.LockFileEx(windows.Handle(fd), flags, 0, 1, 0, new(windows.Overlapped))
	})
	if err == nil {
		return f, nil
	}
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		err = ErrLocked
	}
	return nil, errors.Join(err, f.Close())
}

func readLockFile(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	err = control(f, func(fd uintptr) error {
		return windows.LockFileEx(windows.Handle(fd), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	})
	if err == nil {
		return f, nil
	}
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		err = ErrLocked
	}
	return nil, errors.Join(err, f.Close())
}

func usage(name string) (free, total uint64, err error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return 0, 0, err
	}
	err = windows.GetDiskFreeSpaceEx(path, &free, &total, nil)
	return free, total, err
}
