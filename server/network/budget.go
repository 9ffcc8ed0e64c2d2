package network

import (
	"slices"
	"sync"
	"sync/atomic"
)

// budget is queued.max.request.bytes: the memory that the requests of all
// connections may hold, from their first byte until they have ended.
//
// Frames that are collected ask first and wait when there is no room, in order
// among those of about their size: large ones would otherwise hold up the others
// with room that is too little for them.
// What a request turns out to need in addition (its decoded form) is added without
// asking, so used may pass the limit; then a connection gets nothing more until
// its own requests have ended or used is below the limit.
//
// One frame at a time may go beyond the limit, whichever waits the longest:
// otherwise partial frames could fill the budget and wait for each other forever.
type budget struct {
	limitBytes int64
	// usedBytes changes under mu and is read without.
	usedBytes atomic.Int64

	mu sync.Mutex
	// overdraft is the connection whose frame may go beyond the limit. While
	// anybody waits it is set, so that somebody always makes progress.
	overdraft *Conn
	// overBytes is the buffer of that frame.
	overBytes int64
	waiters   [sizesOfWaiters][]waiter // in order for each size
	lastTurn  uint64
}

// Sizes of what is waited for.
const (
	waitSmall  = iota // a frame of at most inlineFrameMax
	waitMedium        // at most a thirty-second of the limit: 8 MiB of the default
	waitLarge
	sizesOfWaiters
)

func (b *budget) sizeOf(n int64, small bool) int {
	switch {
	case small:
		return waitSmall
	case n <= b.limitBytes/32:
		return waitMedium
	}
	return waitLarge
}

// waiter is a connection that has stopped reading until it is granted its bytes.
// There is at most one for each connection, so the queue is bounded by
// max.connections.
type waiter struct {
	conn  *Conn
	bytes int64
	turn  uint64 // rises in the order of waiting
}

// fits says whether n bytes are within the limit. An eighth is kept for frames of
// at most inlineFrameMax, so that large ones cannot keep them out, the one beyond
// the limit neither.
func (b *budget) fits(n int64, small bool) bool {
	limit := b.limitBytes
	if small {
		limit += b.overBytes
	} else {
		limit -= limit / 8
	}
	return b.usedBytes.Load()+n <= limit
}

// full says that a connection may have no more than one request at a time.
func (b *budget) full() bool { return b.usedBytes.Load() >= b.limitBytes }

// halfFree says that no more than half of the limit is used.
func (b *budget) halfFree() bool { return b.usedBytes.Load() <= b.limitBytes/2 }

// acquire takes n bytes for a frame of c. holdsOver says that this frame is
// already beyond the limit; over that it is now. Without room it queues c, whose
// granted will be called, unless wait is false.
func (b *budget) acquire(c *Conn, n int, small, holdsOver, wait bool) (ok, over bool) {
	need, size := int64(n), b.sizeOf(int64(n), small)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case holdsOver:
		over = true
	case b.fits(need, small) && (small || len(b.waiters[size]) == 0):
	case b.overdraft == nil:
		b.overdraft, over = c, true
	default:
		if wait {
			b.lastTurn++
			b.waiters[size] = append(b.waiters[size], waiter{c, need, b.lastTurn})
		}
		return false, false
	}
	b.usedBytes.Add(need)
	if over {
		b.overBytes = need
	}
	return true, over
}

// add takes n bytes without asking.
func (b *budget) add(n int) {
	b.mu.Lock()
	b.usedBytes.Add(int64(n))
	b.mu.Unlock()
}

// release gives n bytes back, and the permission to be beyond the limit when over,
// and admits who waits.
func (b *budget) release(n int, over bool) {
	b.mu.Lock()
	b.usedBytes.Add(-int64(n))
	if over {
		b.overdraft, b.overBytes = nil, 0
	}
	var admitted []waiter
	var overdrawn *Conn
	for {
		w, ok := b.nextLocked()
		if !ok {
			w, ok = b.oldestLocked()
			if !ok || b.overdraft != nil {
				break
			}
			b.overdraft, b.overBytes, overdrawn = w.conn, w.bytes, w.conn
		}
		b.usedBytes.Add(w.bytes)
		b.popLocked(w)
		admitted = append(admitted, w)
	}
	b.mu.Unlock()
	for _, w := range admitted {
		w.conn.granted(int(w.bytes), w.conn == overdrawn)
	}
}

// nextLocked is a waiter for whom there is room, if there is one whose turn it is.
func (b *budget) nextLocked() (waiter, bool) {
	for size, ws := range b.waiters {
		if len(ws) > 0 && b.fits(ws[0].bytes, size == waitSmall) {
			return ws[0], true
		}
	}
	return waiter{}, false
}

// oldestLocked is who has waited longest.
func (b *budget) oldestLocked() (oldest waiter, ok bool) {
	for _, ws := range b.waiters {
		if len(ws) > 0 && (!ok || ws[0].turn < oldest.turn) {
			oldest, ok = ws[0], true
		}
	}
	return oldest, ok
}

// popLocked takes w, the first of its size, off its queue.
func (b *budget) popLocked(w waiter) {
	for size, ws := range b.waiters {
		if len(ws) > 0 && ws[0] == w {
			ws[0] = waiter{}
			b.waiters[size] = ws[1:]
		}
	}
}

// forget removes a closed connection from the queue.
func (b *budget) forget(c *Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for size, ws := range b.waiters {
		b.waiters[size] = slices.DeleteFunc(ws, func(w waiter) bool { return w.conn == c })
	}
}

// waiting is the number of connections that wait for memory.
func (b *budget) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, ws := range b.waiters {
		n += len(ws)
	}
	return n
}
