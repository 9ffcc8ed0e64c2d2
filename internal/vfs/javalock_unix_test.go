//go:build unix

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// javaLock tries what Java's FileChannel.tryLock does.
func javaLock(name string) string {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	switch err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err {
	case nil:
		return "locked"
	case unix.EAGAIN, unix.EACCES:
		return "held"
	default:
		return err.Error()
	}
}
