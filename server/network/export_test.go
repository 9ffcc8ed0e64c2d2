package network

import "net/netip"

// What tests in package network_test look at.

func (s *Server) RequestBytes() int64  { return s.budget.usedBytes.Load() }
func (s *Server) RequestWaiters() int  { return s.budget.waiting() }
func (s *Server) ResponseBytes() int64 { return s.outHeapBytes.Load() }

func (s *Server) SetGateways(addrs ...netip.Addr) {
	s.gateways.read = func() []netip.Addr { return addrs }
}

const (
	OutstandingMax = outstandingMax
	PendingOutMax  = pendingOutMax
)
