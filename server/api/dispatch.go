package api

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/network"
)

// Dispatcher takes frames from the network to the handlers of Table. It
// implements network.Handler and has no state of its own.
type Dispatcher struct {
	h    *Handlers
	rows [kmsg.MaxKey + 1]*API
}

// NewDispatcher serves Table with h, which must not change any more.
func NewDispatcher(h *Handlers, registry *telemetry.Registry) *Dispatcher {
	h.table = Table
	h.metrics = newMetrics(registry, Table)
	d := &Dispatcher{h: h}
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
// touches it, and a connection's requests are served one after another.
type session struct {
	clientID                      string
	softwareName, softwareVersion string
	// parked are the connection's long polls, nil before the first.
	parked *parkedCalls
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
	defer d.recoverPanic(r)
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
	r.Charge(protocol.DecodedBytes(h, body))
	req := c.row.newRequest()
	if err := protocol.DecodeInto(req, h, body); err != nil {
		r.Hangup(err.Error())
		return
	}
	c.row.serve(d.h, c, req)
}

// recoverPanic keeps a mistake in one handler from ending the broker: the
// client sees a closed connection, the log the stack.
func (d *Dispatcher) recoverPanic(r *network.Request) {
	if p := recover(); p != nil {
		d.h.Log.Error("a handler panicked", "panic", p, "peer", r.Conn.RemoteAddr().String(), "stack", string(debug.Stack()))
		r.Hangup("internal error")
	}
}
