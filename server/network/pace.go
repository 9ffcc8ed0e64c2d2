package network

import "time"

// While connections wait for memory, a frame that is being collected has to fill
// its buffer at the rate of a whole one in frameTime, and may fall behind that by
// frameGrace: no frame holds a buffer that others need for longer than both
// together. Small buffers, of which it takes many to matter, may fall behind by
// smallFrameGrace.
const (
	frameWatchEvery = time.Second
	frameTime       = 10 * time.Second
	frameGrace      = 2 * time.Second
	smallFrameGrace = 10 * time.Second
	// frameLateMax is the most that a round counts for.
	frameLateMax = 2 * frameWatchEvery
)

// framePace is how the frame that a connection sends comes on.
type framePace struct {
	// seenMs is when the watch has seen the frame last, 0 if it has not, and
	// seenBytes what the connection had received by then.
	seenMs    int64
	seenBytes uint64
	// behindMs is how far it is behind.
	behindMs int64
}

// watchFrames begins to watch, with the first connection that waits for memory.
func (s *Server) watchFrames() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frameWatch == nil && !s.stopped {
		s.frameWatch = s.clock.AfterFunc(frameWatchEvery, s.checkFrames)
	}
}

// checkFrames cuts the connections whose frames are too slow. It goes on until
// nobody waits.
func (s *Server) checkFrames() {
	starved := s.budget.waiting() > 0
	now := s.nowMs()
	s.eachConn(func(c *Conn) {
		if !starved {
			c.pace = framePace{}
		} else if c.tooSlow(now) && !c.isClosing() {
			s.log.Warn("closing connection", "peer", c.peer(), "listener", c.listener.name,
				"reason", "other requests wait for the memory of a frame that arrives too slowly")
			c.shut(closedStalled, "frame")
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frameWatch = nil
	// Whoever has begun to wait since the look above relies on this one.
	if !s.stopped && (starved || s.budget.waiting() > 0) {
		s.frameWatch = s.clock.AfterFunc(frameWatchEvery, s.checkFrames)
	}
}

// tooSlow looks at the frame that c sends, once for each round of the watch. Time
// in which the broker itself has stopped reading does not count, nor what a round is
// late, nor one in which the broker has not come to read what has arrived: a loop
// stands still while the disk does, and all of the broker while its machine does.
func (c *Conn) tooSlow(nowMs int64) bool {
	p := &c.pace
	held, received := c.frameHeld.Load(), c.bytesIn.Load()
	if held == 0 || c.paused() {
		*p = framePace{}
		return false
	}
	if p.seenMs > 0 {
		worthMs := int64(received-p.seenBytes) * frameTime.Milliseconds() / held
		p.behindMs = max(0, p.behindMs+c.waitedMs(nowMs-p.seenMs)-worthMs)
	}
	p.seenMs, p.seenBytes = nowMs, received
	grace := frameGrace
	if held <= inlineFrameMax {
		grace = smallFrameGrace
	}
	return p.behindMs >= grace.Milliseconds()
}

// waitedMs is how much of a round the broker has waited for the peer.
func (c *Conn) waitedMs(roundMs int64) int64 {
	if c.unreadInput() {
		return 0
	}
	return min(roundMs, frameLateMax.Milliseconds())
}

// unreadInput asks the transport, whose socket is not closed meanwhile.
func (c *Conn) unreadInput() bool {
	c.mu.Lock()
	if c.life.closed {
		c.mu.Unlock()
		return false
	}
	c.out.busy++
	c.mu.Unlock()
	behind := c.link.behind()
	c.mu.Lock()
	c.notBusyLocked()
	c.mu.Unlock()
	return behind
}
