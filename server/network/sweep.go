package network

import (
	"fmt"
	"time"
)

// The sweep looks at all connections every few seconds and closes those that are
// idle, do not read, or hold memory that others wait for.
const (
	sweepEvery = 5 * time.Second
	// When others wait for memory, a frame that is being collected must have come
	// further by frameProgressBytes from one sweep to the next, after frameGrace.
	frameProgressBytes = 64 << 10
	frameGrace         = 10 * time.Second
)

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
	starved := s.budget.waiting() > 0
	s.eachConn(func(c *Conn) {
		stall := s.limits.MaxStall
		if s.outHeapBytes.Load() > s.limits.QueuedBytes {
			stall = min(stall, sweepEvery) // slow readers go first when memory is short
		}
		s.judge(c, now, stall, starved)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeper = nil
	if !s.stopped && len(s.conns) > 0 {
		s.armSweepLocked()
	}
}

func (s *Server) judge(c *Conn, nowMs int64, stall time.Duration, starved bool) {
	if c.isClosing() {
		return
	}
	progress := c.bytesIn.Load() - c.sweptBytes
	c.sweptBytes += progress
	busy := c.inTurn.Load() || c.outstanding.Load() > 0 || c.queued.Load() > 0
	if c.pendingOut.Load() > 0 {
		if stalled := nowMs - c.lastOutMs.Load(); stalled > stall.Milliseconds() {
			s.log.Warn("closing connection", "peer", c.peer(), "listener", c.listener.name,
				"reason", fmt.Sprintf("the peer has read nothing for %d ms", stalled), "pendingBytes", c.PendingOut())
			c.shut(closedStalled, "unread responses")
		}
		return
	}
	if since := c.partialSinceMs.Load(); starved && since > 0 && nowMs-since > frameGrace.Milliseconds() &&
		progress < frameProgressBytes && !c.paused() {
		s.log.Warn("closing connection", "peer", c.peer(), "listener", c.listener.name,
			"reason", "other requests wait for the memory of a frame that does not arrive")
		c.shut(closedStalled, "frame")
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
