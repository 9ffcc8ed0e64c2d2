//go:build !linux

package network

import "net/netip"

// systemGateways is empty: containers, for which it matters, run on Linux.
func systemGateways() []netip.Addr { return nil }
