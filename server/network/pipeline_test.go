package network_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/server/network"
)

// TestResponsesComeInOrder pipelines every kind of request over connections that
// tear frames and read slowly.
func TestResponsesComeInOrder(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		var slow atomic.Bool
		o.Pressure = slow.Load
		f := start(t, o)
		for seed := range uint64(6) {
			slow.Store(seed == 5) // everything through the executor
			var g errgroup.Group
			for i := range uint64(4) {
				c := f.dial()
				g.Go(func() error { return pipeline(c, rand.New(rand.NewPCG(seed, i)), 200) })
			}
			if err := g.Wait(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if loops := f.h.onLoop.Load(); (loops > 0) == o.Std {
			t.Errorf("%d requests ran on a loop", loops)
		}
	})
}

// pipeline writes n random requests in torn pieces and reads the answers meanwhile.
func pipeline(c client, rng *rand.Rand, n int) error {
	keys := []int{keyEcho, keyEcho, keyEcho, keyEcho, keyBlocking, keyRequeue, keyLater, keyLater, keySilent, keyLarge, keyRegion, keyMappedRegion}
	type want struct{ corr, key, size int }
	var wants []want
	var stream []byte
	for corr := range n {
		key := keys[rng.IntN(len(keys))]
		if key >= keyLarge && rng.IntN(8) > 0 {
			key = keyEcho
		}
		size := rng.IntN(300)
		switch rng.IntN(40) {
		case 0:
			size = 60_000 + rng.IntN(10_000) // around the limit for a loop
		case 1:
			size = rng.IntN(2 << 20)
		}
		stream = append(stream, request(key, corr, bytes.Repeat([]byte{byte(corr)}, size))...)
		if key != keySilent {
			wants = append(wants, want{corr, key, size})
		}
	}
	var g errgroup.Group
	slowReads := rng.IntN(2) == 0
	writes := rand.New(rand.NewPCG(rng.Uint64(), 1))
	g.Go(func() error {
		for len(stream) > 0 {
			k := 1 + writes.IntN(20)
			if writes.IntN(3) == 0 {
				k = 1 + writes.IntN(300_000)
			}
			k = min(k, len(stream))
			if _, err := c.Write(stream[:k]); err != nil {
				return err
			}
			stream = stream[k:]
		}
		return nil
	})
	var in io.Reader = c
	if slowReads {
		in = iotest.HalfReader(c)
	}
	for _, w := range wants {
		corr, payload, err := readResponse(in)
		if err != nil {
			return fmt.Errorf("request %d: %w", w.corr, err)
		}
		if corr != w.corr {
			return fmt.Errorf("got the response to %d instead of %d", corr, w.corr)
		}
		good := bytes.Equal(payload, bytes.Repeat([]byte{byte(corr)}, w.size))
		switch w.key {
		case keyLarge:
			good = len(payload) == largeBytes
		case keyRegion, keyMappedRegion:
			good = bytes.Equal(payload, regionBytes)
		}
		if !good {
			return fmt.Errorf("the response to %d (key %d, %d bytes) is not right: %d bytes", corr, w.key, w.size, len(payload))
		}
	}
	return g.Wait()
}

func TestOneByteAtATime(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		c := start(t, o).dial()
		var stream []byte
		for corr := range 20 {
			stream = append(stream, request([]int{keyEcho, keyLater, keyBlocking}[corr%3], corr, []byte(strings.Repeat("a", corr)))...)
		}
		for i := range stream {
			c.send(stream[i : i+1])
		}
		for want := range 20 {
			if corr, payload := c.receive(); corr != want || len(payload) != want {
				t.Fatalf("response %d with %d bytes instead of %d", corr, len(payload), want)
			}
		}
	})
}

// TestExecutorDoesNotOvertakeTheLoop has an answer of the loop wait for the end of
// its turn while the executor has the next one.
func TestExecutorDoesNotOvertakeTheLoop(t *testing.T) {
	f := start(t, network.Options{})
	c := f.dial()
	for range 50 {
		stream := append(request(keyEcho, 0, nil), request(keyBlocking, 1, nil)...)
		for corr := 2; corr < 200; corr++ {
			stream = append(stream, request(keyEcho, corr, make([]byte, 200))...)
		}
		c.send(stream)
		for want := range 200 {
			if corr, _ := c.receive(); corr != want {
				t.Fatalf("response %d instead of %d", corr, want)
			}
		}
	}
}

