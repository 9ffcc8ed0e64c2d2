package network

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// outItem is a piece of a response on its way out.
type outItem struct {
	// data is what can be sent now: heap bytes, mapped bytes, or a chunk that was
	// read from an unmapped region.
	data   []byte
	region Region
	// readOff and unread are where the next chunk of an unmapped region starts
	// and how much of it has not been read.
	readOff, unread int
	chunk           []byte
	// sent is Response.Sent, at the last item of a response.
	sent func()
}

func (it *outItem) sizeBytes() int { return len(it.data) + it.unread }

// heapBytes is what the item holds in memory of our own.
func (it *outItem) heapBytes() int {
	if it.region == nil {
		return len(it.data)
	}
	return cap(it.chunk)
}

func (it *outItem) release() {
	if it.chunk != nil {
		putBuffer(it.chunk)
	}
	if it.region != nil {
		it.region.Release()
	}
	if it.sent != nil {
		it.sent()
	}
	*it = outItem{}
}

func releaseItems(items []outItem) {
	for i := range items {
		items[i].release()
	}
}

// outList is a reusable list of items: the responses of one turn, then the
// connection's out-queue.
type outList struct {
	items []outItem
	head  int
}

var outLists = sync.Pool{New: func() any { return new(outList) }}

// keptItems bounds what a reused list holds on to.
const keptItems = 256

func (l *outList) recycle() {
	clear(l.items)
	if cap(l.items) <= keptItems {
		l.items, l.head = l.items[:0], 0
		outLists.Put(l)
	}
}

// release gives up all items that have not been sent.
func (l *outList) release() {
	if l != nil {
		releaseItems(l.items[l.head:])
		l.recycle()
	}
}

// turn collects the responses that are ready while the reader handles one piece of
// input, so that they leave in one system call.
type turn struct {
	list  *outList
	bytes int
}

func (t *turn) add(c *Conn, resp Response) {
	if t.list == nil {
		t.list = outLists.Get().(*outList)
	}
	before := len(t.list.items)
	t.list.items = c.appendItems(t.list.items, resp)
	for i := before; i < len(t.list.items); i++ {
		t.bytes += t.list.items[i].sizeBytes()
	}
}

// outQueue holds what could not be sent yet, by reference and in order. Under
// Conn.mu.
type outQueue struct {
	list *outList
	// writing says that some goroutine is sending: everyone else only appends.
	writing bool
	// armed says that the socket was full and its poller will call writable.
	armed bool
	// busy counts the calls on the socket that are under way; idle is closed when
	// there are none left, made by whoever is about to take the socket away.
	busy int
	idle chan struct{}
	// heapBytes is what the items hold of our memory.
	heapBytes int
}

// appendItems prepares a response for the out-queue; empty pieces are dropped.
func (c *Conn) appendItems(items []outItem, resp Response) []outItem {
	before := len(items)
	for _, s := range resp.Segs {
		if s.Region == nil {
			if len(s.Bytes) > 0 {
				items = append(items, outItem{data: s.Bytes})
			}
			continue
		}
		n := s.Region.Len()
		if n == 0 {
			s.Region.Release()
			continue
		}
		it := outItem{region: s.Region, unread: n}
		if c.link.sendsMapped() {
			if b := s.Region.Bytes(); b != nil {
				it.data, it.unread = b[:n], 0
			}
		}
		items = append(items, it)
	}
	switch {
	case resp.Sent == nil:
	case len(items) > before:
		items[len(items)-1].sent = resp.Sent
	default:
		resp.Sent()
	}
	return items
}

func (c *Conn) enqueueLocked(items []outItem) {
	if len(items) == 0 {
		return
	}
	if c.out.list == nil {
		c.out.list = outLists.Get().(*outList)
	}
	c.out.list.items = append(c.out.list.items, items...)
	c.countOutLocked(items)
}

func (c *Conn) countOutLocked(items []outItem) {
	heap, total := 0, 0
	for i := range items {
		heap += items[i].heapBytes()
		total += items[i].sizeBytes()
	}
	if c.pendingOut.Load() == 0 {
		// The time without progress starts now; before the count, for the sweep.
		c.lastOutMs.Store(c.srv.nowMs())
	}
	c.pendingOut.Add(int64(total))
	c.addHeapLocked(heap)
}

