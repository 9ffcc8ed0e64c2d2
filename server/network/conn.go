package network

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Conn is one client connection: an ordered pipeline of requests and responses.
//
// The reader (an event loop, or the connection's goroutine) owns the assembler and
// the turn. The executor is a goroutine that exists while requests are queued for
// it. mu is a leaf lock over the slots, the out-queue and the life cycle; no system
// call is made under it.
type Conn struct {
	srv      *Server
	id       uint64
	listener *listener
	remote   net.Addr
	local    net.Addr
	link     link

	session atomic.Pointer[any]
	// When something was last read and sent, for the sweep, and how many bytes were
	// read.
	lastInMs, lastOutMs atomic.Int64
	bytesIn             atomic.Uint64
	// frameHeld is the buffer of the frame that is being collected, in bytes.
	frameHeld atomic.Int64
	// inBytes is what this connection has charged to the budget.
	inBytes atomic.Int64
	// outstanding are the requests that have left the reader and not ended in
	// order; pendingOut are the bytes of the out-queue. Both change under mu.
	outstanding atomic.Int32
	pendingOut  atomic.Int64
	// slotBytes is the memory of answers that wait for earlier ones; under mu too.
	slotBytes atomic.Int64
	// queued are the requests in or on the executor.
	queued atomic.Int32
	// hung says that input is discarded from now on; inTurn that the reader works.
	hung, inTurn atomic.Bool

	in   assembler // reader only
	turn turn      // reader only

	pace framePace // the frame watch's only

	mu sync.Mutex
	// Requests for the executor, in order.
	exec        []*Request
	execRunning bool
	// Slots: requests that were served and wait for their or earlier responses.
	slotHead, slotTail *Request
	out                outQueue
	life               life
	onClose            []func()
}

// ID is unique among the connections of one server.
func (c *Conn) ID() uint64 { return c.id }

// Listener is the name of the listener that accepted the connection.
func (c *Conn) Listener() string { return c.listener.name }

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// LocalAddr is this end's address on the connection itself, not the listener's.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteHost is the peer's address without its port; IPv4 addresses that came
// over an IPv6 socket are written as IPv4.
func (c *Conn) RemoteHost() string {
	host, _ := hostPort(c.remote)
	return host
}

// PendingOut is the number of response bytes that wait for the peer to read.
func (c *Conn) PendingOut() int { return int(c.pendingOut.Load()) }

// SetSession keeps a value for the layer above, such as who logged in.
func (c *Conn) SetSession(v any) { c.session.Store(&v) }

// Session is the value of SetSession, nil before.
func (c *Conn) Session() any {
	if p := c.session.Load(); p != nil {
		return *p
	}
	return nil
}

// OnClose has f called once after the connection has closed, at once if it has. f
// may run on an event loop: it must not block.
func (c *Conn) OnClose(f func()) {
	c.mu.Lock()
	done := c.life.closed
	if !done {
		c.onClose = append(c.onClose, f)
	}
	c.mu.Unlock()
	if done {
		f()
	}
}

// Close closes the connection at once; reason goes into one log line.
func (c *Conn) Close(reason string) {
	c.refuse(reason)
	c.shut(closedRefused, reason)
}

// peer names the other end in log lines.
func (c *Conn) peer() string {
	if ap, ok := addrPort(c.remote); ok {
		return ap.String()
	}
	return c.remote.String()
}

// addrPort is the IP address and port of a, unmapped.
func addrPort(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), ap.IsValid()
}

// charge counts n bytes to the connection and the budget without asking.
func (c *Conn) charge(n int) {
	if n != 0 {
		c.inBytes.Add(int64(n))
		c.srv.budget.add(n)
	}
}

// uncharge gives them back and lets the reader go on if it waited for that. It
// must not be called under a lock.
func (c *Conn) uncharge(n int, over bool) {
	if n == 0 && !over {
		return
	}
	c.inBytes.Add(-int64(n))
	c.srv.budget.release(n, over)
	c.recheck()
}

// countIn counts n bytes that were read.
func (c *Conn) countIn(n int) {
	c.bytesIn.Add(uint64(n))
	c.srv.metrics.bytesIn.Add(int64(n))
}
