package network_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/server/network"
)

// TestFramesTheBrokerDoesNotReadAreNotSlow has a loop stand still, as a disk that does
// not answer makes it, while others wait for memory: what its clients have sent
// meanwhile lies in the system, and they are not cut for it.
func TestFramesTheBrokerDoesNotReadAreNotSlow(t *testing.T) {
	const frame = 4 << 20
	now := clock.NewManual(time.Unix(1e9, 0))
	f := start(t, network.Options{Loops: 1, Clock: now, Limits: network.Limits{QueuedBytes: 2 << 20, RequestMaxBytes: frame}})
	stuck, release := make(chan struct{}), make(chan struct{})
	f.h.serve = func(r *network.Request) {
		if binary.BigEndian.Uint16(r.Frame) == keyLarge {
			close(stuck)
			<-release
		}
	}
	honest, waiting, blocks := f.dial(), f.dial(), f.dial()
	stream := request(keyEcho, 1, make([]byte, frame-8))
	honest.send(stream[:frame/2])
	f.eventually("half of the frame is there", func() bool { return f.ReceivedBytes() == frame/2 })
	var g errgroup.Group
	g.Go(func() error {
		_, err := waiting.Write(request(keySilent, 1, make([]byte, 3<<20)))
		return err
	})
	f.eventually("the other waits", func() bool { return f.RequestWaiters() == 1 })
	blocks.send(request(keyLarge, 1, nil))
	<-stuck
	g.Go(func() error {
		_, err := honest.Write(stream[frame/2:])
		return err
	})
	f.eventually("some of it has arrived", func() bool { return f.UnreadInputs() == 2 })
	for range 10 {
		now.Advance(time.Second)
	}
	if log := f.log.String(); strings.Contains(log, "too slowly") {
		t.Errorf("log: %s", log)
	}
	close(release)
	if corr, got := honest.receive(); corr != 1 || len(got) != frame-8 {
		t.Errorf("response %d of %d bytes", corr, len(got))
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}
