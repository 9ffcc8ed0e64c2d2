package api

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/semaphore"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/clientmetrics"
	"github.com/barnabas-mq/barnabas/server/network"
)

// Dispatcher takes frames from the network to the handlers of Table. It
// implements network.Handler.
type Dispatcher struct {
	h    *Handlers
	rows [kmsg.MaxKey + 1]*API
	// large admits requests that take more than largeBytes, as they came, while all
	// of them together take no more than handledMax, so that many connections that
	// each send the worst frame do not add up. What they take is held until the
	// request has ended, by those that wait for other clients' requests only until
	// Serve returns.
	large *semaphore.Weighted
}

// What a request may take in memory. Honest requests decode to up to about 30
// times their size (lists of one-letter topics); what becomes more is made of
// tagged fields that no client sends. handledMax is of the decoded form, the work
// and the answer together: enough for 100,000 groups or 200,000 partitions in one
// request.
const (
	decodedMax    = 128 << 20
	handledMax    = 256 << 20
	decodedFactor = 40
	decodedSlack  = 64 << 10
	largeBytes    = 1 << 20
)

// NewDispatcher serves Table with h, which must not change any more.
func NewDispatcher(h *Handlers, registry *telemetry.Registry) *Dispatcher {
	h.table = Table
	h.metrics = newMetrics(registry, Table)
	h.heavy, h.bulky = make(chan struct{}, heavyDecodes()), make(chan struct{}, 1)
	h.cold = make(chan struct{}, coldReads)
	h.converting, h.answering = semaphore.NewWeighted(oldBytesMax), semaphore.NewWeighted(answeringMax)
	d := &Dispatcher{h: h, large: semaphore.NewWeighted(handledMax)}
	for i := range h.table {
		d.rows[h.table[i].Key] = &h.table[i]
	}
	return d
}

// row finds the row that serves a key and version; nil when none does.
func (d *Dispatcher) row(key, version int16) *API {
	if key < 0 || int(key) >= len(d.rows) || d.rows[key] == nil {
		return nil
	}
	r := d.rows[key]
	if key == protocol.ApiVersionsKey || version >= r.Min && version <= r.Max {
		return r
	}
	return nil
}

// Classify closes the connection on a request that nobody serves, as Kafka
// does, before its body has arrived.
func (d *Dispatcher) Classify(head network.FrameHead) network.Class {
	r := d.row(head.Key, head.Version)
	if r == nil {
		return network.Class{Refuse: unserved(head.Key, head.Version)}
	}
	class := network.Class{Inline: r.Inline, MaxBytes: requestBytesMax}
	if r.Large {
		class.MaxBytes = 0
	}
	return class
}

func unserved(key, version int16) string {
	return fmt.Sprintf("%s version %d (key %d) is not served", protocol.Name(key), version, key)
}

// session is what is kept between the requests of one connection. Only Serve
// touches it, and a connection's requests are served one after another; what is
// atomic is read when the connection closes.
type session struct {
	clientID                      string
	softwareName, softwareVersion string
	// parked are the connection's long polls, nil before the first.
	parked *parkedCalls
	// metricsID is the client instance whose metrics came last on the connection.
	metricsID atomic.Pointer[clientmetrics.ID]
}

func sessionOf(c *network.Conn) *session {
	if s, ok := c.Session().(*session); ok {
		return s
	}
	s := &session{}
	c.SetSession(s)
	return s
}

// Serve decodes a request and calls its handler.
func (d *Dispatcher) Serve(r *network.Request) {
	c := &Call{Net: r, h: d.h, start: d.h.Clock.Now(), requestBytes: len(r.Frame)}
	if len(r.Frame) < protocol.HeadSize {
		r.Hangup("the frame is shorter than a request header")
		return
	}
	key, version := int16(binary.BigEndian.Uint16(r.Frame)), int16(binary.BigEndian.Uint16(r.Frame[2:]))
	if c.row = d.row(key, version); c.row == nil {
		r.Hangup(unserved(key, version))
		return
	}
	if c.row.Aliases {
		r.Own()
	}
	s := sessionOf(r.Conn)
	h, body, err := protocol.ParseHeaderReusing(r.Frame, s.clientID)
	if err != nil {
		r.Hangup(fmt.Sprintf("%s version %d: %v", c.row.Name, version, err))
		return
	}
	c.Header, s.clientID = h, h.ClientID
	if version < c.row.Min || version > c.row.Max {
		d.h.unknownApiVersions(c)
		return
	}
	leave, ok := d.admit(c, body)
	if !ok {
		return
	}
	if c.row.Waits {
		defer leave()
	}
	req := c.row.newRequest()
	if err := protocol.DecodeInto(req, h, body); err != nil {
		r.Hangup(err.Error())
		return
	}
	served := false
	defer func() {
		if !served { // it has panicked, and the network ends it
			c.drop()
		}
	}()
	c.row.serve(d.h, c, req)
	served = true
}

// admit charges what a request will take to the memory budget, before anything of
// it is laid out. A large one waits first until there is room for it among the others;
// leave gives the room away before the request has ended. Not ok means that the request
// has been refused or will be served again.
func (d *Dispatcher) admit(c *Call, body []byte) (leave func(), ok bool) {
	size := protocol.DecodedSize(c.Header, body)
	if size.LongString {
		c.Net.Hangup(fmt.Sprintf("%s version %d: a string is longer than %d bytes", c.row.Name, c.Header.Version, math.MaxInt16))
		return nil, false
	}
	need := size.Bytes + size.Elements*c.row.ElementBytes
	if need > handledMax || size.Bytes > decodedMax || size.Bytes > decodedSlack+decodedFactor*len(body) {
		c.Net.Hangup(fmt.Sprintf("%s version %d: %d bytes would become %d when decoded and answered", c.row.Name, c.Header.Version, len(body), need))
		return nil, false
	}
	leave = func() {}
	if need > largeBytes {
		if c.Net.Requeue() {
			return nil, false
		}
		// It has no error: there is no end to the wait, and need is below the whole.
		_ = d.large.Acquire(context.Background(), int64(need))
		leave = sync.OnceFunc(func() { d.large.Release(int64(need)) })
		c.Net.OnEnd(leave)
	}
	if c.Net.State == nil { // else it is served again, and was charged before
		c.Net.Charge(need)
	}
	return leave, true
}
