package network

import (
	"net"
	"net/netip"
	"strconv"
)

// Reach is the address under which this client reached the broker, which is
// therefore the one to tell it when nothing else is configured: this end's address
// of the connection, with these names for it. A listener on a loopback address has
// its own host, as with Apache Kafka. On others "localhost" is what a client on this
// machine is told, of which many set-ups rely on the name, unless it came to another
// address than that name has; and one that comes through the default gateway, to a
// published container port.
func (c *Conn) Reach() (host string, port int32) {
	local, port := hostPort(c.local)
	own, ok := addrPort(c.local)
	peer, known := addrPort(c.remote)
	switch {
	case !ok || !known:
		return local, port
	case c.listener.host != "" && own.Addr().IsLoopback():
		return c.listener.host, port
	case isLocalhost(own.Addr()), c.srv.gateways.has(peer.Addr()):
		return "localhost", port
	}
	return local, port
}

var localhost4, localhost6 = netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()

// isLocalhost says that an address is one that "localhost" stands for.
func isLocalhost(a netip.Addr) bool { return a == localhost4 || a == localhost6 }

// hostOf is the host to listen on, "" for every interface.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip != nil && ip.IsUnspecified() {
		return ""
	}
	return host
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
