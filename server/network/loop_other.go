//go:build !linux

package network

// newEngine is nil: without epoll every connection has a goroutine.
func newEngine(*Server, int) (engine, error) { return nil, nil }
