package network_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/server/network"
)

func TestIdleConnectionsAreClosed(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		now := clock.NewManual(time.Unix(1e9, 0))
		o.Clock = now
		o.Limits.MaxIdle = 10 * time.Minute
		f := start(t, o)
		idle, active, waiting := f.dial(), f.dial(), f.dial()
		idle.ping(1)
		active.ping(1)
		waiting.send(request(keyHeld, 1, nil))
		r := <-f.h.held
		f.settled()
		now.Advance(9 * time.Minute)
		active.ping(2)
		if n := f.Connections(); n != 3 {
			t.Fatalf("%d connections after 9 minutes", n)
		}
		f.settled()
		now.Advance(2 * time.Minute)
		idle.wantClosed()
		active.ping(3)
		r.Complete(answer(r.Frame, nil))
		if corr, _ := waiting.receive(); corr != 1 {
			t.Errorf("response %d", corr)
		}
		f.eventually("only the idle one is gone", func() bool { return f.Connections() == 2 })
	})
}

func TestStalledReaderIsCut(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		now := clock.NewManual(time.Unix(1e9, 0))
		o.Clock = now
		f := start(t, o)
		c := f.dial()
		for corr := range 6 {
			c.send(request(keyLarge, corr, nil))
		}
		f.eventually("responses wait", func() bool { return f.ResponseBytes() > 0 })
		now.Advance(59 * time.Second)
		if n := f.Connections(); n != 1 {
			t.Fatal("cut too early")
		}
		f.eventually("it is cut", func() bool {
			now.Advance(10 * time.Second) // what the sockets took late may have begun the time anew
			return f.Connections() == 0
		})
		if log := f.log.String(); !strings.Contains(log, "the peer has read nothing") {
			t.Errorf("log: %s", log)
		}
	})
}

func TestShutdownFinishesWhatWasAccepted(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		idle, waiting, large := f.dial(), f.dial(), f.dial()
		idle.ping(1)
		waiting.send(request(keyHeld, 1, nil))
		r := <-f.h.held
		large.send(request(keyRegion, 2, nil))
		large.send(request(keyHeld, 3, nil))
		r3 := <-f.h.held
		var g errgroup.Group
		g.Go(func() error { return f.Shutdown(context.Background()) })
		idle.wantClosed()
		f.eventually("connections are refused", func() bool {
			nc, err := net.Dial("tcp", f.Addrs()[0].String())
			if err == nil {
				nc.Close() // the end of a turn may close an idle connection before the listeners are closed
			}
			return err != nil
		})
		waiting.send(request(keyEcho, 9, nil)) // too late: not served
		r.Complete(answer(r.Frame, nil))
		r3.Complete(answer(r3.Frame, nil))
		if corr, _ := waiting.receive(); corr != 1 {
			t.Errorf("response %d", corr)
		}
		waiting.wantClosed()
		if corr, payload := large.receive(); corr != 2 || len(payload) != largeBytes {
			t.Errorf("response %d with %d bytes", corr, len(payload))
		}
		if corr, _ := large.receive(); corr != 3 {
			t.Errorf("response %d", corr)
		}
		large.wantClosed()
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if n := f.h.served.Load(); n != 4 {
			t.Errorf("%d requests were served", n)
		}
	})
}

func TestShutdownDeadlineCutsTheRest(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		c := f.dial()
		c.send(request(keyHeld, 1, nil))
		r := <-f.h.held
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := f.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v", err)
		}
		c.wantClosed()
		r.Complete(answer(r.Frame, nil)) // to nobody
		if err := f.Shutdown(context.Background()); err != nil {
			t.Errorf("second shutdown: %v", err)
		}
	})
}

// TestStuckLoopHoldsUpOnlyItself blocks a handler on one of two loops, as a disk
// that does not answer would.
func TestStuckLoopHoldsUpOnlyItself(t *testing.T) {
	f := start(t, network.Options{Loops: 2})
	stuck, release := make(chan struct{}), make(chan struct{})
	f.h.serve = func(r *network.Request) {
		if binary.BigEndian.Uint16(r.Frame) == keyLarge {
			close(stuck)
			<-release
		}
	}
	clients := make([]client, 8)
	for i := range clients {
		clients[i] = f.dial()
		clients[i].ping(0)
	}
	clients[0].send(request(keyLarge, 1, nil))
	<-stuck
	answered := make(chan client, len(clients))
	var g errgroup.Group
	for _, c := range clients[1:] {
		c.send(request(keyEcho, 2, nil))
		g.Go(func() error {
			_, _, err := readResponse(c)
			answered <- c
			return err
		})
	}
	for range len(clients) / 2 { // those of the other loop
		(<-answered).ping(3)
	}
	if n := len(answered); n > 0 {
		t.Errorf("%d connections of the stuck loop were served", n)
	}
	close(release)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestConnectionsCutInTheMiddle closes clients at any moment: nothing is leaked,
// which the fixture checks, and others are served.
func TestConnectionsCutInTheMiddle(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		var g errgroup.Group
		for i := range 60 {
			g.Go(func() error {
				c := f.dial()
				defer c.Close()
				stream := append(request(keyLater, 0, nil), request(keyMappedRegion, 1, nil)...)
				stream = append(stream, request(keyRegion, 2, nil)...)
				stream = append(stream, request(keyBlocking, 3, make([]byte, 500_000))...)
				if _, err := c.Write(stream[:len(stream)-i*8000]); err != nil {
					return err
				}
				_, err := c.Read(make([]byte, 1+i*1000))
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		f.dial().ping(1)
	})
}

// TestRequestsOfAPeerThatLeftAreServed: a producer with acks=0 closes when it has
// sent, and what it sent must not be lost in the queue for the executor.
func TestRequestsOfAPeerThatLeftAreServed(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		const requests = 20
		f := start(t, o)
		gate, left := make(chan struct{}), make(chan struct{})
		var once sync.Once
		f.h.serve = func(r *network.Request) {
			once.Do(func() { r.Conn.OnClose(func() { close(left) }) })
			if !r.OnLoop() {
				<-gate
			}
		}
		c := f.dial()
		stream := request(keySilentRequeue, 0, nil)
		for i := 1; i < requests; i++ {
			stream = append(stream, request(keySilent, i, make([]byte, 1000))...)
		}
		c.send(stream)
		c.Close()
		if !o.Std { // else one goroutine reads and serves, and is at the gate
			<-left
			if n := f.Connections(); n != 1 {
				t.Errorf("%d connections while requests wait", n)
			}
		}
		close(gate)
		f.eventually("every request is served", func() bool { return f.h.served.Load()-f.h.onLoop.Load() == requests })
		f.eventually("the connection is gone", func() bool { return f.Connections() == 0 })
	})
}

