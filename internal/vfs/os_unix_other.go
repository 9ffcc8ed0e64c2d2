//go:build unix && !linux

package vfs

import (
	"errors"
	"os"
	"syscall"
)

// syncData is Sync: darwin's fsync flushes the drive only with F_FULLFSYNC,
// which os.File.Sync uses.
func syncData(f *os.File) error { return f.Sync() }

func preallocate(*os.File, int64, int64) error { return errors.ErrUnsupported }

func usage(name string) (free, total uint64, err error) {
	var st syscall.Statfs_t
	if err := retryInterrupted(func() error { return syscall.Statfs(name, &st) }); err != nil {
		return 0, 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), uint64(st.Blocks) * uint64(st.Bsize), nil
}
