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
	outgoing, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	count := portsEnd(string(outgoing)) - firstPort
	first := rand.IntN(count)
	for i := range count {
		port := firstPort + (first+i)%count
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
	return 0, fmt.Errorf("harness: every port from %d to %d is in use", firstPort, firstPort+count-1)
}

// portsEnd is where the ports end that are taken: some systems are set to give outgoing connections lower ones.
func portsEnd(outgoing string) int {
	const few = 1000 // a system that leaves fewer is taken as it comes
	var low int
	if _, err := fmt.Sscan(outgoing, &low); err == nil && low >= firstPort+few {
		return min(endPort, low)
	}
	return endPort
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
