package network

import (
	"slices"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/memnet"
)

// TestFullConnectionsKeepNoGrant has a connection be full once its turn for memory has
// come: what it was granted, and to be beyond the limit, goes to who waits.
func TestFullConnectionsKeepNoGrant(t *testing.T) {
	const limit = 1 << 20
	s := New(Options{Handler: &recorder{}, Limits: Limits{QueuedBytes: limit}})
	b := &s.budget
	conn := func() *Conn { return &Conn{srv: s, listener: &listener{}, link: nullLink{}} }
	full, next := conn(), conn()
	b.add(limit)
	if ok, over := b.acquire(conn(), 1000, true, false, true); !ok || !over {
		t.Fatalf("the first: %v, beyond the limit %v", ok, over)
	}
	for _, c := range []*Conn{full, next} {
		if ok, _ := b.acquire(c, 4000, true, false, true); ok {
			t.Fatal("granted at once")
		}
	}
	b.release(1000, true)
	full.outstanding.Store(outstandingMax)
	if !full.pauseWhenFull() {
		t.Fatal("not full")
	}
	if n, over := next.takeGrant(); n != 4000 || !over {
		t.Errorf("the next was granted %d bytes, beyond the limit %v", n, over)
	}
	if got := b.usedBytes.Load(); got != limit+4000 {
		t.Errorf("%d bytes are used", got)
	}
}

// TestBudgetAdmitsWhatFits has requests of several sizes wait: each goes as soon as
// there is room for it and its turn among those of its size has come, and whoever
// waits longest is always let in at last.
func TestBudgetAdmitsWhatFits(t *testing.T) {
	const mib = 1 << 20
	s := New(Options{Handler: &recorder{}, Limits: Limits{QueuedBytes: 256 * mib}})
	b := &s.budget
	var waiting []*Conn
	ask := func(n int) *Conn {
		t.Helper()
		c := &Conn{srv: s, listener: &listener{}, remote: memnet.Addr("x:1"), local: memnet.Addr("y:1"), link: nullLink{}}
		if ok, _ := b.acquire(c, n, n <= inlineFrameMax, false, true); ok {
			t.Fatalf("%d bytes were granted at once", n)
		}
		waiting = append(waiting, c)
		return c
	}
	var got []int
	release := func(n int, over bool, want ...*Conn) {
		t.Helper()
		b.release(n, over)
		got = got[:0]
		for i, c := range waiting {
			if n, _ := c.takeGrant(); n > 0 {
				got = append(got, i)
			}
		}
		var indexes []int
		for _, c := range want {
			indexes = append(indexes, slices.Index(waiting, c))
		}
		if !slices.Equal(got, indexes) {
			t.Errorf("%v were let in, want %v", got, indexes)
		}
	}
	holder := &Conn{srv: s, link: nullLink{}}
	if ok, over := b.acquire(holder, 256*mib, false, false, true); !ok || !over {
		t.Fatalf("the first: %v, beyond the limit %v", ok, over)
	}
	large1, large2 := ask(80*mib), ask(80*mib)
	medium1, medium2 := ask(2*mib), ask(1*mib)
	if ok, _ := b.acquire(holder, 1000, true, false, true); !ok {
		t.Error("a small one waits for the one beyond the limit")
	}
	b.add(256 * mib)
	small := ask(1000)
	release(256*mib, false, small)
	release(32*mib+2000, false) // not yet what medium1 needs, and the others of its size wait behind it
	release(2*mib, false, medium1)
	release(0, true, large1)        // beyond the limit
	release(81*mib, false, medium2) // large1 is beyond by as much
	b.forget(large2)
	large3 := ask(80 * mib)
	release(80*mib, true, large3)
	if n := b.waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
}
