//go:build unix

package network

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// RaiseNoFile raises the process's limit of open files as far as it may, and
// returns it.
func RaiseNoFile() (uint64, error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	if r.Cur >= r.Max {
		return uint64(r.Cur), nil
	}
	raised := r
	raised.Cur = raised.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &raised); err != nil {
		return uint64(r.Cur), fmt.Errorf("raise the limit of open files from %d to %d: %w", r.Cur, r.Max, err)
	}
	return uint64(raised.Cur), nil
}
