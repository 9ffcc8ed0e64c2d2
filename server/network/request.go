package network

import (
	"bytes"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
)

// States of a request. The serving goroutine and the one that ends the request
// may differ; whoever comes second moves the response on.
const (
	requestServing  = iota // Serve has not returned
	requestEnded           // ended before Serve returned: the server picks it up
	requestDetached        // Serve has returned: the ending emits the response
)

// How a request ended.
const (
	endResponse = iota
	endSilent
	endHangup
)

// Request is one frame on its way to its response. It ends exactly once, by
// Complete, NoResponse or Hangup, on any goroutine.
type Request struct {
	// Conn is the connection that it came on.
	Conn *Conn
	// State is kept for the handler when it asks to be called again by Requeue.
	State any
	// Frame is the request without its length. It is valid until Serve returns,
	// unless Own was called.
	Frame []byte

	onLoop  bool
	inPlace bool // Frame lies in the reader's buffer
	pooled  bool // Frame goes back to the pool when Serve returns
	over    bool // the frame was admitted beyond the memory budget
	// within says that there was room for it after all when it asked to wait.
	within atomic.Bool
	// requeued asks the reader to hand the request to the executor.
	requeued bool

	state atomic.Int32
	ended atomic.Bool
	// refs are the two sides that keep the charge: Serve and the ending.
	refs atomic.Int32
	// frameCharge is only touched by the serving goroutine before it drops its
	// reference; extra by anyone before the ending.
	frameCharge int
	extra       atomic.Int64

	// onEnd is set by the handler inside Serve.
	onEnd func()

	resp  Response
	items []outItem // resp, ready for the out-queue
	end   int

	// next and done belong to the connection's slot list, under Conn.mu.
	next *Request
	done bool
	// slotBytes is what items count for from then on until it leaves the list.
	slotBytes int
}

// OnLoop says that Serve runs on an event loop and must not block.
func (r *Request) OnLoop() bool { return r.onLoop }

// Own makes Frame valid for as long as the request, or anything decoded from it,
// is used. It copies only when the frame lies in the reader's buffer. It may be
// called only inside Serve.
func (r *Request) Own() {
	if r.inPlace {
		r.Frame = bytes.Clone(r.Frame)
		r.Conn.charge(len(r.Frame))
		r.frameCharge += len(r.Frame)
	}
	r.inPlace, r.pooled = false, false
}

// Requeue has Serve called again on the executor, where it may wait, with the
// order of the connection kept. It is for a handler on an event loop that finds,
// before it has done anything, that it would have to wait for a lock. False means
// that this is no event loop. The handler returns without ending the request.
func (r *Request) Requeue() bool {
	if !r.onLoop {
		return false
	}
	if r.inPlace {
		r.Frame = bytes.Clone(r.Frame)
		r.Conn.charge(len(r.Frame))
		r.frameCharge += len(r.Frame)
		r.inPlace = false
	}
	r.requeued = true
	return true
}

// Charge counts memory that the request uses beyond its frame, such as its decoded
// form, against the memory budget until the request has ended. It must be called
// before the ending.
func (r *Request) Charge(sizeBytes int) {
	r.extra.Add(int64(sizeBytes))
	r.Conn.charge(sizeBytes)
}

// waitBytesFree is what a request may hold and wait, however little memory there is.
const waitBytesFree = 64 << 10

// MayWait says whether the request may stay for what happens later, as a long poll
// does, while it keeps so much of its frame: it holds little, or all requests together,
// this one included, no more than half of the memory budget. The other half is for
// those that work, which would otherwise have to wait for clients that only wait, for
// as long as those please.
func (r *Request) MayWait(frameBytes int) bool {
	if r.Conn.srv.budget.halfFree() {
		r.within.Store(true)
		return true
	}
	return r.extra.Load()+int64(frameBytes) <= waitBytesFree
}

// OnEnd has f called when the request ends, before its response is sent. It may
// be called once, inside Serve.
func (r *Request) OnEnd(f func()) { r.onEnd = f }

// Complete ends the request with its response.
func (r *Request) Complete(resp Response) {
	if !r.beginEnd("Complete") {
		resp.release()
		return
	}
	r.resp = resp
	r.finishEnd(endResponse)
}

// NoResponse ends a request whose client expects no answer.
func (r *Request) NoResponse() {
	if r.beginEnd("NoResponse") {
		r.finishEnd(endSilent)
	}
}

// Hangup ends the request by closing the connection once the responses to earlier
// requests are out. Nothing that came later is served. The reason goes into one
// log line with the peer's address.
func (r *Request) Hangup(reason string) {
	if !r.beginEnd("Hangup") {
		return
	}
	r.Conn.refuse(reason)
	r.finishEnd(endHangup)
}

// beginEnd makes sure that a request ends once. A second ending is a mistake of a
// handler; it is reported and does nothing, because the response order of the
// connection would otherwise be lost.
func (r *Request) beginEnd(how string) bool {
	if r.ended.CompareAndSwap(false, true) {
		return true
	}
	r.Conn.srv.log.Error("request ended twice", "ending", how, "peer", r.Conn.peer(), slog.String("stack", string(debug.Stack())))
	return false
}

func (r *Request) finishEnd(how int) {
	r.end = how
	if r.onEnd != nil {
		r.onEnd()
	}
	r.dropRef()
	if r.state.CompareAndSwap(requestServing, requestEnded) {
		return
	}
	r.Conn.finish(r)
}

// served is called when Serve has returned: a frame that nobody owns is reused.
func (r *Request) served() {
	if r.requeued {
		return // it will be served again
	}
	if r.pooled {
		putBuffer(r.Frame)
		r.Conn.uncharge(r.frameCharge, r.over)
		r.frameCharge, r.over = 0, false
	} else if r.over && (r.within.Load() || r.frameCharge <= waitBytesFree && r.Conn.outstanding.Load() == 0) {
		// It may wait for other clients, whose frames must come on meanwhile. One small
		// request for each connection is served inline without asking, too.
		r.over = false
		r.Conn.uncharge(0, true)
	}
	if r.inPlace || r.pooled {
		r.Frame = nil
	}
	r.dropRef()
}

func (r *Request) dropRef() {
	if r.refs.Add(-1) == 0 {
		r.Conn.uncharge(r.frameCharge+int(r.extra.Load()), r.over)
	}
}

func (r Response) release() {
	for _, s := range r.Segs {
		if s.Region != nil {
			s.Region.Release()
		}
	}
	if r.Sent != nil {
		r.Sent()
	}
}
