package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPU is what a process has used so far, in user and kernel mode.
func CPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	const utime, stime = 11, 12 // counted from the state, which follows the name
	if len(fields) <= stime {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, stat)
	}
	u, errU := strconv.ParseInt(fields[utime], 10, 64)
	s, errS := strconv.ParseInt(fields[stime], 10, 64)
	if errU != nil || errS != nil {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, stat)
	}
	return time.Duration(u+s) * time.Second / ticksPerSecond, nil
}

// Memory is a process's resident memory and the part of it that no file backs, in bytes.
func Memory(pid int) (rss, anon int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		var kib int64
		switch name {
		case "VmRSS", "RssAnon":
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				return 0, 0, err
			}
		}
		if name == "VmRSS" {
			rss = kib << 10
		}
		if name == "RssAnon" {
			anon = kib << 10
		}
	}
	return rss, anon, nil
}
