package network

// life is the life cycle of a connection, under Conn.mu.
type life struct {
	// shutting: closing was asked for. closed: nothing is sent or served any more.
	shutting, closed bool
	kind             closeKind
	detail           string
	// hangup closes once the out-queue is empty.
	hangup bool
	// lingering: the peer has left, and what it sent before is still served.
	lingering bool
	// The reader has stopped because the connection is full, or waits for the
	// memory budget.
	pausedFull, pausedBudget bool
	// What the budget has granted while the reader had stopped.
	granted     int
	grantedOver bool
}

// link is the transport under a connection.
type link interface {
	// blocking says that the reader is a goroutine that may wait.
	blocking() bool
	// sendsMapped says that write passes bytes to the system only.
	sendsMapped() bool
	// drain makes the caller, or another goroutine, the writer until the queue
	// is empty or the socket full.
	drain(reader bool)
	// write sends some bytes; errAgain with the number sent when it would block.
	write(bufs [][]byte) (int, error)
	// arm has Conn.writable called when there is room.
	arm() error
	// behind says that the broker has not read what the peer has sent.
	behind() bool
	// resume lets the reader go on.
	resume()
	// close ends the connection; Conn.finalize follows.
	close()
}

// recheck looks at everything that a change of the connection may allow: starting
// the executor, reading on, or closing a connection that has nothing left to do.
func (c *Conn) recheck() {
	c.mu.Lock()
	if c.life.closed {
		c.mu.Unlock()
		return
	}
	empty := c.out.list == nil && !c.out.writing
	idle := empty && !c.inTurn.Load() && c.slotHead == nil && c.queued.Load() == 0
	kind := closeKind("")
	switch {
	case c.life.shutting:
	case c.life.hangup && empty:
		kind = closedRefused
	case c.srv.draining.Load() && idle:
		kind = closedShutdown
	}
	startExec := len(c.exec) > 0 && !c.execRunning && c.mayStart()
	if startExec {
		c.execRunning = true
	}
	resume := false
	if c.life.pausedFull && c.roomAgain() {
		c.life.pausedFull = false
		resume = !c.life.pausedBudget
	}
	c.mu.Unlock()
	if startExec {
		go c.runExec()
	}
	if resume {
		c.link.resume()
	}
	if kind != "" {
		c.shut(kind, "")
	}
}

// full says that the reader must stop before the next frame.
func (c *Conn) full() bool {
	return int(c.outstanding.Load()+c.queued.Load()) >= outstandingMax || c.inBytes.Load() >= inBytesMax ||
		(c.link.blocking() && !c.mayStart())
}

// roomAgain is less than the opposite of full, so that a connection at its limit
// does not stop and go for each request.
func (c *Conn) roomAgain() bool {
	return int(c.outstanding.Load()+c.queued.Load()) <= outstandingMax/2 && c.inBytes.Load() <= inBytesMax/2 &&
		(!c.link.blocking() || c.mayStart())
}

// pauseWhenFull marks the reader stopped, before a frame, if the connection is full.
func (c *Conn) pauseWhenFull() bool {
	if !c.full() {
		return false
	}
	c.mu.Lock()
	if !c.full() {
		c.mu.Unlock()
		return false
	}
	c.life.pausedFull = true
	c.mu.Unlock()
	// What it was granted for the next frame is of use to others until then.
	c.uncharge(c.takeGrant())
	return true
}

func (c *Conn) beginBudgetPause() {
	c.mu.Lock()
	c.life.pausedBudget = true
	c.mu.Unlock()
}

func (c *Conn) endBudgetPause() {
	c.mu.Lock()
	c.life.pausedBudget = false
	c.mu.Unlock()
}

// granted is called by the budget when the connection's turn has come.
func (c *Conn) granted(n int, over bool) {
	c.mu.Lock()
	if c.life.closed {
		c.mu.Unlock()
		c.srv.budget.release(n, over)
		return
	}
	c.inBytes.Add(int64(n))
	c.life.granted += n
	c.life.grantedOver = c.life.grantedOver || over
	c.life.pausedBudget = false
	resume := !c.life.pausedFull
	c.mu.Unlock()
	if resume {
		c.link.resume()
	}
}

