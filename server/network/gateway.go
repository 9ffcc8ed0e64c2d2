package network

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
)

// gatewaysKeep is how long the routing table is trusted: a container can be
// connected to another network while it runs.
const gatewaysKeep = 10 * time.Second

// gateways are this machine's default gateways. In a container the gateway is the
// host, which forwards what comes to a published port.
type gateways struct {
	clock clock.Clock
	read  func() []netip.Addr

	mu      sync.Mutex
	addrs   []netip.Addr
	staleAt time.Time
}

func (g *gateways) has(a netip.Addr) bool {
	now := g.clock.Now()
	g.mu.Lock()
	addrs, fresh := g.addrs, now.Before(g.staleAt)
	g.mu.Unlock()
	if !fresh {
		addrs = g.read()
		g.mu.Lock()
		g.addrs, g.staleAt = addrs, now.Add(gatewaysKeep)
		g.mu.Unlock()
	}
	return slices.Contains(addrs, a.WithZone(""))
}

// Columns of /proc/net/route and /proc/net/ipv6_route.
const (
	routeDestination, routeGateway, routeFlags             = 1, 2, 3
	route6Destination, route6PrefixLen, route6Gateway      = 0, 1, 4
	routeFlagGateway                                       = 2
	routeAnyDestination, routeAnyLen, routeAnyDestination6 = "00000000", "00", "00000000000000000000000000000000"
)

// parseRoutes reads /proc/net/route, whose addresses are in the machine's byte
// order.
func parseRoutes(r io.Reader) (found []netip.Addr) {
	for fields := range routeRows(r) {
		if len(fields) <= routeFlags || fields[routeDestination] != routeAnyDestination {
			continue
		}
		flags, err := strconv.ParseUint(fields[routeFlags], 16, 32)
		gw, err2 := strconv.ParseUint(fields[routeGateway], 16, 32)
		if err != nil || err2 != nil || flags&routeFlagGateway == 0 || gw == 0 {
			continue
		}
		var b [4]byte
		binary.NativeEndian.PutUint32(b[:], uint32(gw))
		found = append(found, netip.AddrFrom4(b))
	}
	return found
}

// parseRoutes6 reads /proc/net/ipv6_route.
func parseRoutes6(r io.Reader) (found []netip.Addr) {
	for fields := range routeRows(r) {
		if len(fields) <= route6Gateway || fields[route6Destination] != routeAnyDestination6 || fields[route6PrefixLen] != routeAnyLen {
			continue
		}
		b, err := hex.DecodeString(fields[route6Gateway])
		if a, ok := netip.AddrFromSlice(b); err == nil && ok && !a.IsUnspecified() {
			found = append(found, a)
		}
	}
	return found
}

// routesMax bounds how much of a routing table is read.
const routesMax = 10000

func routeRows(r io.Reader) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		s := bufio.NewScanner(r)
		for n := 0; n < routesMax && s.Scan(); n++ {
			if !yield(strings.Fields(s.Text())) {
				return
			}
		}
	}
}
