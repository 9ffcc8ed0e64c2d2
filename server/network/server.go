package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

// Listener is one address to serve.
type Listener struct {
	// Name is the listener's name, as in "EXTERNAL"; requests carry it.
	Name string
	// Addr is "host:port". An empty host, 0.0.0.0 and [::] are all addresses of
	// both IP versions; port 0 is a free one.
	Addr string
	// Protocol is the security protocol. Only PLAINTEXT, also when empty, is
	// served.
	Protocol string
}

// Options make a Server.
type Options struct {
	Handler   Handler
	Listeners []Listener
	Limits    Limits
	// Clock is clock.Real when nil.
	Clock clock.Clock
	Log   *slog.Logger
	// Metrics may be nil.
	Metrics *telemetry.Registry
	// Pressure says that the disk is slow at the moment, so that requests should
	// not be served on event loops. It may be nil.
	Pressure func() bool
	// Loops is the number of event loops, by default one for each CPU.
	Loops int
	// Std serves every connection by a goroutine instead of event loops, as on
	// systems without epoll.
	Std bool
}

// Server accepts connections and serves their requests.
type Server struct {
	opts     Options
	handler  Handler
	limits   Limits
	clock    clock.Clock
	started  time.Time
	log      *slog.Logger
	metrics  *metrics
	budget   budget
	gateways gateways
	pressure func() bool
	engine   engine // nil without event loops

	// outHeapBytes is the memory of all answers that are not sent, slotBytes what of it
	// waits for earlier ones.
	outHeapBytes atomic.Int64
	slotBytes    atomic.Int64
	draining     atomic.Bool
	lastID       atomic.Uint64
	acceptors    sync.WaitGroup
	stopping     chan struct{}

	mu        sync.Mutex
	listeners []*listener
	conns     map[*Conn]struct{}
	perIP     map[netip.Addr]int
	// room is closed and replaced when a connection has gone.
	room    chan struct{}
	sweeper clock.Timer
	// frameWatch is set while connections wait for memory.
	frameWatch clock.Timer
	stopped    bool
	logUntil   map[string]time.Time
}

// listener is one accept loop.
type listener struct {
	name string
	net.Listener
}

// engine serves TCP connections on event loops.
type engine interface {
	// attach takes nc over for c; false when it cannot, and nc is untouched.
	attach(c *Conn, nc net.Conn) bool
	// stop ends the loops and closes what they still serve.
	stop()
}

// New makes a server; Start opens its listeners.
func New(o Options) *Server {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = telemetry.Discard()
	}
	if o.Pressure == nil {
		o.Pressure = func() bool { return false }
	}
	if o.Loops <= 0 {
		o.Loops = runtime.GOMAXPROCS(0)
	}
	invariant.That(o.Handler != nil, "network.New without a handler")
	s := &Server{
		opts: o, handler: o.Handler, limits: o.Limits.withDefaults(), clock: o.Clock, started: o.Clock.Now(), log: o.Log, pressure: o.Pressure,
		stopping: make(chan struct{}), room: make(chan struct{}),
		conns: map[*Conn]struct{}{}, perIP: map[netip.Addr]int{}, logUntil: map[string]time.Time{},
	}
	s.budget.limitBytes = s.limits.QueuedBytes
	s.gateways = gateways{clock: o.Clock, read: systemGateways}
	s.metrics = newMetrics(o.Metrics, s)
	return s
}

// Start opens all listeners and serves them. On an error none is left open.
func (s *Server) Start() error {
	if !s.opts.Std {
		e, err := newEngine(s, s.opts.Loops)
		if err != nil {
			return fmt.Errorf("start event loops: %w", err)
		}
		s.engine = e
	}
	// The peer's system is asked whether it is still there; without that, a
	// connection whose peer lost its power would stay until it is idle too long.
	config := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 5}}
	var opened []*listener
	for _, l := range s.opts.Listeners {
		nl, err := s.listen(config, l)
		if err != nil {
			for _, o := range opened {
				o.Close()
			}
			if s.engine != nil {
				s.engine.stop()
			}
			return err
		}
		opened = append(opened, &listener{l.Name, nl})
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, opened...)
	s.mu.Unlock()
	for _, l := range opened {
		s.acceptors.Add(1)
		go func() {
			defer s.acceptors.Done()
			s.accept(l, s.engine)
		}()
	}
	return nil
}

func (s *Server) listen(config net.ListenConfig, l Listener) (net.Listener, error) {
	if l.Protocol != "" && l.Protocol != "PLAINTEXT" {
		return nil, fmt.Errorf("listener %s: security protocol %s is not supported", l.Name, l.Protocol)
	}
	nl, err := config.Listen(context.Background(), "tcp", l.Addr)
	if err != nil {
		return nil, fmt.Errorf("listener %s: %w", l.Name, err)
	}
	return nl, nil
}

// Serve serves a listener of any network, one goroutine for each connection. It
// returns when the listener is closed, by Shutdown at the latest.
func (s *Server) Serve(nl net.Listener, name string) error {
	l := &listener{name, nl}
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		nl.Close()
		return net.ErrClosed
	}
	s.listeners = append(s.listeners, l)
	s.acceptors.Add(1)
	s.mu.Unlock()
	defer s.acceptors.Done()
	s.accept(l, nil)
	return nil
}

// Addrs are the listeners' addresses in the order of Options, then of Serve.
func (s *Server) Addrs() []net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	addrs := make([]net.Addr, len(s.listeners))
	for i, l := range s.listeners {
		addrs[i] = l.Addr()
	}
	return addrs
}

