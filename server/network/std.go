package network

import (
	"errors"
	"io"
	"net"
	"sync"
)

// stdLink serves a connection of any network by a goroutine that reads, serves and
// may wait. Responses that are ready later are written by another goroutine.
type stdLink struct {
	c  *Conn
	nc net.Conn
	// resumed wakes the reader; one token is enough because it looks again.
	resumed chan struct{}
	tcp     bool
}

// Sizes of the reader's buffers: while it waits it holds the small one.
const (
	stdIdleBuffer = 2 << 10
	stdBusyBuffer = 64 << 10
)

var stdBuffers = sync.Pool{New: func() any { return new([stdBusyBuffer]byte) }}

func serveStd(c *Conn, nc net.Conn) {
	_, tcp := nc.(*net.TCPConn)
	l := &stdLink{c: c, nc: nc, resumed: make(chan struct{}, 1), tcp: tcp}
	c.link = l
	go l.run()
}

func (l *stdLink) run() {
	kind, detail := l.read()
	l.nc.Close()
	l.c.finalize(kind, detail)
}

func (l *stdLink) read() (closeKind, string) {
	c := l.c
	idle := make([]byte, stdIdleBuffer)
	for {
		n, err := l.nc.Read(idle)
		if n > 0 && !l.take(idle[:n]) {
			return closedRefused, ""
		}
		for more := n == len(idle); more && err == nil; {
			big := stdBuffers.Get().(*[stdBusyBuffer]byte)
			n, err = l.nc.Read(big[:])
			ok := n == 0 || l.take(big[:n])
			more = n == len(big)
			stdBuffers.Put(big)
			if !ok {
				return closedRefused, ""
			}
		}
		if err == nil {
			err = l.readFrame()
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
			return closedPeer, ""
		case errors.Is(err, errRefused):
			return closedRefused, ""
		default:
			return closedError, err.Error()
		}
		if c.isClosing() {
			return closedPeer, "" // shut has said why
		}
	}
}

// errRefused ends the reader of a connection that was refused.
var errRefused = errors.New("refused")

// take handles one piece of input; it waits while the connection must not be read.
// False ends the connection.
func (l *stdLink) take(data []byte) bool {
	c := l.c
	c.countIn(len(data))
	c.beginTurn()
	defer c.endTurn()
	for {
		rest, paused := c.consume(data)
		if !paused {
			return true
		}
		c.flush()
		if !l.wait() {
			return false
		}
		data = rest
	}
}

// readFrame reads the rest of a large frame straight into its buffer.
func (l *stdLink) readFrame() error {
	c := l.c
	for c.in.open && !c.in.small() && c.in.headHave == 0 {
		if !c.grow(1) {
			if !l.wait() {
				return net.ErrClosed
			}
			continue
		}
		buf := c.in.buf
		n, err := l.nc.Read(buf[len(buf):min(cap(buf), c.in.frameSize)])
		c.countIn(n)
		c.in.buf = buf[:len(buf)+n]
		if n > 0 {
			if !l.take(nil) {
				return errRefused
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wait blocks the reader until it may go on; false when the connection is closing.
func (l *stdLink) wait() bool {
	c := l.c
	c.srv.metrics.pauses.Inc()
	c.recheck()
	for {
		c.mu.Lock()
		paused, closing := c.pausedLocked(), c.life.shutting
		c.mu.Unlock()
		if closing {
			return false
		}
		if !paused {
			return true
		}
		<-l.resumed
	}
}

// behind is never so: the reader is a goroutine that nothing else keeps.
func (l *stdLink) behind() bool { return false }

func (l *stdLink) blocking() bool { return true }

func (l *stdLink) sendsMapped() bool { return l.tcp }

func (l *stdLink) drain(reader bool) {
	if reader {
		for l.c.drainSome() {
		}
		return
	}
	go func() {
		for l.c.drainSome() {
		}
		l.c.recheck()
	}()
}

// stdWriteMax is how much is written at a time: a write returns only when all of
// it is out, and a slow reader's progress must be seen.
const stdWriteMax = 64 << 10

func (l *stdLink) write(bufs [][]byte) (int, error) {
	room := stdWriteMax
	for i, b := range bufs {
		if len(b) >= room {
			bufs[i] = b[:room]
			bufs = bufs[:i+1]
			break
		}
		room -= len(b)
	}
	if len(bufs) == 1 {
		return l.nc.Write(bufs[0])
	}
	b := net.Buffers(bufs)
	n, err := b.WriteTo(l.nc)
	return int(n), err
}

func (l *stdLink) arm() error { return nil }

func (l *stdLink) resume() {
	select {
	case l.resumed <- struct{}{}:
	default:
	}
}

func (l *stdLink) close() {
	l.nc.Close()
	l.resume()
}
