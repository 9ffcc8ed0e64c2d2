package api

import (
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

	resp kmsg.Response
	h    *Handlers
	row  *API
}

// Conn is the connection that the request came on.
func (c *Call) Conn() *network.Conn { return c.Net.Conn }

// ClientHost is the peer's address as Kafka shows it in groups, "/127.0.0.1".
func (c *Call) ClientHost() string { return "/" + c.Net.Conn.RemoteHost() }

// Reply encodes the response that the handler filled and sends it in its turn.
func (c *Call) Reply() {
	c.ReplyFrame(network.Response{Segs: []network.Seg{{Bytes: protocol.AppendResponse(nil, c.Header, c.resp)}}})
}

// ReplyFrame sends a response that the handler has encoded itself.
func (c *Call) ReplyFrame(r network.Response) {
	c.h.observe(c)
	c.Net.Complete(r)
}

// NoReply ends a request that has no response (Produce with acks=0).
func (c *Call) NoReply() {
	c.h.observe(c)
	c.Net.NoResponse()
}

// Hangup closes the connection, with the reason in one log line.
func (c *Call) Hangup(reason string) { c.Net.Hangup(reason) }
