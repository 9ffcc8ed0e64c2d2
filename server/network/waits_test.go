package network_test

import (
	"testing"

	"github.com/barnabas-mq/barnabas/server/network"
)

// TestRequestsThatWaitKeepNobodyOut has one request wait, with a frame beyond the memory
// limit, for what other clients send, as a member of a group does.
func TestRequestsThatWaitKeepNobodyOut(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		const limit = 1 << 20
		o.Limits.QueuedBytes = limit
		h := newTestHandler()
		h.serve = func(r *network.Request) {
			if len(r.Frame) == 8+1 {
				r.Charge(limit)
			}
		}
		o.Handler = h
		f := start(t, o)
		f.h = h
		torn := func(c client, frame []byte) {
			before := f.ReceivedBytes()
			c.send(frame[:10])
			f.eventually("the first part", func() bool { return f.ReceivedBytes() == before+10 })
			c.send(frame[10:])
		}
		f.dial().send(request(keyHeld, 0, []byte("1")))
		f.eventually("the memory is used", func() bool { return f.RequestBytes() >= limit && len(h.held) == 1 })
		torn(f.dial(), request(keyHeld, 0, []byte("waits")))
		f.eventually("it waits", func() bool { return len(h.held) == 2 })
		other := f.dial()
		torn(other, request(keyEcho, 7, []byte("other")))
		if corr, payload := other.receive(); corr != 7 || string(payload) != "other" {
			t.Errorf("response %d %q", corr, payload)
		}
	})
}

// TestLargeRequestsThatMayWaitKeepNobodyOut has a large one go beyond the memory limit
// and be within it once it is whole: when it waits for other clients, it does not keep
// them from going beyond in their turn.
func TestLargeRequestsThatMayWaitKeepNobodyOut(t *testing.T) {
	eachTransport(t, func(t *testing.T, o network.Options) {
		const limit, size = 1 << 20, 100 << 10
		o.Limits.QueuedBytes = limit
		h := newTestHandler()
		h.serve = func(r *network.Request) {
			switch len(r.Frame) {
			case 8 + 1:
				r.Charge(limit)
			case 8 + size:
				if !r.MayWait(len(r.Frame)) && len(h.held) == 0 {
					t.Error("it may not wait, with half of the memory free")
				}
			}
		}
		o.Handler = h
		f := start(t, o)
		f.h = h
		fill := func() {
			f.dial().send(request(keyHeld, 0, []byte("1")))
			f.eventually("the memory is used", func() bool { return f.RequestBytes() >= limit && len(h.held) == 1 })
		}
		begin := func(key int) (client, []byte) {
			c, frame, before := f.dial(), request(key, 7, make([]byte, size)), f.ReceivedBytes()
			c.send(frame[:len(frame)-1])
			f.eventually("all but its end", func() bool { return f.ReceivedBytes() == before+int64(len(frame))-1 })
			return c, frame[len(frame)-1:]
		}
		fill()
		waits, end := begin(keyHeld)
		r := <-h.held
		r.Complete(answer(r.Frame, nil))
		f.eventually("memory is free", func() bool { return f.RequestBytes() < limit/2 })
		waits.send(end)
		f.eventually("it waits", func() bool { return len(h.held) == 1 })
		large := <-h.held
		fill()
		other, end := begin(keyEcho)
		other.send(end)
		if corr, payload := other.receive(); corr != 7 || len(payload) != size {
			t.Errorf("response %d of %d bytes", corr, len(payload))
		}
		large.Complete(answer(large.Frame, nil))
	})
}
