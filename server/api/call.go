package api

import (
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
}

// Conn is the connection that the request came on.
func (c *Call) Conn() *network.Conn { return c.Net.Conn }

// ClientHost is the peer's address as Kafka shows it in groups, "/127.0.0.1".
func (c *Call) ClientHost() string { return "/" + c.Net.Conn.RemoteHost() }

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
	c.h.metrics.observe(c, size)
	c.Net.Complete(r)
}

// NoReply ends a request that has no response (Produce with acks=0).
func (c *Call) NoReply() {
	c.h.metrics.observe(c, 0)
	c.Net.NoResponse()
}

// Hangup closes the connection, with the reason in one log line.
func (c *Call) Hangup(reason string) {
	c.h.metrics.observe(c, 0)
	c.Net.Hangup(reason)
}

// CountError counts an error code that a Hot row's handler answers with; Reply
// counts those of every other row.
func (c *Call) CountError(code int16) { c.h.metrics.countError(c.row, code) }
