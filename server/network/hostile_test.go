package network_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/memnet"
	"github.com/barnabas-mq/barnabas/server/network"
)

func TestBadFramesCloseTheConnectionWithOneLine(t *testing.T) {
	cases := []struct{ name, bytes, log string }{
		{"negative", "\xff\xff\xff\xff", "invalid request length -1"},
		{"zero", "\x00\x00\x00\x00", "invalid request length 0"},
		{"shorter than a header", "\x00\x00\x00\x07abcdefg", "invalid request length 7"},
		{"beyond the limit", "\x06\x40\x00\x01", "request of 104857601 bytes is larger than the limit of 104857600"},
		{"beyond the API's limit", "\x00\x00\x03\xe9\x00\x0b\x00\x00\x00\x00\x00\x00", "request of 1001 bytes is larger than the limit of 1000"},
		{"HTTP", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "the peer speaks HTTP"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01", "the peer speaks TLS"},
		{"garbage", strings.Repeat("\x80garbage", 10_000), "invalid request length"},
	}
	eachTransport(t, func(t *testing.T, o network.Options) {
		for _, tc := range cases {
			f := start(t, o)
			other := f.dial()
			other.ping(1)
			c := f.dial()
			c.send(append(request(keyEcho, 1, nil), tc.bytes...))
			if corr, _ := c.receive(); corr != 1 {
				t.Errorf("%s: the request before was not answered", tc.name)
			}
			c.wantClosed()
			log := f.log.String()
			if strings.Count(log, "\n") != 1 || !strings.Contains(log, tc.log) || !strings.Contains(log, c.LocalAddr().String()) {
				t.Errorf("%s: log: %s", tc.name, log)
			}
			if n := f.h.served.Load(); n != 2 {
				t.Errorf("%s: %d requests were served", tc.name, n)
			}
			other.ping(2)
		}
	})
}

func TestLargestFrameIsServed(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		o.Limits.RequestMaxBytes = 20 << 20
		f := start(t, o)
		c := f.dial()
		payload := bytes.Repeat([]byte("barnabas"), (20<<20-8)/8)
		var g errgroup.Group
		g.Go(func() error {
			_, err := c.Write(request(keyEcho, 1, payload))
			return err
		})
		if _, got := c.receive(); !bytes.Equal(got, payload) {
			t.Errorf("got %d bytes", len(got))
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAnnouncedLengthCostsNothing has many connections announce the largest frame
// and send little of it.
func TestAnnouncedLengthCostsNothing(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		const conns, sent = 200, 3000
		head := binary.BigEndian.AppendUint32(nil, 100<<20)
		for range conns {
			f.dial().send(append(head, make([]byte, sent)...))
		}
		f.eventually("all bytes are held", func() bool { return f.RequestBytes() >= conns*sent })
		if got := f.RequestBytes(); got > conns*4*(sent+8) {
			t.Errorf("%d bytes are held for %d", got, conns*sent)
		}
		f.dial().ping(1)
	})
}

// TestBudgetBoundsAllFrames fills the memory budget with partial frames. Memory
// stays within the budget and one frame, small requests are served meanwhile, and
// in the end every frame is.
func TestBudgetBoundsAllFrames(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		const budget, frame, conns = 8 << 20, 3 << 20, 12
		o.Limits = network.Limits{QueuedBytes: budget, RequestMaxBytes: frame}
		f := start(t, o)
		payload := make([]byte, frame-8)
		// What is read beyond the budget: the pieces that loops had in hand.
		const bound = budget + frame + frame/4 + conns*64<<10
		var peak atomic.Int64
		f.h.serve = func(*network.Request) {
			for now := f.RequestBytes(); now > peak.Load(); {
				peak.Store(now)
			}
		}
		var g errgroup.Group
		clients, begun := make([]client, conns), make([]chan struct{}, conns)
		for i := range clients {
			clients[i] = f.dial()
			begun[i] = make(chan struct{})
			g.Go(func() error {
				defer close(begun[i])
				_, err := clients[i].Write(request(keySilent, i, payload)[:2<<20])
				return err
			})
		}
		f.eventually("connections wait for memory", func() bool { return f.RequestWaiters() >= conns/2 })
		if got := f.RequestBytes(); got > bound {
			t.Errorf("%d bytes are held, %d are allowed", got, bound)
		}
		f.dial().ping(1)
		served := f.h.served.Load()
		for i := range clients {
			g.Go(func() error {
				<-begun[i] // the first part may still be on its way
				_, err := clients[i].Write(request(keySilent, i, payload)[2<<20:])
				return err
			})
		}
		f.eventually("all frames are served", func() bool { return f.h.served.Load() == served+conns })
		if peak.Load() > bound {
			t.Errorf("%d bytes were held, %d are allowed", peak.Load(), bound)
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, c := range clients {
			c.ping(1)
		}
	})
}

