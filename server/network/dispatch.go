package network

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Bounds of one connection. A Kafka client keeps 5 requests in flight by default,
// librdkafka as many as it likes: the count only has to bound small ones.
const (
	outstandingMax = 256
	inBytesMax     = 8 << 20
	// pendingOutMax is how much a peer may leave unread before its next request
	// is not started.
	pendingOutMax = 1 << 20
	// turnBytesMax bounds the responses that are collected before they are sent.
	turnBytesMax = 256 << 10
)

// dispatchInPlace serves a frame that lies in the reader's buffer. It is false,
// and nothing has happened, when there is no memory to keep it for later.
func (c *Conn) dispatchInPlace(frame []byte, class Class) bool {
	if c.link.blocking() || c.inlineNow(class) {
		r := c.newRequest(frame)
		r.inPlace = true
		c.serveOnReader(r, class)
		return true
	}
	c.in.frameSize = len(frame)
	if !c.acquire(len(frame)) {
		return false
	}
	over := c.in.over
	c.in.over = false
	r := c.newRequest(bytes.Clone(frame))
	r.frameCharge, r.over, r.pooled = len(frame), over, true
	c.enqueueExec(r)
	return true
}

// dispatchOwned serves a frame with a buffer of its own.
func (c *Conn) dispatchOwned(frame []byte, class Class, over bool) {
	r := c.newRequest(frame)
	r.frameCharge, r.over, r.pooled = cap(frame), over, true
	if c.link.blocking() || (len(frame) <= inlineFrameMax && c.inlineNow(class)) {
		c.serveOnReader(r, class)
		return
	}
	c.enqueueExec(r)
}

func (c *Conn) newRequest(frame []byte) *Request {
	r := &Request{Conn: c, Frame: frame}
	r.refs.Store(2)
	return r
}

// inlineNow says whether a request may be served on the loop: it cannot block,
// nothing earlier waits for the executor, the disk is well, the peer reads its
// responses, and memory is not short (or this is its only request).
func (c *Conn) inlineNow(class Class) bool {
	return class.Inline && c.queued.Load() == 0 && c.mayStart() &&
		!c.srv.pressure() && (c.outstanding.Load() == 0 || !c.srv.budget.full())
}

// serveOnReader serves on the loop or on the goroutine of a blocking connection.
func (c *Conn) serveOnReader(r *Request, class Class) {
	r.onLoop = !c.link.blocking()
	if !class.Inline {
		c.flush() // earlier answers must not wait for a request that may block
	}
	c.serve(r)
	if r.requeued {
		r.requeued, r.onLoop = false, false
		c.enqueueExec(r)
		return
	}
	if r.state.Load() == requestEnded && c.outstanding.Load() == 0 && r.end != endHangup {
		if r.end == endResponse {
			c.turn.add(c, r.resp)
			r.resp = Response{}
			if c.turn.bytes > turnBytesMax {
				c.flush()
			}
		}
		return
	}
	c.flush()
	c.settle(r)
}

// serve calls the handler; a panic costs the connection, not the broker.
func (c *Conn) serve(r *Request) {
	defer r.served()
	defer func() {
		if p := recover(); p != nil {
			c.panicked("a request handler", p)
			if !r.ended.Load() {
				r.requeued = false
				r.Hangup("internal error")
			}
		}
	}()
	c.srv.handler.Serve(r)
}

// errPanic ends a connection whose serving has panicked.
var errPanic = errors.New("internal error")

// panicked counts and reports a panic, inside the deferred function that has
// recovered it; the caller ends the connection.
func (c *Conn) panicked(where string, p any) {
	c.srv.metrics.panics.Inc()
	c.srv.log.Error("panic in "+where, "peer", c.peer(),
		"panic", fmt.Sprint(p), slog.String("stack", string(debug.Stack())))
}

// settle gives a request whose Serve has returned its slot. The reader and the
// executor never serve at the same time, so slots are in the order of the frames.
func (c *Conn) settle(r *Request) {
	var abandoned []*Request
	ended := r.state.Load() == requestEnded
	if ended {
		r.items = c.appendItems(nil, r.resp)
	}
	c.mu.Lock()
	c.outstanding.Add(1)
	if c.slotTail == nil {
		c.slotHead = r
	} else {
		c.slotTail.next = r
	}
	c.slotTail = r
	var dropped []outItem
	if ended {
		dropped = c.doneLocked(r)
		if r.end == endHangup {
			abandoned = c.takeExecLocked()
		}
	} else if !r.state.CompareAndSwap(requestServing, requestDetached) {
		// It has ended since the look above and left the rest to us.
		c.mu.Unlock()
		c.finish(r)
		return
	}
	dropped = append(dropped, c.popLocked()...)
	c.mu.Unlock()
	abandon(abandoned)
	releaseItems(dropped)
	c.kick(false)
}

// refuseNext closes the connection instead of serving the frame that begins here,
// once everything before it is answered.
func (c *Conn) refuseNext(reason string) {
	r := c.newRequest(nil)
	r.Hangup(reason)
	r.dropRef()
	if c.queued.Load() > 0 {
		c.enqueueExec(r)
		return
	}
	c.flush()
	c.settle(r)
}