func TestStartFailsWholeAndSeveralListeners(t *testing.T) {
	f := start(t, network.Options{Listeners: []network.Listener{
		{Name: "A", Addr: "localhost:0"}, {Name: "B", Addr: "[::]:0"}, {Name: "C", Addr: ":0"}, {Name: "D", Addr: "0.0.0.0:0", Protocol: "PLAINTEXT"},
	}})
	names := make(chan string, 4)
	f.h.serve = func(r *network.Request) { names <- r.Conn.Listener() }
	for i, a := range f.Addrs() {
		_, port, err := net.SplitHostPort(a.String())
		if err != nil {
			t.Fatal(err)
		}
		nc, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		client{nc, t}.ping(1)
		if got := <-names; got != string("ABCD"[i]) {
			t.Errorf("listener %s served connection %d", got, i)
		}
		nc.Close()
	}
	for _, bad := range []network.Listener{
		{Name: "TAKEN", Addr: f.Addrs()[0].String()}, {Name: "TLS", Addr: ":0", Protocol: "SSL"}, {Name: "BAD", Addr: "nonsense"},
	} {
		s := network.New(network.Options{Handler: newTestHandler(), Listeners: []network.Listener{{Name: "FREE", Addr: "127.0.0.1:0"}, bad}})
		if err := s.Start(); err == nil || !strings.Contains(err.Error(), "listener "+bad.Name) {
			t.Errorf("start with %+v: %v", bad, err)
		}
	}
}

// reset closes a connection so that its peer sees it fail, as when a client is
// killed that has not read all of its answers.
func (c client) reset() {
	c.t.Helper()
	if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		c.t.Fatal(err)
	}
	c.Close()
}

// TestPeersResetWhileTheyWait has clients reset connections that are not read, for
// want of memory or with too many requests under way, before they are read again:
// such a socket has no peer's address any more.
func TestPeersResetWhileTheyWait(t *testing.T) {
	const clients = 20
	t.Run("memory", func(t *testing.T) {
		eachTransport(t, func(t *testing.T, o network.Options) {
			o.Limits = network.Limits{QueuedBytes: 2 << 20, RequestMaxBytes: 4 << 20}
			f := start(t, o)
			holder := f.dial()
			holder.send(request(keySilent, 1, make([]byte, 4<<20-8))[:2<<20])
			f.eventually("half of the frame is there", func() bool { return f.RequestBytes() >= 2<<20 })
			var waiting []client
			for range clients {
				c := f.dial()
				c.send(request(keySilent, 1, make([]byte, 3<<20))[:128<<10])
				waiting = append(waiting, c)
			}
			f.eventually("all wait", func() bool { return f.RequestWaiters() == clients })
			for _, c := range waiting {
				c.reset()
			}
			holder.Close()
			f.eventually("all connections are gone", func() bool { return f.Connections() == 0 })
			f.dial().ping(1)
		})
	})
	t.Run("requests", func(t *testing.T) {
		eachTransport(t, func(t *testing.T, o network.Options) {
			f := start(t, o)
			var full []client
			for range clients {
				c := f.dial()
				c.send(bytes.Repeat(request(keyHeld, 1, nil), network.OutstandingMax+10))
				full = append(full, c)
			}
			f.eventually("all are full", func() bool { return f.h.served.Load() == clients*network.OutstandingMax })
			if !o.Std { // else the turns of the readers go on while they wait
				f.settled()
			}
			for _, c := range full {
				c.reset()
			}
			f.eventually("all connections are gone", func() bool {
				f.dropHeld()
				return f.Connections() == 0
			})
			f.dial().ping(1)
		})
	})
}

// TestPanicsOutsideServeCostTheConnection has the handler panic where the reader
// asks it, and at the end of a connection.
func TestPanicsOutsideServeCostTheConnection(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		c := f.dial()
		c.send(append(request(keyEcho, 1, nil), request(keyPanicClassify, 2, nil)...))
		if corr, _ := c.receive(); corr != 1 {
			t.Errorf("response %d", corr)
		}
		c.wantClosed()
		c = f.dial()
		c.send(request(keyPanicHook, 3, nil))
		c.receive()
		c.Close()
		f.eventually("both connections are gone", func() bool { return f.Connections() == 0 })
		if log := f.log.String(); !strings.Contains(log, "panic in Classify") || !strings.Contains(log, "panic in a hook") {
			t.Errorf("log: %s", log)
		}
		f.dial().ping(4)
	})
}
