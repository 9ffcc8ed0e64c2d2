package network

import "net/netip"

// What tests in package network_test look at.

func (s *Server) RequestBytes() int64  { return s.budget.usedBytes.Load() }
func (s *Server) ReceivedBytes() int64 { return s.metrics.bytesIn.Load() }
func (s *Server) ResponseBytes() int64 { return s.outHeapBytes.Load() }

// RequestWaiters is the number of connections that wait for memory, none before the
// watch over their frames has begun.
func (s *Server) RequestWaiters() int {
	s.mu.Lock()
	watched := s.frameWatch != nil
	s.mu.Unlock()
	if !watched {
		return 0
	}
	return s.budget.waiting()
}

// Quiet says that no reader, writer or executor is at work.
func (s *Server) Quiet() bool {
	quiet := true
	s.eachConn(func(c *Conn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		quiet = quiet && !c.inTurn.Load() && !c.out.writing && !c.execRunning
	})
	return quiet
}

// UnreadInputs is how many connections have input that the broker has not come to read.
func (s *Server) UnreadInputs() (n int) {
	s.eachConn(func(c *Conn) {
		if c.unreadInput() {
			n++
		}
	})
	return n
}

func (s *Server) SetGateways(addrs ...netip.Addr) {
	s.gateways.read = func() []netip.Addr { return addrs }
}

const (
	OutstandingMax = outstandingMax
	PendingOutMax  = pendingOutMax
)
