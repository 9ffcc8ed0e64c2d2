package network

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"
)

// loopEngine serves connections on gnet's event loops. Only the loops of gnet are
// used: connections are accepted by net.Listener and enrolled, because gnet's own
// acceptor ends the whole engine when the system is out of files, cannot stop
// accepting while it serves, and has no dual-stack form of [::].
type loopEngine struct {
	gnet.BuiltinEventEngine
	s      *Server
	client *gnet.Client
	out    *outPoller
	// enrolling are the goroutines that wait for a loop to take a connection.
	enrolling sync.WaitGroup
}

func newEngine(s *Server, loops int) (engine, error) {
	e := &loopEngine{s: s}
	out, err := newOutPoller()
	if err != nil {
		return nil, err
	}
	e.out = out
	e.client, err = gnet.NewClient(e,
		gnet.WithNumEventLoop(loops),
		gnet.WithReadBufferCap(inlineFrameMax),
		gnet.WithLogger(gnetLogger{s.log}))
	if err == nil {
		err = e.client.Start()
	}
	if err != nil {
		out.stop()
		return nil, err
	}
	return e, nil
}

func (e *loopEngine) stop() {
	e.enrolling.Wait()
	if err := e.client.Stop(); err != nil {
		e.s.log.Error("stop event loops", "err", err)
	}
	e.out.stop()
}

// attach enrolls a TCP connection. Addresses with a zone stay with the standard
// transport: gnet would recycle the zone's name, which belongs to package net.
func (e *loopEngine) attach(c *Conn, nc net.Conn) bool {
	for _, a := range []net.Addr{c.remote, c.local} {
		if t, ok := a.(*net.TCPAddr); !ok || t.Zone != "" {
			return false
		}
	}
	l := &loopLink{e: e, c: c, fd: -1}
	c.link = l
	e.enrolling.Add(1)
	go l.enroll(nc)
	return true
}

// Where a connection is.
const (
	loopEnrolling = iota // a loop is about to take it: its fd, if any, is ours
	loopActive           // on its loop: the fd is gnet's
	loopParking          // its loop is about to let it go: the fd is ours
	loopParked           // not read: the fd is ours
	loopGone
)

// loopLink is a connection's place on an event loop.
//
// gnet cannot stop reading. So a connection that must wait is parked: we keep a
// duplicate of its fd and have gnet close its own, which leaves the TCP connection
// as it is and lets the kernel's window fill up. Resuming enrolls it again.
type loopLink struct {
	e *loopEngine
	c *Conn

	// Under Conn.mu. fd changes only while no call on the socket is under way.
	g     gnet.Conn
	fd    int
	state int
	opens int // how often a loop has taken it
}

func loopLinkOf(g gnet.Conn) *loopLink { return g.Context().(*loopLink) }

// enroll waits for a loop to take nc, which it closes. A socket that its peer has
// reset has no peer's address any more, which gnet does not expect. nc keeps the
// addresses that it was made with, so one look is enough.
func (l *loopLink) enroll(nc net.Conn) {
	defer l.e.enrolling.Done()
	l.c.mu.Lock()
	before := l.opens
	l.c.mu.Unlock()
	if nc.RemoteAddr() == nil || nc.LocalAddr() == nil {
		nc.Close()
		l.end(closedPeer, "the peer reset the connection while it was not read")
		return
	}
	err := l.register(nc)
	l.c.mu.Lock()
	failed := l.opens == before // OnOpen was not called, whatever gnet says
	l.c.mu.Unlock()
	if failed {
		detail := "no event loop took the connection"
		if err != nil {
			detail = err.Error()
		}
		l.end(closedError, detail)
	}
}

// register has gnet take nc, on this goroutine as far as its loop: a panic there
// costs the connection only.
func (l *loopLink) register(nc net.Conn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.c.panicked("enrolling a connection", p)
			err = errPanic
		}
	}()
	_, err = l.e.client.EnrollContext(nc, l)
	return err
}

// OnOpen puts a new or resumed connection on its loop.
func (e *loopEngine) OnOpen(g gnet.Conn) ([]byte, gnet.Action) {
	l := loopLinkOf(g)
	c := l.c
	c.mu.Lock()
	c.quiesceLocked()
	old, armed := l.fd, c.out.armed
	l.g, l.fd, l.state = g, g.Fd(), loopActive
	l.opens++
	shutting := c.life.shutting
	c.mu.Unlock()
	if old >= 0 {
		e.out.del(old)
		unix.Close(old)
	}
	if shutting {
		return nil, gnet.Close
	}
	if armed {
		if err := e.out.arm(l.fd, c); err != nil {
			c.shut(closedError, err.Error())
			return nil, gnet.Close
		}
	}
	if old < 0 {
		return nil, gnet.None
	}
	stash := c.in.stash
	c.in.stash = nil
	action := l.handle(stash)
	c.uncharge(len(stash), false)
	if action == gnet.None {
		n, over := c.takeGrant() // the frame took less, or was served in place
		c.uncharge(n, over)
	}
	return nil, action
}

// OnTraffic handles what the loop has read.
func (e *loopEngine) OnTraffic(g gnet.Conn) gnet.Action {
	l := loopLinkOf(g)
	data, err := g.Next(-1)
	if err != nil {
		return gnet.Close
	}
	l.c.countIn(len(data))
	return l.handle(data)
}

func (l *loopLink) handle(data []byte) gnet.Action {
	c := l.c
	c.beginTurn()
	rest, paused := c.consume(data)
	if !paused {
		paused = l.readFrame()
	}
	c.endTurn()
	if paused {
		return l.park(rest)
	}
	return gnet.None
}