// TestStarvingFrameIsCut has a client hold memory that others wait for.
func TestStarvingFrameIsCut(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		now := clock.NewManual(time.Unix(1e9, 0))
		o.Clock = now
		o.Limits = network.Limits{QueuedBytes: 2 << 20, RequestMaxBytes: 4 << 20}
		f := start(t, o)
		stalled := f.dial()
		stalled.send(request(keyEcho, 1, make([]byte, 4<<20-8))[:2<<20])
		f.eventually("half of the frame is there", func() bool { return f.ReceivedBytes() == 2<<20 }) // what comes later is progress
		waiting := f.dial()
		var g errgroup.Group
		g.Go(func() error {
			_, err := waiting.Write(request(keySilent, 1, make([]byte, 3<<20)))
			return err
		})
		f.eventually("the other waits", func() bool { return f.RequestWaiters() == 1 })
		now.Advance(2 * time.Second)
		if n := f.Connections(); n != 2 {
			t.Fatalf("%d connections before the time is up", n)
		}
		now.Advance(time.Second)
		stalled.wantClosed()
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		waiting.ping(2)
		if log := f.log.String(); !strings.Contains(log, "other requests wait for the memory") {
			t.Errorf("log: %s", log)
		}
	})
}

// TestFramesThatOthersWaitForMustComeOn has a frame of 4 MiB come on by so much a
// second, while another request waits for its memory or not.
func TestFramesThatOthersWaitForMustComeOn(t *testing.T) {
	const frame = 4 << 20
	for _, tc := range []struct {
		name           string
		bytesPerSecond int
		wait           bool
		maxSeconds     int // until it is whole or cut
		cut            bool
	}{
		{"fast enough", frame / 9, true, 5, false},
		{"a trickle", frame / 40, true, 15, true}, // whatever its buffer has grown to: that depends on the pieces that were read
		{"a trickle, nobody waits", frame / 100, false, 100, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, o network.Options) {
				now := clock.NewManual(time.Unix(1e9, 0))
				o.Clock = now
				o.Limits = network.Limits{QueuedBytes: 2 << 20, RequestMaxBytes: frame}
				f := start(t, o)
				slow := f.dial()
				stream := request(keyEcho, 1, make([]byte, frame-8))
				slow.send(stream[:frame/2])
				f.eventually("half of the frame is there", func() bool { return f.ReceivedBytes() == frame/2 })
				stream = stream[frame/2:]
				var g errgroup.Group
				if tc.wait {
					waiting := f.dial()
					g.Go(func() error {
						_, err := waiting.Write(request(keySilent, 1, make([]byte, 3<<20)))
						return err
					})
					f.eventually("the other waits", func() bool { return f.RequestWaiters() == 1 })
				}
				for s := 0; s < tc.maxSeconds && len(stream) > 0 && !strings.Contains(f.log.String(), "too slowly"); s++ {
					n := min(tc.bytesPerSecond, len(stream))
					want := f.ReceivedBytes() + int64(n)
					slow.send(stream[:n])
					stream = stream[n:]
					f.eventually("it is read", func() bool { return f.ReceivedBytes() >= want })
					now.Advance(time.Second)
				}
				if cut := strings.Contains(f.log.String(), "too slowly"); cut != tc.cut {
					t.Fatalf("cut: %v, log: %s", cut, f.log.String())
				}
				if tc.cut {
					slow.wantClosed()
				} else if corr, got := slow.receive(); corr != 1 || len(got) != frame-8 {
					t.Errorf("response %d of %d bytes", corr, len(got))
				}
				if err := g.Wait(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestAnswersBehindALongPollAreBounded has a client ask for gigabytes behind a request
// whose answer does not come yet.
func TestAnswersBehindALongPollAreBounded(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		greedy, other := f.dial(), f.dial()
		const n = 200
		var g errgroup.Group
		g.Go(func() error {
			_, err := greedy.Write(request(keyHeld, 0, nil))
			for corr := 1; corr < n && err == nil; corr++ {
				_, err = greedy.Write(request(keyLarge, corr, nil))
			}
			return err
		})
		f.eventually("answers wait", func() bool { return f.ResponseBytes() > network.PendingOutMax })
		for corr := range 100 {
			other.ping(corr)
		}
		if got := f.ResponseBytes(); got > network.PendingOutMax+2*largeBytes {
			t.Errorf("%d bytes of answers are held", got)
		}
		r := <-f.h.held
		r.Complete(answer(r.Frame, bytes.Repeat([]byte{'x'}, largeBytes)))
		for want := range n {
			if corr, payload := greedy.receive(); corr != want || len(payload) != largeBytes {
				t.Fatalf("response %d with %d bytes, want %d", corr, len(payload), want)
			}
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		f.eventually("nothing held", func() bool { return f.ResponseBytes() == 0 })
	})
}

// TestAnswersBehindLongPollsLeaveRoomForOthers has many connections let answers pile up,
// each less than one may. A client that reads a little late is not cut for that.
func TestAnswersBehindLongPollsLeaveRoomForOthers(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		const limit = 8 * largeBytes
		o.Limits.QueuedBytes = limit
		f := start(t, o)
		var greedy []client
		for range 2 * limit / largeBytes {
			c, before := f.dial(), f.ResponseBytes()
			c.send(append(request(keyHeld, 0, nil), request(keyLarge, 1, nil)...))
			greedy = append(greedy, c)
			f.eventually("its answer waits, or it is not served", func() bool {
				return len(f.h.held) == len(greedy) && (f.ResponseBytes() > before || before > limit/2)
			})
		}
		if got := f.ResponseBytes(); got > limit/2+2*largeBytes {
			t.Errorf("%d bytes of answers wait", got)
		}
		late := f.dial()
		if err := late.Conn.(*net.TCPConn).SetReadBuffer(128 << 10); err != nil {
			t.Fatal(err)
		}
		const n = 4
		for corr := range n {
			late.send(request(keyLarge, corr, nil))
		}
		for want := range n {
			if corr, payload := late.receive(); corr != want || len(payload) != largeBytes {
				t.Fatalf("response %d with %d bytes, want %d", corr, len(payload), want)
			}
		}
		for range greedy {
			r := <-f.h.held
			r.Complete(answer(r.Frame, nil))
		}
		for _, c := range greedy {
			for want := range 2 {
				if corr, _ := c.receive(); corr != want {
					t.Fatalf("response %d, want %d", corr, want)
				}
			}
		}
		f.eventually("nothing held", func() bool { return f.ResponseBytes() == 0 })
	})
}

// TestAnswersToNobodyAreNotKept has a client leave while its answers wait for an
// earlier one: nobody will read them, and they take no memory until that has come.
func TestAnswersToNobodyAreNotKept(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		c := f.dial()
		payload := make([]byte, 60<<10)
		c.send(request(keyHeld, 0, nil))
		c.send(request(keyHeld, 1, nil))
		c.send(request(keyRegion, 2, nil))
		c.send(request(keyEcho, 3, payload))
		f.eventually("an answer waits", func() bool { return len(f.h.held) == 2 && f.ResponseBytes() >= int64(len(payload)) })
		c.Close()
		f.eventually("the connection is gone", func() bool { return f.Connections() == 0 })
		if n, regions := f.ResponseBytes(), f.h.regions.Load(); n != 0 || regions != 0 {
			t.Errorf("%d bytes and %d regions are held for nobody", n, regions)
		}
		first, late := <-f.h.held, <-f.h.held
		late.Complete(answer(late.Frame, payload))
		if n := f.ResponseBytes(); n != 0 {
			t.Errorf("%d bytes that came later are held for nobody", n)
		}
		first.Complete(answer(first.Frame, nil))
	})
}

