package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
)

// pipeBytes is how much one direction holds before writers wait, about what a
// socket does.
const pipeBytes = 64 << 10

// pipe is one direction of a connection.
type pipe struct {
	mu   sync.Mutex
	cond *sync.Cond
	buf  []byte
	cut  bool
	// err ends both sides at once; eof is the writer's Close: what is in buf is
	// still read. gone is the reader's Close: writers get EPIPE.
	err       error
	eof, gone bool
	// Deadlines of the reading and the writing side.
	read, write deadline
}

// deadline wakes waiters when it has passed.
type deadline struct {
	at    time.Time
	timer clock.Timer
}

// real is the system's clock, which is virtual inside a testing/synctest bubble.
var real = clock.Real()

func (d *deadline) passed() bool { return !d.at.IsZero() && !real.Now().Before(d.at) }

func newPipe() *pipe {
	p := &pipe{}
	p.cond = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) setCut(cut bool) {
	p.mu.Lock()
	p.cut = cut
	p.mu.Unlock()
	p.cond.Broadcast()
}

func (p *pipe) fail(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	p.mu.Unlock()
	p.cond.Broadcast()
}

func (p *pipe) setDeadline(d *deadline, at time.Time) {
	p.mu.Lock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if !at.IsZero() {
		if wait := at.Sub(real.Now()); wait > 0 {
			d.timer = real.AfterFunc(wait, p.cond.Broadcast)
		}
	}
	p.mu.Unlock()
	p.cond.Broadcast()
}

func (p *pipe) readInto(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.gone:
			return 0, net.ErrClosed
		case p.err != nil:
			return 0, p.err
		case p.read.passed():
			return 0, os.ErrDeadlineExceeded
		case len(p.buf) > 0 && !p.cut:
			n := copy(b, p.buf)
			p.buf = p.buf[n:]
			if len(p.buf) == 0 {
				p.buf = nil
			}
			p.cond.Broadcast()
			return n, nil
		case p.eof && !p.cut:
			return 0, io.EOF
		case len(b) == 0:
			return 0, nil
		}
		p.cond.Wait()
	}
}

func (p *pipe) writeAll(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.eof:
			return n, net.ErrClosed
		case p.err != nil:
			return n, p.err
		case p.gone && !p.cut:
			return n, syscall.EPIPE
		case p.write.passed():
			return n, os.ErrDeadlineExceeded
		case len(b) == 0:
			return n, nil
		}
		if room := pipeBytes - len(p.buf); room > 0 {
			k := min(room, len(b))
			p.buf = append(p.buf, b[:k]...)
			b, n = b[k:], n+k
			p.cond.Broadcast()
			continue
		}
		p.cond.Wait()
	}
}

func (p *pipe) closeEnd(end *bool) {
	p.mu.Lock()
	*end = true
	for _, d := range []*deadline{&p.read, &p.write} {
		if d.timer != nil {
			d.timer.Stop()
		}
	}
	p.mu.Unlock()
	p.cond.Broadcast()
}

// Conn is one end of a connection.
type Conn struct {
	link          *hostLink
	in, out       *pipe
	local, remote Addr
	once          sync.Once
}

func newPair(link *hostLink, client, server Addr) (*Conn, *Conn) {
	up, down := newPipe(), newPipe()
	link.add(up, down)
	return &Conn{link: link, in: down, out: up, local: client, remote: server},
		&Conn{link: link, in: up, out: down, local: server, remote: client}
}

// Read waits for bytes, the peer's end, or the deadline.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.readInto(b)
	return n, c.wrap("read", err)
}

// Write waits until the peer's buffer has taken all bytes.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.out.writeAll(b)
	return n, c.wrap("write", err)
}

// wrap makes errors look like those of package net; io.EOF stays itself.
func (c *Conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "memnet", Source: c.local, Addr: c.remote, Err: err}
}

// Close ends both directions; the peer reads what was written before.
func (c *Conn) Close() error {
	err := c.wrap("close", net.ErrClosed)
	c.once.Do(func() {
		err = nil
		c.out.closeEnd(&c.out.eof)
		c.in.closeEnd(&c.in.gone)
		c.forget()
	})
	return err
}

// forget takes a pipe that has ended on both sides off the link.
func (c *Conn) forget() {
	for _, p := range []*pipe{c.in, c.out} {
		p.mu.Lock()
		over := p.eof && p.gone
		p.mu.Unlock()
		if over {
			c.link.remove(p)
		}
	}
}

// LocalAddr is this end's address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines; they may be in the past, and zero is none.
func (c *Conn) SetDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.read, t)
	c.out.setDeadline(&c.out.write, t)
	return nil
}

// SetReadDeadline sets the deadline of Read.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.read, t)
	return nil
}

// SetWriteDeadline sets the deadline of Write.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.write, t)
	return nil
}
