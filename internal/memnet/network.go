package memnet

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// Network is a set of hosts that reach each other. The zero value is not usable;
// see New.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*Listener
	links     map[[2]string]*hostLink
	lastPort  int
}

// New is an empty network.
func New() *Network {
	return &Network{listeners: map[string]*Listener{}, links: map[[2]string]*hostLink{}, lastPort: firstFreePort - 1}
}

// firstFreePort is where ports for port 0 and for dialers begin, as on Linux.
const firstFreePort = 32768

// Addr is "host:port" of a memnet host.
type Addr string

// Network is "memnet".
func (Addr) Network() string { return "memnet" }

func (a Addr) String() string { return string(a) }

func (n *Network) freePortLocked() int {
	n.lastPort++
	return n.lastPort
}

// Listen opens host:port; port 0 is a free one.
func (n *Network) Listen(addr string) (*Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "memnet", Addr: Addr(addr), Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		addr = net.JoinHostPort(host, strconv.Itoa(n.freePortLocked()))
	}
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "memnet", Addr: Addr(addr), Err: syscall.EADDRINUSE}
	}
	l := &Listener{network: n, addr: Addr(addr), closed: make(chan struct{}), backlog: make(chan *Conn, backlogMax)}
	n.listeners[addr] = l
	return l, nil
}

// Dialer dials from a host; its signature is that of net.Dialer.DialContext.
func (n *Network) Dialer(host string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) { return n.dial(ctx, host, addr) }
}

func (n *Network) dial(ctx context.Context, from, addr string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "memnet", Addr: Addr(addr), Err: err}
	}
	to, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fail(err)
	}
	for {
		n.mu.Lock()
		link := n.linkLocked(from, to)
		l := n.listeners[addr]
		local := Addr(net.JoinHostPort(from, strconv.Itoa(n.freePortLocked())))
		n.mu.Unlock()
		if healed := link.cutNow(); healed != nil {
			select {
			case <-healed:
				continue
			case <-ctx.Done():
				return fail(ctx.Err())
			}
		}
		if l == nil {
			return fail(syscall.ECONNREFUSED)
		}
		client, server := newPair(link, local, l.addr)
		select {
		case l.backlog <- server:
			return client, nil
		case <-l.closed:
			client.Close()
			return fail(syscall.ECONNREFUSED)
		case <-ctx.Done():
			client.Close()
			return fail(ctx.Err())
		}
	}
}

// Cut stops all traffic between two hosts, in both directions: what is written
// waits, what is dialled waits, and nobody is told. A host is cut from itself with
// a equal to b.
func (n *Network) Cut(a, b string) {
	n.mu.Lock()
	link := n.linkLocked(a, b)
	n.mu.Unlock()
	link.cut()
}

// Heal ends Cut: everything that waited arrives.
func (n *Network) Heal(a, b string) {
	n.mu.Lock()
	link := n.linkLocked(a, b)
	n.mu.Unlock()
	link.heal()
}

// Reset breaks the connections between two hosts: both ends get an error.
func (n *Network) Reset(a, b string) {
	n.mu.Lock()
	link := n.linkLocked(a, b)
	n.mu.Unlock()
	link.reset()
}

func (n *Network) linkLocked(a, b string) *hostLink {
	key := [2]string{min(a, b), max(a, b)}
	link := n.links[key]
	if link == nil {
		link = &hostLink{pipes: map[*pipe]struct{}{}}
		n.links[key] = link
	}
	return link
}

// hostLink is what two hosts share.
type hostLink struct {
	mu     sync.Mutex
	pipes  map[*pipe]struct{}
	healed chan struct{} // not nil while cut
}

// cutNow is the channel that is closed by heal, or nil while not cut.
func (h *hostLink) cutNow() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.healed
}

func (h *hostLink) cut() {
	h.mu.Lock()
	if h.healed == nil {
		h.healed = make(chan struct{})
	}
	h.mu.Unlock()
	h.each(func(p *pipe) { p.setCut(true) })
}

func (h *hostLink) heal() {
	h.mu.Lock()
	if h.healed != nil {
		close(h.healed)
		h.healed = nil
	}
	h.mu.Unlock()
	h.each(func(p *pipe) { p.setCut(false) })
}

func (h *hostLink) reset() { h.each(func(p *pipe) { p.fail(syscall.ECONNRESET) }) }

func (h *hostLink) each(f func(*pipe)) {
	h.mu.Lock()
	pipes := make([]*pipe, 0, len(h.pipes))
	for p := range h.pipes {
		pipes = append(pipes, p)
	}
	h.mu.Unlock()
	for _, p := range pipes {
		f(p)
	}
}

func (h *hostLink) add(pipes ...*pipe) {
	h.mu.Lock()
	for _, p := range pipes {
		h.pipes[p] = struct{}{}
		p.cut = h.healed != nil
	}
	h.mu.Unlock()
}

func (h *hostLink) remove(pipes ...*pipe) {
	h.mu.Lock()
	for _, p := range pipes {
		delete(h.pipes, p)
	}
	h.mu.Unlock()
}

// backlogMax connections may wait for Accept.
const backlogMax = 128

// Listener accepts connections to one address.
type Listener struct {
	network *Network
	addr    Addr
	backlog chan *Conn

	once   sync.Once
	closed chan struct{}
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, l.closedErr()
	default:
	}
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, l.closedErr()
	}
}

func (l *Listener) closedErr() error {
	return fmt.Errorf("accept %s: %w", l.addr, net.ErrClosed)
}

// Addr is the listener's address.
func (l *Listener) Addr() net.Addr { return l.addr }

// Close refuses further connections, and those that Accept has not returned.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, string(l.addr))
		l.network.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.backlog:
				c.Close()
				continue
			default:
			}
			break
		}
	})
	return nil
}
