package network_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/leak"
	"github.com/barnabas-mq/barnabas/server/network"
)

func TestMain(m *testing.M) { os.Exit(leak.Run(m, testDeadline)) }

// Keys of the test API.
const (
	keyEcho     = iota // answers with its payload, inline
	keyBlocking        // the same, on the executor
	keyLater           // completed by another goroutine
	keyLarge           // answers with largeBytes bytes
	keySilent          // no response
	keyHangup
	keyPanic
	keyRegion       // answers with a region of largeBytes
	keyMappedRegion // the same, mapped
	keyHeld         // kept until the test completes it
	keyUnserved     // refused by Classify
	keySmallOnly    // takes at most smallOnlyBytes
	keyBrokenRegion // a region that cannot be read to its end
	keyRequeue      // echo, that asks a loop for the executor first
	keySilentRequeue
	keyPanicClassify // Classify panics
	keyPanicHook     // echo, and a panic once the connection has closed
)

const (
	largeBytes     = 3 << 20
	smallOnlyBytes = 1000
)

// testHandler implements the test API.
type testHandler struct {
	// serve, when set, is called before a request is handled.
	serve func(r *network.Request)
	held  chan *network.Request

	served   atomic.Int64
	regions  atomic.Int64 // made and not released
	badOnce  atomic.Int64 // regions released twice
	onLoop   atomic.Int64
	finishes sync.WaitGroup
}

func newTestHandler() *testHandler { return &testHandler{held: make(chan *network.Request, 10_000)} }

func (h *testHandler) Classify(head network.FrameHead) network.Class {
	switch head.Key {
	case keyUnserved:
		return network.Class{Refuse: "key 10 is not served"}
	case keyPanicClassify:
		panic("asked to")
	case keySmallOnly:
		return network.Class{Inline: true, MaxBytes: smallOnlyBytes}
	case keyBlocking:
		return network.Class{}
	}
	return network.Class{Inline: true}
}

func (h *testHandler) Serve(r *network.Request) {
	h.served.Add(1)
	if r.OnLoop() {
		h.onLoop.Add(1)
	}
	if h.serve != nil {
		h.serve(r)
	}
	key := binary.BigEndian.Uint16(r.Frame)
	switch key {
	case keyRequeue:
		r.Charge(1000)
		if r.Requeue() {
			return
		}
		r.Complete(answer(r.Frame, r.Frame[8:]))
	case keySilentRequeue:
		if !r.Requeue() {
			r.NoResponse()
		}
	case keyLater:
		r.Own()
		h.finishes.Add(1)
		go func() {
			defer h.finishes.Done()
			r.Complete(answer(r.Frame, r.Frame[8:]))
		}()
	case keyLarge:
		r.Complete(answer(r.Frame, bytes.Repeat([]byte{'x'}, largeBytes)))
	case keyRegion, keyMappedRegion:
		h.regions.Add(1)
		resp := answer(r.Frame, nil)
		binary.BigEndian.PutUint32(resp.Segs[0].Bytes, 4+largeBytes)
		resp.Segs = append(resp.Segs, network.Seg{Region: &testRegion{h: h, mapped: key == keyMappedRegion}}, network.Seg{})
		r.Complete(resp)
	case keyBrokenRegion:
		h.regions.Add(1)
		resp := answer(r.Frame, nil)
		resp.Segs = append(resp.Segs, network.Seg{Region: &testRegion{h: h, broken: true}})
		r.Complete(resp)
	case keySilent:
		r.NoResponse()
	case keyHangup:
		r.Hangup("asked to")
	case keyPanic:
		panic("asked to")
	case keyPanicHook:
		r.Conn.OnClose(func() { panic("asked to") })
		r.Complete(answer(r.Frame, nil))
	case keyHeld:
		r.Own()
		h.held <- r
	default:
		r.Complete(answer(r.Frame, r.Frame[8:]))
	}
}

// answer is a response with the request's correlation id.
func answer(frame, payload []byte) network.Response {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(payload)))
	b = append(b, frame[4:8]...)
	return network.Response{Segs: []network.Seg{{Bytes: append(b, payload...)}}}
}

// testRegion is a file of largeBytes whose byte at i is byte(i).
type testRegion struct {
	h        *testHandler
	mapped   bool
	broken   bool
	released atomic.Bool
}