// finish marks a slot done and sends everything that is now in order.
func (c *Conn) finish(r *Request) {
	r.items = c.appendItems(nil, r.resp)
	c.mu.Lock()
	dropped := append(c.doneLocked(r), c.popLocked()...)
	c.mu.Unlock()
	releaseItems(dropped)
	c.kick(false)
}

// doneLocked marks a slot done. Its answer counts at once, though it may have to wait
// for earlier ones: a long poll at the head must not let all behind it pile up. Once
// the connection has closed it waits for nothing, and is returned to be released.
func (c *Conn) doneLocked(r *Request) (dropped []outItem) {
	r.done = true
	if c.life.closed {
		dropped = r.items
		r.items, r.resp = nil, Response{}
		return dropped
	}
	for i := range r.items {
		r.slotBytes += r.items[i].heapBytes()
	}
	c.countSlotLocked(r.slotBytes)
	return nil
}

// dropAnswersLocked gives up, when the connection closes, the answers that wait for
// earlier ones, which may take as long as long polls do.
func (c *Conn) dropAnswersLocked() (dropped []outItem) {
	for r := c.slotHead; r != nil; r = r.next {
		if !r.done {
			continue // its items are its ending's
		}
		dropped = append(dropped, r.items...)
		c.countSlotLocked(-r.slotBytes)
		r.items, r.resp, r.slotBytes = nil, Response{}, 0
	}
	return dropped
}

func (c *Conn) countSlotLocked(n int) {
	if n != 0 {
		c.slotBytes.Add(int64(n))
		c.srv.slotBytes.Add(int64(n))
		c.srv.outHeapBytes.Add(int64(n))
	}
}

// unread is what the peer has not read of its answers.
func (c *Conn) unread() int64 { return c.pendingOut.Load() + c.slotBytes.Load() }

// mayStart says that the next request may be served: the peer reads its answers, and
// those of all connections that wait for earlier ones leave half of the bound of all to
// answers that are being sent. Otherwise whoever lets answers pile up behind long polls
// would have other clients cut as slow readers. It becomes true at the latest when
// nothing is outstanding, which recheck sees.
func (c *Conn) mayStart() bool {
	return c.unread() <= pendingOutMax &&
		(c.outstanding.Load() == 0 || c.srv.slotBytes.Load() <= c.srv.limits.QueuedBytes/2)
}

// popLocked moves the done prefix of the slots to the out-queue. It returns what
// must be released because the connection has closed.
func (c *Conn) popLocked() (dropped []outItem) {
	for c.slotHead != nil && c.slotHead.done {
		r := c.slotHead
		c.slotHead = r.next
		if c.slotHead == nil {
			c.slotTail = nil
		}
		r.next = nil
		c.countSlotLocked(-r.slotBytes)
		switch {
		case c.life.closed || c.life.hangup:
			dropped = append(dropped, r.items...)
		case r.end == endHangup:
			c.life.hangup = true
		default:
			c.enqueueLocked(r.items)
		}
		r.items, r.resp = nil, Response{}
		c.outstanding.Add(-1)
	}
	return dropped
}

// enqueueExec hands a request to the executor, after the answers of this turn.
func (c *Conn) enqueueExec(r *Request) {
	c.flush()
	c.mu.Lock()
	if c.life.closed {
		c.mu.Unlock()
		abandon([]*Request{r})
		return
	}
	c.queued.Add(1) // taken back by takeExecLocked or at the end of runExec's turn
	c.exec = append(c.exec, r)
	c.mu.Unlock()
	c.recheck()
}

// runExec serves the queued requests one after the other. The goroutine ends when
// there are none, or the peer does not read its responses; of a lingering
// connection it is the last that ends.
func (c *Conn) runExec() {
	for {
		c.mu.Lock()
		stop := c.life.closed || !c.mayStart()
		if len(c.exec) == 0 || stop && !c.life.lingering {
			c.execRunning = false
			last := c.life.lingering
			c.life.lingering = false
			c.mu.Unlock()
			if last {
				c.srv.removed(c)
			}
			return
		}
		r := c.exec[0]
		c.exec[0] = nil
		c.exec = c.exec[1:]
		if len(c.exec) == 0 {
			c.exec = nil
		}
		c.mu.Unlock()
		if !r.ended.Load() { // else it only hangs up
			c.serve(r)
		}
		c.settle(r)
		c.queued.Add(-1)
		c.recheck()
	}
}

// takeExecLocked takes back the requests that the executor has not begun.
func (c *Conn) takeExecLocked() []*Request {
	rs := c.exec
	c.exec = nil
	c.queued.Add(int32(-len(rs)))
	return rs
}

// abandon drops requests that were never served.
func abandon(rs []*Request) {
	for _, r := range rs {
		if r.pooled {
			putBuffer(r.Frame)
		}
		r.Frame = nil
		r.Conn.uncharge(r.frameCharge+int(r.extra.Load()), r.over)
	}
}
