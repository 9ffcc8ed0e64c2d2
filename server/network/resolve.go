package network

import (
	"context"
	"net"
	"net/netip"
)

// Resolves says that host is an address, or a name that has one; no when ctx is
// done before the name server has answered.
func Resolves(ctx context.Context, host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	return err == nil && len(addrs) > 0
}
