package network_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/memnet"
	"github.com/barnabas-mq/barnabas/server/network"
)

// TestServeInABubble serves an in-memory network under virtual time: everything
// that waits must wait in a way that testing/synctest can see.
func TestServeInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s, mem, dial := serveMem(t, network.Limits{})
		start := time.Now()
		c, slow := dial(), dial()
		c.ping(1)
		for corr := range 3 {
			slow.send(request(keyRegion, corr, nil))
		}
		c.wantClosed() // idle for ten minutes
		if d := time.Since(start); d < 10*time.Minute || d > 11*time.Minute {
			t.Errorf("an idle connection was closed after %v", d)
		}
		synctest.Wait()
		if n := s.Connections(); n != 0 {
			t.Errorf("%d connections: the slow reader should be gone after a minute", n)
		}
		mem.Cut("client", "broker")
		go func() { dial().ping(2) }()
		time.Sleep(time.Hour)
		mem.Heal("client", "broker")
		synctest.Wait()
		if n := h.served.Load(); n != 3 { // two pings and one region; the others waited for the reader
			t.Errorf("%d requests were served", n)
		}
	})
}

// serveMem serves "broker:9092" of an in-memory network until the test ends.
func serveMem(t *testing.T, l network.Limits) (*testHandler, *network.Server, *memnet.Network, func() client) {
	t.Helper()
	h := newTestHandler()
	s := network.New(network.Options{Handler: h, Limits: l})
	mem := memnet.New()
	nl, err := mem.Listen("broker:9092")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Serve(nl, "MEM") }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx) // connections that are still open are cut
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := h.regions.Load(); n != 0 || s.Connections() != 0 || s.ResponseBytes() != 0 || s.RequestBytes() != 0 {
			t.Errorf("%d regions, %d connections, %d and %d bytes are held", n, s.Connections(), s.ResponseBytes(), s.RequestBytes())
		}
	})
	return h, s, mem, func() client {
		nc, err := mem.Dialer("client")(t.Context(), "tcp", "broker:9092")
		if err != nil {
			t.Fatal(err)
		}
		return client{nc, t}
	}
}

// TestSlowReadersGoFirstWhenMemoryIsShort: without that they have a minute.
func TestSlowReadersGoFirstWhenMemoryIsShort(t *testing.T) {
	for limit, want := range map[int64]time.Duration{1 << 20: 10 * time.Second, 64 << 20: 65 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			_, _, _, dial := serveMem(t, network.Limits{QueuedBytes: limit})
			start := time.Now()
			c := dial()
			closed := make(chan struct{})
			c.send(request(keyEcho, 1, nil))
			c.receive()
			c.send(request(keyLarge, 2, nil))
			go func() { // a peer that only writes learns of the end from its writes
				defer close(closed)
				for err := error(nil); err == nil; {
					_, err = c.Write(make([]byte, 1))
					time.Sleep(100 * time.Millisecond)
				}
			}()
			<-closed
			if d := time.Since(start); d < want-5*time.Second || d > want+time.Second {
				t.Errorf("with %d bytes, it was cut after %v, want about %v", limit, d, want)
			}
		})
	}
}

// TestShortAnswersAreNotCutForLongOnes has a client stand still with a short answer
// unread, as a collector of garbage makes it, while others hold too much.
func TestShortAnswersAreNotCutForLongOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, _, dial := serveMem(t, network.Limits{QueuedBytes: 1 << 20})
		honest, greedy := dial(), dial()
		payload := make([]byte, 100<<10)
		honest.send(request(keyEcho, 1, payload))
		greedy.send(request(keyLarge, 1, nil))
		time.Sleep(20 * time.Second)
		if n := s.Connections(); n != 1 {
			t.Errorf("%d connections, the greedy one should be gone", n)
		}
		if corr, got := honest.receive(); corr != 1 || len(got) != len(payload) {
			t.Errorf("answer %d of %d bytes", corr, len(got))
		}
	})
}

// TestSlowReaderThatReadsIsLeftAlone reads a large response for minutes.
func TestSlowReaderThatReadsIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, _, dial := serveMem(t, network.Limits{})
		c := dial()
		c.send(request(keyLarge, 2, nil))
		got := 0
		for buf := make([]byte, 64<<10); got < largeBytes+8; time.Sleep(20 * time.Second) {
			n, err := c.Read(buf)
			if err != nil {
				t.Fatalf("after %d bytes: %v", got, err)
			}
			got += n
		}
	})
}