// TestUnreadResponsesAreBounded has a client ask for gigabytes and read nothing.
func TestUnreadResponsesAreBounded(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		greedy, other := f.dial(), f.dial()
		var g errgroup.Group
		g.Go(func() error {
			for corr := range 1000 {
				if _, err := greedy.Write(request([]int{keyLarge, keyRegion, keyMappedRegion}[corr%3], corr, nil)); err != nil {
					return nil // cut at the end of the test
				}
			}
			return nil
		})
		f.eventually("responses wait", func() bool { return f.ResponseBytes() > 0 })
		for corr := range 200 {
			other.ping(corr)
		}
		if got := f.ResponseBytes(); got > network.PendingOutMax+largeBytes {
			t.Errorf("%d bytes of responses are held", got)
		}
		if n := f.h.served.Load(); n > 250 {
			t.Errorf("%d requests were served for a client that reads nothing", n)
		}
		var m runtime.MemStats
		runtime.GC() // what nobody has looked for yet is not held
		runtime.ReadMemStats(&m)
		if m.HeapAlloc > 200<<20 {
			t.Errorf("the heap has %d MiB", m.HeapAlloc>>20)
		}
		// It can still have all of it.
		for want := range 30 {
			if corr, payload := greedy.receive(); corr != want || len(payload) != largeBytes {
				t.Fatalf("response %d with %d bytes", corr, len(payload))
			}
		}
		greedy.Close()
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAllUnreadResponsesAreBounded has many clients leave one large response each.
func TestAllUnreadResponsesAreBounded(t *testing.T) {
	o := network.Options{Limits: network.Limits{QueuedBytes: 20 << 20}}
	f := start(t, o)
	for i := range 60 {
		c := f.dial()
		for corr := range 4 { // more than the sockets take
			c.send(request(keyLarge, 100*i+corr, nil))
		}
		// What is still being sent, to sockets that are not full yet, comes on top.
		if got := f.ResponseBytes(); got > 20<<20+10*largeBytes {
			t.Fatalf("%d bytes of responses are held", got)
		}
	}
	f.eventually("a slow reader is cut", func() bool { return strings.Contains(f.log.String(), "wait for slow readers") })
	f.dial().ping(1)
}

// TestUnreadableRegionCutsTheConnection: the rest of a response cannot be made up.
func TestUnreadableRegionCutsTheConnection(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		c := f.dial()
		c.send(request(keyBrokenRegion, 1, nil))
		got, err := io.ReadAll(c)
		if len(got) >= largeBytes || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		if log := f.log.String(); !strings.Contains(log, "the disk is broken") {
			t.Errorf("log: %s", log)
		}
		f.dial().ping(1)
	})
}