func (c *Conn) addHeapLocked(n int) {
	c.out.heapBytes += n
	c.srv.outHeapBytes.Add(int64(n))
}

// flush sends the responses of this turn. Reader only.
func (c *Conn) flush() {
	t := &c.turn
	if t.list == nil {
		return
	}
	l := t.list
	t.list, t.bytes = nil, 0
	c.mu.Lock()
	switch {
	case c.life.closed || c.life.hangup:
		c.mu.Unlock()
		l.release()
		return
	case c.out.list == nil:
		c.out.list = l
		c.countOutLocked(l.items)
		l = nil
	default:
		c.enqueueLocked(l.items)
	}
	c.mu.Unlock()
	if l != nil {
		l.recycle()
	}
	c.kick(true)
}

// kick sends what is queued unless somebody does already, and looks at what the
// connection may do next. Any goroutine; only the reader of a blocking connection
// may be blocked by it.
func (c *Conn) kick(reader bool) {
	if c.beginWrite() {
		c.link.drain(reader)
	}
	c.recheck()
}

func (c *Conn) beginWrite() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.writing || c.out.armed || c.out.list == nil || c.life.closed {
		return false
	}
	c.out.writing = true
	return true
}

// iovMax pieces go into one system call: far below the kernel's 1024, and more
// than the pipelined requests of usual clients.
const iovMax = 64

// drainSliceBytes is how much one call of drainSome sends before it lets its
// goroutine do something else.
const drainSliceBytes = 1 << 20

// errAgain is a write that would block.
var errAgain = errors.New("the socket is full")

// drainSome is the writer: it sends until the queue is empty, the socket is full,
// the connection has closed (false), or drainSliceBytes are out (true: the caller
// is still the writer and must go on, here or elsewhere).
func (c *Conn) drainSome() (more bool) {
	var space [iovMax][]byte
	for sent := 0; sent < drainSliceBytes; {
		bufs, ok := c.nextWrite(space[:0])
		if !ok {
			return false
		}
		if len(bufs) == 0 {
			if err := c.loadChunk(); err != nil {
				c.failWrite()
				c.Close(err.Error())
				return false
			}
			continue
		}
		n, err := c.link.write(bufs)
		sent += n
		if err == errAgain {
			if err = c.waitWritable(n); err == nil {
				return false
			}
		} else {
			c.wrote(n)
		}
		if err != nil {
			c.failWrite()
			c.shut(closedError, "write: "+err.Error())
			return false
		}
	}
	return true
}

// nextWrite gathers what can be sent in one call and marks the socket busy. No
// pieces and true: the first item needs a chunk from its file. False: the caller
// is no longer the writer.
func (c *Conn) nextWrite(bufs [][]byte) ([][]byte, bool) {
	c.mu.Lock()
	l := c.out.list
	if c.life.closed || l == nil {
		l = c.endWriteLocked()
		c.mu.Unlock()
		l.release()
		return nil, false
	}
	defer c.mu.Unlock()
	for i := l.head; i < len(l.items) && len(bufs) < cap(bufs); i++ {
		it := &l.items[i]
		if len(it.data) == 0 {
			break
		}
		bufs = append(bufs, it.data)
		if it.unread > 0 {
			break
		}
	}
	if len(bufs) > 0 {
		c.out.busy++
	}
	return bufs, true
}

