package network

import (
	"fmt"
	"time"
)

// The sweep looks at all connections every few seconds and closes those that are
// idle or do not read.
const sweepEvery = 5 * time.Second

func (s *Server) sweepInterval() time.Duration {
	d := min(sweepEvery, s.limits.MaxStall/4)
	if s.limits.MaxIdle > 0 {
		d = min(d, s.limits.MaxIdle/4)
	}
	return max(d, 10*time.Millisecond)
}

// armSweepLocked starts the timer with the first connection: without any, the
// broker has nothing to wake up for.
func (s *Server) armSweepLocked() {
	if s.sweeper == nil {
		s.sweeper = s.clock.AfterFunc(s.sweepInterval(), s.sweep)
	}
}

func (s *Server) sweep() {
	now := s.nowMs()
	s.eachConn(func(c *Conn) {
		stall := s.limits.MaxStall
		if c.heldOut() > s.answerShare() {
			stall = min(stall, sweepEvery) // these go first when memory is short
		}
		s.judge(c, now, stall)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeper = nil
	if !s.stopped && len(s.conns) > 0 {
		s.armSweepLocked()
	}
}

func (s *Server) judge(c *Conn, nowMs int64, stall time.Duration) {
	if c.isClosing() {
		return
	}
	busy := c.inTurn.Load() || c.outstanding.Load() > 0 || c.queued.Load() > 0
	if c.pendingOut.Load() > 0 {
		if stalled := nowMs - c.lastOutMs.Load(); stalled > stall.Milliseconds() {
			s.log.Warn("closing connection", "peer", c.peer(), "listener", c.listener.name,
				"reason", fmt.Sprintf("the peer has read nothing for %d ms", stalled), "pendingBytes", c.PendingOut())
			c.shut(closedStalled, "unread responses")
		}
		return
	}
	if s.limits.MaxIdle < 0 || busy || c.paused() {
		return
	}
	if nowMs-max(c.lastInMs.Load(), c.lastOutMs.Load()) > s.limits.MaxIdle.Milliseconds() {
		c.shut(closedIdle, "")
	}
}

func (c *Conn) paused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pausedLocked()
}

// heldOut is what the out-queue holds of our memory.
func (c *Conn) heldOut() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.out.heapBytes)
}