// Connections is the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// acceptPause is how long an accept loop rests when the system is out of file
// descriptors or memory.
const acceptPause = 100 * time.Millisecond

func (s *Server) accept(l *listener, e engine) {
	for {
		nc, err := l.Accept()
		if err == nil {
			s.admit(nc, l, e)
			continue
		}
		if s.draining.Load() || errors.Is(err, net.ErrClosed) {
			return
		}
		s.metrics.refused.With("accept").Inc()
		s.logRarely("accept", "cannot accept connections", "listener", l.name, "err", err)
		rested := make(chan struct{})
		t := s.clock.AfterFunc(acceptPause, func() { close(rested) })
		select {
		case <-rested:
		case <-s.stopping:
			t.Stop()
			return
		}
	}
}

// admit applies the limits and gives the connection to its transport. At
// max.connections it waits for another to close, as Kafka does.
func (s *Server) admit(nc net.Conn, l *listener, e engine) {
	c := &Conn{srv: s, id: s.lastID.Add(1), listener: l, remote: nc.RemoteAddr(), local: nc.LocalAddr()}
	if c.remote == nil || c.local == nil { // it has failed already
		nc.Close()
		return
	}
	c.lastInMs.Store(s.nowMs())
	ip := ipOf(c.remote)
	for {
		s.mu.Lock()
		switch {
		case s.stopped:
			s.mu.Unlock()
			nc.Close()
			return
		case s.limits.perIP(ip) <= s.perIP[ip]:
			s.mu.Unlock()
			s.metrics.refused.With("per_ip").Inc()
			s.logRarely("per_ip", "refused a connection beyond max.connections.per.ip", "peer", c.peer(), "listener", l.name)
			nc.Close()
			return
		case len(s.conns) < s.limits.MaxConnections:
			s.conns[c] = struct{}{}
			s.perIP[ip]++
			s.armSweepLocked()
			s.mu.Unlock()
			s.metrics.accepted.With(l.name).Inc()
			if e == nil || !e.attach(c, nc) {
				serveStd(c, nc)
			}
			return
		}
		room := s.room
		s.mu.Unlock()
		s.metrics.refused.With("waiting").Inc()
		s.logRarely("max", "at max.connections: new connections wait until others close", "max", s.limits.MaxConnections)
		select {
		case <-room:
		case <-s.stopping:
		}
	}
}

// removed forgets a connection that has ended.
func (s *Server) removed(c *Conn) {
	ip := ipOf(c.remote)
	s.mu.Lock()
	delete(s.conns, c)
	if s.perIP[ip]--; s.perIP[ip] <= 0 {
		delete(s.perIP, ip)
	}
	close(s.room)
	s.room = make(chan struct{})
	s.mu.Unlock()
	c.mu.Lock()
	kind, detail := c.life.kind, c.life.detail
	c.mu.Unlock()
	s.metrics.closed.With(string(kind)).Inc()
	s.log.Debug("connection closed", "peer", c.peer(), "listener", c.listener.name, "kind", string(kind), "detail", detail)
}

// Shutdown stops accepting, lets the requests that have arrived finish and their
// responses leave, and closes the connections. When ctx ends first, it closes what
// is left and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.stopped
	s.stopped = true
	listeners := s.listeners
	if s.sweeper != nil {
		s.sweeper.Stop()
	}
	if s.frameWatch != nil {
		s.frameWatch.Stop()
	}
	s.mu.Unlock()
	s.draining.Store(true)
	if first {
		close(s.stopping)
	}
	for _, l := range listeners {
		l.Close()
	}
	s.acceptors.Wait()
	s.eachConn((*Conn).recheck)
	err := s.waitEmpty(ctx)
	if err != nil {
		s.eachConn(func(c *Conn) { c.shut(closedShutdown, "deadline") })
		err = fmt.Errorf("shut down connections: %w", err)
	}
	if s.engine != nil {
		s.stopEngine(ctx)
	}
	return err
}

// stopGrace is how long Shutdown waits for event loops after its deadline: they
// end at once, except one that is stuck in a stalled write.
const stopGrace = time.Second

func (s *Server) stopEngine(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		s.engine.stop()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	late := make(chan struct{})
	t := s.clock.AfterFunc(stopGrace, func() { close(late) })
	defer t.Stop()
	select {
	case <-done:
	case <-late:
		s.log.Error("an event loop does not end: a write to the disk is stuck")
	}
}

func (s *Server) waitEmpty(ctx context.Context) error {
	for {
		s.mu.Lock()
		n, room := len(s.conns), s.room
		s.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Server) eachConn(f func(*Conn)) {
	s.mu.Lock()
	conns := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}

// nowMs is the time for the sweep. It does not jump when the system's time is set,
// and stands while the machine sleeps.
func (s *Server) nowMs() int64 { return s.clock.Now().Sub(s.started).Milliseconds() + 1 }

// logRarely writes a warning at most once in ten seconds for each key, because a
// client can cause these at any rate.
func (s *Server) logRarely(key, msg string, args ...any) {
	now := s.clock.Now()
	s.mu.Lock()
	silent := now.Before(s.logUntil[key])
	if !silent {
		s.logUntil[key] = now.Add(10 * time.Second)
	}
	s.mu.Unlock()
	if !silent {
		s.log.Warn(msg, args...)
	}
}

// Listen opens a TCP listener for another server of the broker.
func Listen(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