// TestDetachedRequestsHoldOthersBack completes in reverse order.
func TestDetachedRequestsHoldOthersBack(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		c := f.dial()
		for corr := range 3 {
			c.send(request(keyHeld, corr, []byte{byte('a' + corr)}))
		}
		c.send(request(keyEcho, 3, nil))
		held := []*network.Request{<-f.h.held, <-f.h.held, <-f.h.held}
		for i := 2; i >= 0; i-- {
			r := held[i]
			if want := byte('a' + i); !bytes.Equal(r.Frame[8:], []byte{want}) {
				t.Errorf("an owned frame has changed to %q", r.Frame[8:])
			}
			r.Complete(answer(r.Frame, r.Frame[8:]))
		}
		for want := range 4 {
			if corr, _ := c.receive(); corr != want {
				t.Fatalf("response %d instead of %d", corr, want)
			}
		}
	})
}

// TestFullConnectionIsPausedAndResumed keeps more requests open than a connection
// may have.
func TestFullConnectionIsPausedAndResumed(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		c := f.dial()
		c.ping(1)
		f.h.served.Store(0)
		files := openFiles(t)
		const n = 5 * network.OutstandingMax
		var g errgroup.Group
		g.Go(func() error {
			for corr := range n {
				if _, err := c.Write(request(keyHeld, corr, make([]byte, 100))); err != nil {
					return err
				}
			}
			return nil
		})
		f.eventually("the connection is full", func() bool { return f.h.served.Load() >= network.OutstandingMax })
		other := f.dial()
		other.ping(1) // by now the reader has seen whatever it will see
		if served := f.h.served.Load(); served > network.OutstandingMax+1 {
			t.Errorf("%d requests were begun", served)
		}
		g.Go(func() error {
			for range n {
				r := <-f.h.held
				r.Complete(answer(r.Frame, nil))
			}
			return nil
		})
		for want := range n {
			if corr, _ := c.receive(); corr != want {
				t.Fatalf("response %d instead of %d", corr, want)
			}
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		c.ping(n)
		other.Close()
		f.eventually("files that pausing opened are closed", func() bool { return openFiles(t) <= files })
	})
}

// openFiles counts the files of this process, where that is known.
func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return len(entries)
}

func TestHangupComesInOrderAndStopsTheRest(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		for _, key := range []int{keyHangup, keyPanic, keyUnserved} {
			f := start(t, o)
			c := f.dial()
			c.send(append(append(request(keyHeld, 1, nil), request(key, 2, nil)...), request(keyEcho, 3, nil)...))
			r := <-f.h.held
			r.Complete(answer(r.Frame, nil))
			if corr, _ := c.receive(); corr != 1 {
				t.Fatalf("response %d instead of 1", corr)
			}
			c.wantClosed()
			if n := f.h.served.Load(); n > 2 {
				t.Errorf("key %d: %d requests were served", key, n)
			}
			if log := f.log.String(); strings.Count(log, "closing connection") != 1 || !strings.Contains(log, "peer="+c.LocalAddr().String()) {
				t.Errorf("key %d: log: %s", key, log)
			}
			f.dial().ping(1)
		}
	})
}

func TestEndingTwiceIsReportedAndHarmless(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		f.h.serve = func(r *network.Request) {
			if binary.BigEndian.Uint16(r.Frame) == keyLarge {
				r.NoResponse()
			}
		}
		c := f.dial()
		c.send(request(keyLarge, 1, nil))
		c.ping(2)
		if log := f.log.String(); !strings.Contains(log, "request ended twice") {
			t.Errorf("log: %s", log)
		}
	})
}

func TestSessionAndCloseHooks(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		f := start(t, o)
		closed := make(chan uint64, 2)
		f.h.serve = func(r *network.Request) {
			if r.Conn.Session() == nil {
				r.Conn.SetSession("known")
				r.Conn.OnClose(func() { closed <- r.Conn.ID() })
			}
			if r.Conn.Session() != "known" || r.Conn.Listener() != "PLAINTEXT" || r.Conn.RemoteHost() != "127.0.0.1" {
				t.Errorf("session %v, listener %s, host %s", r.Conn.Session(), r.Conn.Listener(), r.Conn.RemoteHost())
			}
			if host, port := r.Conn.Reach(); host != "localhost" || fmt.Sprint("127.0.0.1:", port) != f.Addrs()[0].String() {
				t.Errorf("reach %s:%d", host, port)
			}
		}
		c := f.dial()
		c.ping(1)
		c.ping(2)
		c.Close()
		<-closed
		if len(closed) != 0 {
			t.Error("the hook ran twice")
		}
	})
}