// loadChunk reads the next chunk of the unmapped region at the head of the queue.
// Only the writer calls it, so the item stays where it is.
func (c *Conn) loadChunk() error {
	c.mu.Lock()
	it := c.out.list.items[c.out.list.head]
	c.mu.Unlock()
	chunk := it.chunk
	if chunk == nil {
		chunk = getBuffer(min(chunkBytes, it.unread))
	}
	n := min(cap(chunk), it.unread)
	if got, err := it.region.ReadAt(chunk[:n], int64(it.readOff)); got < n {
		if it.chunk == nil {
			putBuffer(chunk)
		}
		return fmt.Errorf("read %d bytes for a response: %w", n, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	head := &c.out.list.items[c.out.list.head]
	if head.chunk == nil {
		head.chunk = chunk
		c.addHeapLocked(cap(chunk))
	}
	head.data, head.readOff, head.unread = chunk[:n], head.readOff+n, head.unread-n
	return nil
}

// wrote takes n sent bytes off the queue.
func (c *Conn) wrote(n int) {
	c.mu.Lock()
	done := c.advanceLocked(n)
	c.notBusyLocked()
	c.mu.Unlock()
	releaseItems(done)
}

// waitWritable takes n bytes off the queue and has the poller call writable, or
// cuts the connection when too much waits for slow readers, of which it is one. The
// socket stays busy meanwhile, so that it cannot be closed under the call.
func (c *Conn) waitWritable(n int) error {
	share := c.srv.answerShare()
	c.mu.Lock()
	done := c.advanceLocked(n)
	if int64(c.out.heapBytes) > share {
		c.mu.Unlock()
		releaseItems(done)
		c.cutSlowReader()
		return nil
	}
	c.out.armed, c.out.writing = true, false
	c.mu.Unlock()
	releaseItems(done)
	err := c.link.arm()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notBusyLocked()
	if err != nil {
		c.out.armed, c.out.writing = false, true
	}
	return err
}

// answerShare is how much of the memory for answers one connection may hold without
// being cut at once: anything, until all together hold too much; then what would be
// half of it if all held as much. So it is never those that a client with a short
// answer, or one out of the page cache, is cut for.
func (s *Server) answerShare() int64 {
	if s.outHeapBytes.Load() <= s.limits.QueuedBytes {
		return math.MaxInt64
	}
	return s.limits.QueuedBytes / 2 / int64(max(1, s.Connections()))
}

// cutSlowReader gives up what the connection holds at once, and what is answered
// later: its loop, which closes it, may serve others first.
func (c *Conn) cutSlowReader() {
	c.mu.Lock()
	c.out.writing = false
	list := c.takeOutLocked()
	first := c.beginShutLocked(closedMemory, "slow reader")
	c.life.hangup = true
	c.notBusyLocked()
	c.mu.Unlock()
	list.release()
	c.srv.log.Warn("closing connection", "peer", c.peer(), "listener", c.listener.name,
		"reason", "too many response bytes wait for slow readers")
	if first {
		c.endShut()
	}
}

// writable is called by the poller.
func (c *Conn) writable() {
	c.mu.Lock()
	c.out.armed = false
	c.mu.Unlock()
	c.kick(false)
}

// endWriteLocked gives up the writer's role. It must be one step with finding the
// queue empty: whoever adds to it meanwhile relies on the writer. The writer of a
// closed connection releases the queue, because it may have been reading from it.
func (c *Conn) endWriteLocked() *outList {
	c.out.writing = false
	if !c.life.closed {
		return nil
	}
	return c.takeOutLocked()
}

// failWrite ends a writer that cannot go on.
func (c *Conn) failWrite() {
	c.mu.Lock()
	list := c.endWriteLocked()
	c.mu.Unlock()
	list.release()
}

// takeOutLocked empties the queue of a closed connection.
func (c *Conn) takeOutLocked() *outList {
	list := c.out.list
	c.out.list = nil
	c.addHeapLocked(-c.out.heapBytes)
	return list
}

// advanceLocked removes n sent bytes; it returns the items that are finished, to be
// released outside the lock.
func (c *Conn) advanceLocked(n int) (done []outItem) {
	l := c.out.list
	if n <= 0 || l == nil {
		return nil
	}
	c.pendingOut.Add(int64(-n))
	c.srv.metrics.bytesOut.Add(int64(n))
	c.lastOutMs.Store(c.srv.nowMs())
	for n > 0 {
		it := &l.items[l.head]
		k := min(n, len(it.data))
		if it.region == nil {
			c.addHeapLocked(-k)
		}
		it.data, n = it.data[k:], n-k
		if len(it.data) > 0 || it.unread > 0 {
			continue
		}
		c.addHeapLocked(-it.heapBytes())
		if it.region != nil || it.sent != nil {
			done = append(done, *it)
		}
		*it = outItem{}
		l.head++
	}
	if l.head == len(l.items) {
		c.out.list = nil
		l.recycle()
	}
	return done
}

func (c *Conn) notBusyLocked() {
	c.out.busy--
	if c.out.busy == 0 && c.out.idle != nil {
		close(c.out.idle)
		c.out.idle = nil
	}
}
