//go:build unix

package network_test

import "golang.org/x/sys/unix"

// cpuTime is the process's CPU time in nanoseconds.
func cpuTime() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
