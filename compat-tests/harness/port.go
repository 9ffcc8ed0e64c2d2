package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Ports are taken from below those that systems give to outgoing connections (Linux from 32768, others from 49152):
// above, a client's connection can get the port between the choice and the broker's start, or while a killed broker is away.
const (
	firstPort = 12000
	endPort   = 29000 // suites with fixed ports have theirs from here on
)

// taken holds the locks of the ports this process has, until it ends.
var (
	takenMu sync.Mutex
	taken   []*os.File
)

// FreePort is a port of 127.0.0.1 on which nobody listens, and which no other row is given while this process runs.
func FreePort() (int, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("barnabas-compat-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	first := rand.IntN(endPort - firstPort)
	for i := range endPort - firstPort {
		port := firstPort + (first+i)%(endPort-firstPort)
		lock, err := lockPort(filepath.Join(dir, fmt.Sprint(port)))
		if err != nil {
			return 0, err
		}
		if lock == nil {
			continue
		}
		if listens(port) {
			lock.Close()
			continue
		}
		takenMu.Lock()
		defer takenMu.Unlock()
		taken = append(taken, lock)
		return port, nil
	}
	return 0, fmt.Errorf("harness: every port from %d to %d is in use", firstPort, endPort-1)
}

// lockPort returns nil where another has the lock.
func lockPort(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
	case nil:
		return f, nil
	case syscall.EWOULDBLOCK:
		f.Close()
		return nil, nil
	default:
		f.Close()
		return nil, err
	}
}

// listens is whether the port is in use, on the loopback address or on all.
func listens(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return true
	}
	l.Close()
	return false
}