var regionBytes = func() []byte {
	b := make([]byte, largeBytes)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

func (*testRegion) Len() int { return largeBytes }

func (g *testRegion) Bytes() []byte {
	if g.mapped {
		return regionBytes
	}
	return nil
}

func (g *testRegion) ReadAt(p []byte, off int64) (int, error) {
	if g.released.Load() {
		return 0, errors.New("read of a released region")
	}
	if g.broken && off > largeBytes/2 {
		return 0, errors.New("the disk is broken")
	}
	return copy(p, regionBytes[off:]), nil
}

func (g *testRegion) Release() {
	if g.released.Swap(true) {
		g.h.badOnce.Add(1)
	}
	g.h.regions.Add(-1)
}

// request is a frame with its length.
func request(key, corr int, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(payload)))
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(corr))
	return append(b, payload...)
}

// client is a raw connection to a server under test.
type client struct {
	net.Conn
	t testing.TB
}

func (c client) send(b []byte) {
	c.t.Helper()
	if _, err := c.Write(b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// receive reads one response.
func (c client) receive() (corr int, payload []byte) {
	c.t.Helper()
	corr, payload, err := readResponse(c)
	if err != nil {
		c.t.Fatalf("read a response: %v", err)
	}
	return corr, payload
}

func readResponse(r io.Reader) (corr int, payload []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, int(binary.BigEndian.Uint32(head[:]))-4)
	_, err = io.ReadFull(r, payload)
	return int(binary.BigEndian.Uint32(head[4:])), payload, err
}

func (c client) ping(corr int) {
	c.t.Helper()
	c.send(request(keyEcho, corr, []byte("ping")))
	if got, payload := c.receive(); got != corr || string(payload) != "ping" {
		c.t.Fatalf("ping %d was answered with %d %q", corr, got, payload)
	}
}

// wantClosed waits until the server has closed the connection.
func (c client) wantClosed() {
	c.t.Helper()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		c.t.Fatal("got a byte instead of a closed connection")
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatal("the connection is still open")
	}
}

// logBuffer keeps log lines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fixture is a running server.
type fixture struct {
	*network.Server
	t   testing.TB
	h   *testHandler
	log *logBuffer
}

// testDeadline fails a test that hangs, before go test's own limit and long after
// what a busy machine needs.
const testDeadline = 2 * time.Minute

// start runs a server until the end of the test, and checks that it leaves
// nothing behind.
func start(t testing.TB, o network.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, log: &logBuffer{}}
	if o.Handler == nil {
		f.h = newTestHandler()
		o.Handler = f.h
	}
	if o.Listeners == nil {
		o.Listeners = []network.Listener{{Name: "PLAINTEXT", Addr: "127.0.0.1:0"}}
	}
	o.Log = slog.New(slog.NewTextHandler(f.log, nil))
	f.Server = network.New(o)
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_ = f.Shutdown(ctx) // connections that are still open are cut
		f.eventually("everything is given back", func() bool {
			f.dropHeld()
			return f.Connections() == 0 && f.ResponseBytes() == 0 && f.RequestBytes() == 0 && (f.h == nil || f.h.regions.Load() == 0)
		})
		if f.h != nil {
			f.h.finishes.Wait()
			if n := f.h.badOnce.Load(); n > 0 {
				t.Errorf("%d regions were released twice", n)
			}
		}
	})
	return f
}

// dropHeld ends the requests that a test has not.
func (f *fixture) dropHeld() {
	for f.h != nil && len(f.h.held) > 0 {
		(<-f.h.held).NoResponse()
	}
}

// settled waits until nothing is being served or sent.
func (f *fixture) settled() {
	f.t.Helper()
	f.eventually("nothing is under way", func() bool { return f.ResponseBytes() == 0 && f.Quiet() })
}

func (f *fixture) dial() client {
	f.t.Helper()
	nc, err := net.Dial("tcp", f.Addrs()[0].String())
	if err != nil {
		f.t.Fatal(err)
	}
	if err := nc.SetDeadline(time.Now().Add(testDeadline)); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { nc.Close() })
	return client{nc, f.t}
}

// eventually polls a condition that another goroutine brings about.
func (f *fixture) eventually(what string, cond func() bool) {
	f.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(testDeadline)
	for !cond() {
		if time.Now().After(deadline) {
			f.t.Fatalf("not within %v: %s", testDeadline, what)
		}
		<-tick.C
	}
}

// eachTransport runs a test on event loops and on goroutines.
func eachTransport(t *testing.T, test func(t *testing.T, o network.Options)) {
	for _, std := range []bool{false, true} {
		t.Run(fmt.Sprintf("std=%v", std), func(t *testing.T) { test(t, network.Options{Std: std, Loops: 2}) })
	}
}
