package network

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
)

func TestRoutingTables(t *testing.T) {
	v4 := `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010011AC	0003	0	0	0	00000000	0	0	0
eth0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
eth1	00000000	00000000	0001	0	0	0	00000000	0	0	0
junk
eth2	00000000	zzzz	0003	0	0	0	00000000	0	0	0
`
	if got := parseRoutes(strings.NewReader(v4)); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("172.17.0.1")}) {
		t.Errorf("IPv4 gateways %v", got)
	}
	v6 := `fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003 eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo
short
`
	if got := parseRoutes6(strings.NewReader(v6)); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("fd00::1")}) {
		t.Errorf("IPv6 gateways %v", got)
	}
}

func TestGatewaysAreReadAgain(t *testing.T) {
	now := clock.NewManual(time.Unix(1e9, 0))
	reads := 0
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	g := gateways{clock: now, read: func() []netip.Addr {
		reads++
		return [][]netip.Addr{nil, {a}, {b}}[reads]
	}}
	if !g.has(a) || g.has(b) || reads != 1 {
		t.Errorf("first table: %v %v after %d reads", g.has(a), g.has(b), reads)
	}
	now.Advance(gatewaysKeep)
	if g.has(a) || !g.has(b) || reads != 2 {
		t.Errorf("second table: %v %v after %d reads", g.has(a), g.has(b), reads)
	}
}
