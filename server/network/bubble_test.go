package network_test

import (
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
		h := newTestHandler()
		s := network.New(network.Options{Handler: h})
		mem := memnet.New()
		l, err := mem.Listen("broker:9092")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- s.Serve(l, "MEM") }()
		dial := func() client {
			nc, err := mem.Dialer("client")(t.Context(), "tcp", "broker:9092")
			if err != nil {
				t.Fatal(err)
			}
			return client{nc, t}
		}
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
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := h.regions.Load(); n != 0 {
			t.Errorf("%d regions are held", n)
		}
	})
}