func (c *Conn) takeGrant() (n int, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, over = c.life.granted, c.life.grantedOver
	c.life.granted, c.life.grantedOver = 0, false
	return n, over
}

// pausedLocked says that the reader must stay stopped.
func (c *Conn) pausedLocked() bool { return c.life.pausedFull || c.life.pausedBudget }

// beginTurn and endTurn enclose the reader's work on one piece of input.
func (c *Conn) beginTurn() {
	c.inTurn.Store(true)
	c.lastInMs.Store(c.srv.nowMs())
}

func (c *Conn) endTurn() {
	c.flush()
	c.inTurn.Store(false)
	if c.srv.draining.Load() {
		c.recheck()
	}
}

// refuse discards whatever the peer sends from now on, and says why, once.
func (c *Conn) refuse(reason string) {
	if c.hung.CompareAndSwap(false, true) {
		c.srv.log.Warn("closing connection", "peer", c.peer(), "listener", c.listener.name, "reason", reason)
	}
}

// closeKind says why a connection ended, as the label of a metric.
type closeKind string

const (
	closedPeer     closeKind = "peer"     // the client closed it
	closedRefused  closeKind = "refused"  // something wrong came over it
	closedIdle     closeKind = "idle"     // connections.max.idle.ms
	closedStalled  closeKind = "stalled"  // the peer does not read, or not send on
	closedMemory   closeKind = "memory"   // slow readers hold too much
	closedShutdown closeKind = "shutdown" // the broker stops
	closedError    closeKind = "error"    // the socket failed
)

// shut begins to close the connection, once.
func (c *Conn) shut(kind closeKind, detail string) {
	c.mu.Lock()
	first := c.beginShutLocked(kind, detail)
	c.mu.Unlock()
	if first {
		c.endShut()
	}
}

// beginShutLocked is true for who must call endShut, without the lock.
func (c *Conn) beginShutLocked(kind closeKind, detail string) (first bool) {
	if c.life.shutting {
		return false
	}
	c.life.shutting, c.life.kind, c.life.detail = true, kind, detail
	return true
}

func (c *Conn) endShut() {
	c.hung.Store(true)
	c.link.close()
}

// finalize is the end of a connection: it is called once the reader has stopped for
// good, and returns when nobody uses the socket any more. Whole requests of a peer
// that left are served all the same: a producer with acks=0 closes when it has
// sent.
func (c *Conn) finalize(kind closeKind, detail string) {
	c.mu.Lock()
	if c.life.closed {
		c.mu.Unlock()
		return
	}
	if !c.life.shutting {
		c.life.shutting, c.life.kind, c.life.detail = true, kind, detail
	}
	c.life.closed = true
	c.quiesceLocked()
	var execs []*Request
	c.life.lingering = c.life.kind == closedPeer && (c.execRunning || len(c.exec) > 0)
	linger, start := c.life.lingering, c.life.lingering && !c.execRunning
	if linger {
		c.execRunning = true
	} else {
		execs = c.takeExecLocked()
	}
	hooks := c.onClose
	c.onClose = nil
	dropped := c.dropAnswersLocked()
	var list *outList
	if !c.out.writing { // else the writer releases it, see endWriteLocked
		list = c.takeOutLocked()
	}
	c.mu.Unlock()
	c.hung.Store(true)
	list.release()
	releaseItems(dropped)
	abandon(execs)
	c.in.reset(c)
	c.srv.budget.forget(c)
	n, over := c.takeGrant()
	c.uncharge(n, over)
	for _, f := range hooks {
		c.runHook(f)
	}
	if start {
		go c.runExec()
	}
	if !linger {
		c.srv.removed(c)
	}
}

// runHook runs what OnClose was given; the connection has ended by then, whatever
// becomes of it.
func (c *Conn) runHook(f func()) {
	defer func() {
		if p := recover(); p != nil {
			c.panicked("a hook for the end of a connection", p)
		}
	}()
	f()
}

// quiesceLocked waits until no call on the socket is under way. It lets go of the
// lock meanwhile.
func (c *Conn) quiesceLocked() {
	for c.out.busy > 0 {
		if c.out.idle == nil {
			c.out.idle = make(chan struct{})
		}
		idle := c.out.idle
		c.mu.Unlock()
		<-idle
		c.mu.Lock()
	}
}

func (c *Conn) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.life.shutting
}