// frameReadMax is how much of a large frame is read before the loop looks at its
// other connections.
const frameReadMax = 1 << 20

// readFrame reads the rest of a large frame straight into its buffer, as far as it
// has arrived. The loop itself reports errors and the end of the stream.
func (l *loopLink) readFrame() (paused bool) {
	c := l.c
	for got := 0; got < frameReadMax && c.in.open && !c.in.small() && c.in.headHave == 0; {
		if !c.grow(1) {
			return true
		}
		buf := c.in.buf
		n, err := unix.Read(l.fd, buf[len(buf):min(cap(buf), c.in.frameSize)])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return false
		}
		c.countIn(n)
		got += n
		c.in.buf = buf[:len(buf)+n]
		c.frameDone()
	}
	return false
}

// park takes the connection off its loop.
func (l *loopLink) park(rest []byte) gnet.Action {
	c := l.c
	c.srv.metrics.pauses.Inc()
	fd, err := l.g.Dup()
	if err != nil {
		c.shut(closedError, "pause: "+err.Error())
		return gnet.Close
	}
	if len(rest) > 0 {
		c.in.stash = bytes.Clone(rest)
		c.charge(len(rest))
	}
	c.mu.Lock()
	c.quiesceLocked()
	old, armed := l.fd, c.out.armed
	l.g, l.fd, l.state = nil, fd, loopParking
	c.mu.Unlock()
	l.e.out.del(old)
	if armed {
		if err := l.e.out.arm(fd, c); err != nil {
			c.shut(closedError, "pause: "+err.Error())
		}
	}
	return gnet.Close
}

// OnClose ends a connection, or finishes parking it.
func (e *loopEngine) OnClose(g gnet.Conn, err error) gnet.Action {
	l := loopLinkOf(g)
	c := l.c
	c.mu.Lock()
	if l.state == loopParking {
		l.state = loopParked
		shutting := c.life.shutting
		c.mu.Unlock()
		if shutting {
			l.close()
		} else {
			l.resume()
		}
		return gnet.None
	}
	fd := l.fd
	c.mu.Unlock()
	kind, detail := closedPeer, ""
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		kind, detail = closedError, err.Error()
	}
	c.finalize(kind, detail)
	e.out.del(fd) // before gnet closes it and the number is used again
	c.mu.Lock()
	l.g, l.fd, l.state = nil, -1, loopGone
	c.mu.Unlock()
	return gnet.None
}

// resume enrolls a parked connection that may be read again.
func (l *loopLink) resume() {
	c := l.c
	c.mu.Lock()
	if l.state != loopParked || c.pausedLocked() || c.life.shutting {
		c.mu.Unlock()
		return
	}
	l.state = loopEnrolling
	l.e.enrolling.Add(1)
	fd := l.fd
	c.mu.Unlock()
	go func() {
		nc, err := connOf(fd)
		if err != nil {
			defer l.e.enrolling.Done()
			l.end(closedError, "resume: "+err.Error())
			return
		}
		l.enroll(nc)
	}()
}

// connOf makes a net.Conn for another duplicate of fd.
func connOf(fd int) (net.Conn, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(dup), "socket")
	defer f.Close()
	return net.FileConn(f)
}

// end finishes a connection that is on no loop. The fd is given up only when
// finalize has seen the last call on it return.
func (l *loopLink) end(kind closeKind, detail string) {
	l.c.mu.Lock()
	l.state = loopGone
	l.c.mu.Unlock()
	l.c.finalize(kind, detail)
	l.c.mu.Lock()
	fd := l.fd
	l.fd = -1
	l.c.mu.Unlock()
	if fd >= 0 {
		l.e.out.del(fd)
		unix.Close(fd)
	}
}

func (l *loopLink) close() {
	l.c.mu.Lock()
	g, parked := l.g, l.state == loopParked
	if parked {
		l.state = loopGone
	}
	l.c.mu.Unlock()
	switch {
	case parked:
		l.end(closedError, "")
	case g != nil:
		g.Close() // from its loop, which calls OnClose
	}
	// Otherwise it is between loops, and OnOpen or OnClose looks at shutting.
}

// behind looks into the system's buffer. A connection that is on no loop is not read,
// and this is asked of those only that are not meant to wait.
func (l *loopLink) behind() bool {
	l.c.mu.Lock()
	fd, active := l.fd, l.state == loopActive
	l.c.mu.Unlock()
	if !active {
		return true
	}
	n, err := unix.IoctlGetInt(fd, unix.SIOCINQ)
	return err == nil && n > 0
}

func (l *loopLink) blocking() bool { return false }

func (l *loopLink) sendsMapped() bool { return true }

// drain sends a slice of the queue here and the rest on a goroutine, so that a
// fast reader of a long response does not keep the loop.
func (l *loopLink) drain(bool) {
	c := l.c
	if !c.drainSome() {
		return
	}
	go func() {
		for c.drainSome() {
		}
		c.recheck()
	}()
}

func (l *loopLink) write(bufs [][]byte) (n int, err error) {
	size := 0
	for _, b := range bufs {
		size += len(b)
	}
	for {
		if len(bufs) == 1 {
			n, err = unix.Write(l.fd, bufs[0])
		} else {
			n, err = unix.Writev(l.fd, bufs)
		}
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN, err == nil && n < size:
			return max(n, 0), errAgain
		}
		return max(n, 0), err
	}
}

func (l *loopLink) arm() error { return l.e.out.arm(l.fd, l.c) }