// fullListener has no file descriptors for a while.
type fullListener struct {
	*memnet.Listener
	failures int
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.failures > 0 {
		l.failures--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestAcceptGoesOnWhenFilesAreFreeAgain(t *testing.T) {
	now := clock.NewManual(time.Unix(1e9, 0))
	f := start(t, network.Options{Clock: now})
	mem := memnet.New()
	l, err := mem.Listen("broker:1")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Serve(&fullListener{l, 3}, "MEM") }()
	nc, err := mem.Dialer("client")(t.Context(), "", "broker:1")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.eventually("the accept loop rests", func() bool { return now.Pending() == 1 })
		now.Advance(100 * time.Millisecond)
	}
	client{nc, t}.ping(1)
	nc.Close()
	if n := strings.Count(f.log.String(), "cannot accept connections"); n != 1 {
		t.Errorf("%d lines: %s", n, f.log.String())
	}
	l.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestConnectionLimits(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		o.Limits = network.Limits{MaxConnectionsPerIP: 2}
		f := start(t, o)
		a, b := f.dial(), f.dial()
		a.ping(1)
		b.ping(1)
		f.dial().wantClosed()
		if log := f.log.String(); !strings.Contains(log, "max.connections.per.ip") {
			t.Errorf("log: %s", log)
		}
		a.Close()
		f.eventually("the connection is gone", func() bool { return f.Connections() == 1 })
		f.dial().ping(1)

		o.Limits = network.Limits{MaxConnectionsPerIP: 1, PerIPOverrides: map[netip.Addr]int{netip.MustParseAddr("127.0.0.1"): 3}}
		f = start(t, o)
		for range 3 {
			f.dial().ping(1)
		}
		f.dial().wantClosed()
	})
}

func TestMaxConnectionsMakesNewOnesWait(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		o.Limits = network.Limits{MaxConnections: 2}
		f := start(t, o)
		a, b := f.dial(), f.dial()
		a.ping(1)
		b.ping(1)
		late := f.dial()
		late.send(request(keyEcho, 7, nil))
		f.eventually("it waits", func() bool { return strings.Contains(f.log.String(), "at max.connections") })
		if n := f.Connections(); n != 2 {
			t.Errorf("%d connections", n)
		}
		b.ping(2)
		a.Close()
		if corr, _ := late.receive(); corr != 7 {
			t.Errorf("response %d", corr)
		}
	})
}

func TestClipConnections(t *testing.T) {
	for _, tc := range []struct {
		max      int
		nofile   uint64
		reserved int
		want     int
	}{
		{0, 1024, 300, 724}, {100, 1024, 300, 100}, {1 << 30, 1024, 300, 724}, {0, 100, 300, 16},
		{10, 100, 300, 10}, {0, 1 << 62, 0, 1<<31 - 1},
	} {
		if got := network.ClipConnections(tc.max, tc.nofile, tc.reserved); got != tc.want {
			t.Errorf("ClipConnections(%d, %d, %d) = %d, want %d", tc.max, tc.nofile, tc.reserved, got, tc.want)
		}
	}
	if n, err := network.RaiseNoFile(); err != nil || n < 16 {
		t.Errorf("RaiseNoFile: %d, %v", n, err)
	}
}
