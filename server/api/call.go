package api

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/network"
)

// Call is one request on its way through a handler. A handler ends it exactly
// once, on any goroutine, by Reply, ReplyFrame, NoReply or Hangup.
type Call struct {
	Header protocol.Header
	// Net is the network's side: the connection, its addresses and listener.
	Net *network.Request

	resp  kmsg.Response
	h     *Handlers
	row   *API
	start time.Time
	// requestBytes is the frame's size without its length field.
	requestBytes int
	// keptBytes is what keep has counted.
	keptBytes atomic.Int64
}

// Conn is the connection that the request came on.
func (c *Call) Conn() *network.Conn { return c.Net.Conn }

// ClientHost is the peer's address as Kafka shows it in groups, "/127.0.0.1".
func (c *Call) ClientHost() string { return "/" + c.Net.Conn.RemoteHost() }

// keep counts a part of the answer whose size the request does not tell, such as a
// group's members, and charges it to the memory budget. It is false once the answer,
// or that and all others that are being collected, have become too large to be given:
// the handler drops the part and hangs up.
func (c *Call) keep(part any) bool {
	n := int64(heldBytes(reflect.ValueOf(part)))
	if own, all := c.keptBytes.Add(n), c.h.keptBytes.Add(n); own > largeBytes && all > handledMax {
		c.keptBytes.Add(-n)
		c.h.keptBytes.Add(-n)
		return false
	}
	c.Net.Charge(int(n))
	return true
}

// drop gives back what keep has counted.
func (c *Call) drop() {
	if n := c.keptBytes.Swap(0); n != 0 {
		c.h.keptBytes.Add(-n)
	}
}

// hangupTooLarge refuses a request because keep has been false.
func (c *Call) hangupTooLarge() {
	c.Hangup(fmt.Sprintf("%s version %d: the answer, with those to other requests, would take more than %d bytes", c.row.Name, c.Header.Version, handledMax))
}

// heldBytes is about what a part of an answer takes in memory or, where parts share
// texts, in the frame.
func heldBytes(v reflect.Value) int {
	n := int(v.Type().Size())
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n += heldBytes(v.Elem())
		}
	case reflect.String:
		n += v.Len()
	case reflect.Slice:
		if v.Type().Elem().Size() <= 8 { // numbers
			return n + v.Len()*int(v.Type().Elem().Size())
		}
		for i := range v.Len() {
			n += heldBytes(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += heldBytes(v.Field(i)) - int(v.Field(i).Type().Size())
		}
	}
	return n
}

// Reply encodes the response that the handler filled and sends it in its turn.
func (c *Call) Reply() {
	if !c.row.Hot {
		c.h.metrics.countErrors(c.row, c.resp)
	}
	frame := protocol.AppendResponse(make([]byte, 0, replyBytes), c.Header, c.resp)
	c.ReplyFrame(network.Response{Segs: []network.Seg{{Bytes: frame}}})
}

// replyBytes holds most responses without growing.
const replyBytes = 256

// ReplyFrame sends a response that the handler has encoded itself.
func (c *Call) ReplyFrame(r network.Response) {
	size := 0
	for _, s := range r.Segs {
		size += len(s.Bytes)
		if s.Region != nil {
			size += s.Region.Len()
		}
	}
	c.ends(size)
	c.Net.Complete(r)
}

// NoReply ends a request that has no response (Produce with acks=0).
func (c *Call) NoReply() {
	c.ends(0)
	c.Net.NoResponse()
}

// Hangup closes the connection, with the reason in one log line.
func (c *Call) Hangup(reason string) {
	c.ends(0)
	c.Net.Hangup(reason)
}

// ends is what every ending does, the response's size being known.
func (c *Call) ends(responseBytes int) {
	c.h.metrics.observe(c, responseBytes)
	c.drop()
}

// CountError counts an error code that a Hot row's handler answers with; Reply
// counts those of every other row.
func (c *Call) CountError(code int16) { c.h.metrics.countError(c.row, code) }
