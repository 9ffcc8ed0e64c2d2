package network

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/memnet"
)

// countingLink takes every byte at once, on a goroutine of the writer's own.
type countingLink struct {
	nullLink
	c    *Conn
	sent atomic.Int64
}

func (l *countingLink) drain(bool) {
	go func() {
		for l.c.drainSome() {
		}
	}()
}

func (l *countingLink) write(bufs [][]byte) (n int, err error) {
	for _, b := range bufs {
		n += len(b)
	}
	l.sent.Add(int64(n))
	return n, nil
}

// TestNothingIsLeftInTheQueue adds to the queue at the moment when the writer finds
// it empty.
func TestNothingIsLeftInTheQueue(t *testing.T) {
	s := New(Options{Handler: &recorder{}})
	c := &Conn{srv: s, listener: &listener{}, remote: memnet.Addr("x:1"), local: memnet.Addr("y:1")}
	l := &countingLink{c: c}
	c.link = l
	const patience = time.Minute // for each: a busy machine is no fault
	enough := time.Now().Add(10 * time.Second)
	for n := int64(0); n < 100_000 && time.Now().Before(enough); n++ {
		c.mu.Lock()
		c.enqueueLocked([]outItem{{data: []byte("x")}})
		c.mu.Unlock()
		c.kick(false)
		for began := time.Now(); l.sent.Load() <= n; {
			if time.Since(began) > patience {
				t.Fatalf("response %d was left in the queue", n)
			}
			runtime.Gosched()
		}
	}
}

// fullLink is a socket without room, whose loop has no time to close it.
type fullLink struct {
	nullLink
	c      *Conn
	closes int
}

func (l *fullLink) drain(bool) {
	for l.c.drainSome() {
	}
}

func (*fullLink) write([][]byte) (int, error) { return 0, errAgain }

func (l *fullLink) close() { l.closes++ }

// TestSlowReaderIsCutAtOnce has many connections leave a response each, faster than
// their loop closes those that hold too much.
func TestSlowReaderIsCutAtOnce(t *testing.T) {
	const limit, each, conns = 10 << 20, 4 << 20, 50
	s := New(Options{Handler: &recorder{}, Limits: Limits{QueuedBytes: limit}})
	answer := func(c *Conn) {
		c.mu.Lock()
		r := &Request{Conn: c, done: true, items: []outItem{{data: make([]byte, each)}}}
		c.outstanding.Add(1)
		c.slotHead, c.slotTail = r, r
		dropped := c.popLocked()
		c.mu.Unlock()
		releaseItems(dropped)
		c.kick(false)
	}
	cut := 0
	for range conns {
		c := &Conn{srv: s, listener: &listener{}, remote: memnet.Addr("x:1"), local: memnet.Addr("y:1")}
		l := &fullLink{c: c}
		c.link = l
		s.conns[c] = struct{}{}
		answer(c)
		answer(c) // to nobody, where the first was too much
		cut += l.closes
		if held := s.outHeapBytes.Load(); held > limit+each {
			t.Fatalf("%d bytes of responses are held", held)
		}
		if l.closes == 1 && (c.life.kind != closedMemory || c.out.list != nil) {
			t.Fatalf("closed as %q, with a queue: %v", c.life.kind, c.out.list != nil)
		}
	}
	if cut < conns-limit/each {
		t.Errorf("%d of %d connections were cut", cut, conns)
	}
	s.outHeapBytes.Add(limit)
	c := &Conn{srv: s, listener: &listener{}}
	l := &fullLink{c: c}
	c.link = l
	c.mu.Lock()
	c.enqueueLocked([]outItem{{data: make([]byte, 1000)}})
	c.mu.Unlock()
	if c.kick(false); l.closes > 0 || !c.out.armed {
		t.Error("a connection was cut that holds next to nothing")
	}
}

// TestSentIsCalledOnce sends responses whole and in parts, drops one, and has one that
// is empty.
func TestSentIsCalledOnce(t *testing.T) {
	calls := 0
	resp := func(pieces ...string) Response {
		r := Response{Sent: func() { calls++ }}
		for _, p := range pieces {
			r.Segs = append(r.Segs, Seg{Bytes: []byte(p)})
		}
		return r
	}
	s := New(Options{Handler: &recorder{}})
	c := &Conn{srv: s, listener: &listener{}, link: nullLink{}}
	add := func(r Response) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.enqueueLocked(c.appendItems(nil, r))
	}
	wrote := func(n, want int) {
		t.Helper()
		c.mu.Lock()
		done := c.advanceLocked(n)
		c.mu.Unlock()
		if releaseItems(done); calls != want {
			t.Errorf("%d calls, want %d", calls, want)
		}
	}
	add(resp("one", "two"))
	add(resp("three"))
	wrote(3, 0)
	wrote(2, 0)
	wrote(1, 1)
	wrote(4, 1)
	c.mu.Lock()
	list := c.takeOutLocked()
	c.mu.Unlock()
	if list.release(); calls != 2 {
		t.Errorf("%d calls with a dropped queue", calls)
	}
	if resp("never queued").release(); calls != 3 {
		t.Errorf("%d calls with a dropped response", calls)
	}
	if add(resp()); calls != 4 {
		t.Errorf("%d calls with an empty response", calls)
	}
}
