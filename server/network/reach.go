package network

import (
	"net"
	"net/netip"
	"strconv"
)

// Reach is the address under which this client reached the broker, which is
// therefore the one to tell it when nothing else is configured: "localhost" for a
// peer on this machine and for one that comes through the default gateway (a
// published container port), else this end's address of the connection.
func (c *Conn) Reach() (host string, port int32) {
	localHost, localPort := hostPort(c.local)
	if peer, ok := addrPort(c.remote); ok {
		if peer.Addr().IsLoopback() || c.srv.gateways.has(peer.Addr()) {
			return "localhost", localPort
		}
	}
	return localHost, localPort
}

// hostPort splits an address of any network.
func hostPort(a net.Addr) (string, int32) {
	if ap, ok := addrPort(a); ok {
		return ap.Addr().String(), int32(ap.Port())
	}
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String(), 0
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return host, 0
	}
	return host, int32(n)
}

// ipOf is the peer's address for limits; peers of in-memory networks have none and
// share the zero address.
func ipOf(a net.Addr) netip.Addr {
	ap, _ := addrPort(a)
	return ap.Addr().WithZone("")
}
