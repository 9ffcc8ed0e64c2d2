package api

import (
	"sync"

	"github.com/barnabas-mq/barnabas/internal/park"
)

// parkedCalls are the long polls of one connection. They end with it: otherwise
// a client that connects, polls for a day and hangs up, over and over, would fill
// the memory.
type parkedCalls struct {
	mu      sync.Mutex
	closed  bool
	waiters map[*park.Waiter]struct{}
}

// parkedOf is the connection's; it may be called inside Serve only.
func parkedOf(c *Call) *parkedCalls {
	s := sessionOf(c.Conn())
	if s.parked == nil {
		p := &parkedCalls{waiters: map[*park.Waiter]struct{}{}}
		s.parked = p
		c.Conn().OnClose(p.close)
	}
	return s.parked
}

// add notes a waiter that is about to park; false when the connection has
// closed.
func (p *parkedCalls) add(w *park.Waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.waiters[w] = struct{}{}
	return true
}

func (p *parkedCalls) remove(w *park.Waiter) {
	p.mu.Lock()
	delete(p.waiters, w)
	p.mu.Unlock()
}

func (p *parkedCalls) open() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed
}

func (p *parkedCalls) close() {
	p.mu.Lock()
	p.closed = true
	waiters := p.waiters
	p.waiters = nil
	p.mu.Unlock()
	for w := range waiters {
		w.Wake()
	}
}
