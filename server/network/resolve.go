package network

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// resolveTimeout bounds how long a request waits for a name server.
const resolveTimeout = 5 * time.Second

// Resolves says that host is an address, or a name that has one.
func Resolves(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	return err == nil && len(addrs) > 0
}
