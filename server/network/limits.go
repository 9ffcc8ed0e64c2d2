package network

import (
	"math"
	"net/netip"
	"time"
)

// Limits bound what clients can take. Zero fields have Kafka's defaults.
type Limits struct {
	// RequestMaxBytes is socket.request.max.bytes.
	RequestMaxBytes int
	// QueuedBytes is queued.max.request.bytes: the memory of all requests. The
	// responses that slow readers leave in memory have as much again.
	QueuedBytes int64
	// MaxConnections is max.connections, MaxConnectionsPerIP
	// max.connections.per.ip, with PerIPOverrides for single addresses. 0 is no
	// limit, a negative MaxConnectionsPerIP is none at all.
	MaxConnections      int
	MaxConnectionsPerIP int
	PerIPOverrides      map[netip.Addr]int
	// MaxIdle is connections.max.idle.ms; negative is for ever.
	MaxIdle time.Duration
	// MaxStall is how long a peer may leave responses unread without progress.
	MaxStall time.Duration
}

const (
	defaultRequestMaxBytes = 100 << 20
	defaultQueuedBytes     = 256 << 20
	defaultMaxIdle         = 10 * time.Minute
	defaultMaxStall        = time.Minute
)

func (l Limits) withDefaults() Limits {
	if l.RequestMaxBytes <= 0 {
		l.RequestMaxBytes = defaultRequestMaxBytes
	}
	if l.QueuedBytes <= 0 {
		l.QueuedBytes = defaultQueuedBytes
	}
	if l.MaxConnections <= 0 {
		l.MaxConnections = math.MaxInt
	}
	if l.MaxConnectionsPerIP == 0 {
		l.MaxConnectionsPerIP = math.MaxInt
	}
	if l.MaxIdle == 0 {
		l.MaxIdle = defaultMaxIdle
	}
	if l.MaxStall <= 0 {
		l.MaxStall = defaultMaxStall
	}
	return l
}

func (l Limits) perIP(ip netip.Addr) int {
	if n, ok := l.PerIPOverrides[ip]; ok {
		return n
	}
	return l.MaxConnectionsPerIP
}

// ClipConnections is max.connections as far as nofile open files allow, when
// reserved of them are needed for other things. Being out of files would keep
// everybody from connecting, and logs from rolling.
func ClipConnections(maxConnections int, nofile uint64, reserved int) int {
	const least = 16
	allowed := least
	// An accepted socket is two files for a moment, while it changes over to its
	// event loop; a paused one likewise.
	if n := int64(min(nofile, math.MaxInt32)) - int64(reserved); n > least {
		allowed = int(n)
	}
	if maxConnections <= 0 {
		return allowed
	}
	return min(maxConnections, allowed)
}
