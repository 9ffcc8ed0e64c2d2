package network_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/memnet"
	"github.com/barnabas-mq/barnabas/server/network"
)

// addrConn has the addresses that a test wants.
type addrConn struct {
	net.Conn
	local, remote net.Addr
}

func (c addrConn) LocalAddr() net.Addr  { return c.local }
func (c addrConn) RemoteAddr() net.Addr { return c.remote }

// oneConn is a listener with one connection.
type oneConn struct {
	*memnet.Listener
	local, remote net.Addr
}

func (l oneConn) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return addrConn{c, l.local, l.remote}, nil
}

func TestReachIsAnAddressThatTheClientCanUse(t *testing.T) {
	ip := func(s string) net.Addr {
		ap := netip.MustParseAddrPort(s)
		return &net.TCPAddr{IP: net.IP(ap.Addr().AsSlice()), Port: int(ap.Port())}
	}
	for _, tc := range []struct {
		local, remote net.Addr
		host          string
		port          int32
	}{
		{ip("127.0.0.1:9092"), ip("127.0.0.1:5000"), "localhost", 9092},
		{ip("[::1]:9092"), ip("[::1]:5000"), "localhost", 9092},
		{ip("[::ffff:127.0.0.1]:9092"), ip("[::ffff:127.0.0.1]:5000"), "localhost", 9092},
		{ip("172.17.0.2:9092"), ip("172.17.0.1:5000"), "localhost", 9092}, // a published port
		{ip("[::ffff:172.17.0.2]:9092"), ip("[::ffff:172.17.0.1]:5000"), "localhost", 9092},
		{ip("172.17.0.2:9092"), ip("172.17.0.3:5000"), "172.17.0.2", 9092}, // another container
		{ip("[::ffff:192.168.1.5]:9093"), ip("[::ffff:192.168.1.6]:5000"), "192.168.1.5", 9093},
		{ip("192.168.1.5:9092"), ip("192.168.1.5:5000"), "192.168.1.5", 9092},
		{ip("[2001:db8::2]:9092"), ip("[2001:db8::3]:5000"), "2001:db8::2", 9092},
		{memnet.Addr("broker:9092"), memnet.Addr("client:40000"), "broker", 9092},
	} {
		s := network.New(network.Options{Handler: reachHandler{t, tc.host, tc.port}})
		s.SetGateways(netip.MustParseAddr("172.17.0.1"))
		mem := memnet.New()
		l, err := mem.Listen("x:1")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- s.Serve(oneConn{l, tc.local, tc.remote}, "MEM") }()
		nc, err := mem.Dialer("y")(t.Context(), "", "x:1")
		if err != nil {
			t.Fatal(err)
		}
		client{nc, t}.ping(1)
		nc.Close()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

type reachHandler struct {
	t    *testing.T
	host string
	port int32
}

func (h reachHandler) Classify(network.FrameHead) network.Class { return network.Class{} }

func (h reachHandler) Serve(r *network.Request) {
	if host, port := r.Conn.Reach(); host != h.host || port != h.port {
		h.t.Errorf("%v from %v is told %s:%d, want %s:%d", r.Conn.LocalAddr(), r.Conn.RemoteAddr(), host, port, h.host, h.port)
	}
	r.Complete(answer(r.Frame, r.Frame[8:]))
}
