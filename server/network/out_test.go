package network

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/memnet"
)

// countingLink takes every byte at once, on a goroutine of the writer's own.
type countingLink struct {
	nullLink
	c    *Conn
	sent atomic.Int64
}

func (l *countingLink) drain(bool) {
	go func() {
		for l.c.drainSome() {
		}
	}()
}

func (l *countingLink) write(bufs [][]byte) (n int, err error) {
	for _, b := range bufs {
		n += len(b)
	}
	l.sent.Add(int64(n))
	return n, nil
}

// TestNothingIsLeftInTheQueue adds to the queue at the moment when the writer finds
// it empty.
func TestNothingIsLeftInTheQueue(t *testing.T) {
	s := New(Options{Handler: &recorder{}})
	c := &Conn{srv: s, listener: &listener{}, remote: memnet.Addr("x:1"), local: memnet.Addr("y:1")}
	l := &countingLink{c: c}
	c.link = l
	deadline := time.Now().Add(20 * time.Second)
	for n := range int64(100_000) {
		c.mu.Lock()
		c.enqueueLocked([]outItem{{data: []byte("x")}})
		c.mu.Unlock()
		c.kick(false)
		for l.sent.Load() <= n {
			if time.Now().After(deadline) {
				t.Fatalf("response %d was left in the queue", n)
			}
			runtime.Gosched()
		}
	}
}
