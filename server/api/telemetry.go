package api

import (
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/server/clientmetrics"
)

// ClientMetrics takes the metrics that clients push (KIP-714).
type ClientMetrics interface {
	// Subscribed tells whether any client is to push at all.
	Subscribed() bool
	Get(c clientmetrics.Client) (clientmetrics.ID, clientmetrics.Subscription, *kerr.Error)
	// Push may wait: it is not for an event loop.
	Push(c clientmetrics.Client, p clientmetrics.Push) *kerr.Error
	// Disconnected tells that the connection of a client has closed, Replaced that
	// its connection speaks for another client now.
	Disconnected(id clientmetrics.ID)
	Replaced(id clientmetrics.ID)
}

// advertisesTelemetry tells whether clients learn of the telemetry APIs. Apache Kafka
// names them where a receiver is configured; here that is where there is a
// subscription. Clients that see them ask on every connection, and librdkafka writes
// a line on its program's stderr each time. Whoever asks is served all the same.
func (h *Handlers) advertisesTelemetry() bool {
	return h.ClientMetrics != nil && h.ClientMetrics.Subscribed()
}

func isTelemetry(key int16) bool {
	return key == int16(kmsg.GetTelemetrySubscriptions) || key == int16(kmsg.PushTelemetry)
}

// pushCodecs are the codecs that clients may push with, the preferred one first.
var pushCodecs = []int8{int8(batch.Zstd), int8(batch.LZ4), int8(batch.Gzip), int8(batch.Snappy)}

// getTelemetrySubscriptions serves GetTelemetrySubscriptions v0.
func (h *Handlers) getTelemetrySubscriptions(c *Call, req *kmsg.GetTelemetrySubscriptionsRequest, resp *kmsg.GetTelemetrySubscriptionsResponse) {
	defer c.Reply()
	id, told, refused := h.ClientMetrics.Get(metricsClient(c, req.ClientInstanceID))
	if refused != nil {
		resp.ErrorCode = refused.Code
		return
	}
	resp.ClientInstanceID, resp.SubscriptionID = id, told.ID
	resp.AcceptedCompressionTypes = pushCodecs
	resp.PushIntervalMillis, resp.TelemetryMaxBytes = told.IntervalMs, h.TelemetryMaxBytes
	resp.DeltaTemporality = true
	resp.RequestedMetrics = told.Metrics
	h.speaksFor(c, id)
}

// pushTelemetry serves PushTelemetry v0.
func (h *Handlers) pushTelemetry(c *Call, req *kmsg.PushTelemetryRequest, resp *kmsg.PushTelemetryResponse) {
	defer c.Reply()
	refused := h.ClientMetrics.Push(metricsClient(c, req.ClientInstanceID), clientmetrics.Push{
		SubscriptionID: req.SubscriptionID, Terminating: req.Terminating, Codec: batch.Codec(req.CompressionType), Data: req.Metrics,
	})
	if refused != nil {
		resp.ErrorCode = refused.Code
	}
	h.speaksFor(c, req.ClientInstanceID)
}

// speaksFor notes the instance that a connection speaks for. A client has one, so
// that a connection that comes with another gives up the one before: it could fill
// the table of instances, and push those of others out, by itself.
func (h *Handlers) speaksFor(c *Call, id clientmetrics.ID) {
	s := sessionOf(c.Conn())
	switch before := s.metricsID.Swap(&id); {
	case before == nil:
		c.Conn().OnClose(func() { h.ClientMetrics.Disconnected(*s.metricsID.Load()) })
	case *before != id:
		h.ClientMetrics.Replaced(*before)
	}
}

// unnamedSoftware is what Kafka takes a client for that does not say what it is.
const unnamedSoftware = "unknown"

func metricsClient(c *Call, id clientmetrics.ID) clientmetrics.Client {
	s := sessionOf(c.Conn())
	out := clientmetrics.Client{
		ID: id, ClientID: c.Header.ClientID, SoftwareName: s.softwareName, SoftwareVersion: s.softwareVersion, Address: c.Conn().RemoteHost(),
	}
	if out.SoftwareName == "" {
		out.SoftwareName, out.SoftwareVersion = unnamedSoftware, unnamedSoftware
	}
	if _, port, err := net.SplitHostPort(c.Conn().RemoteAddr().String()); err == nil {
		out.Port = port
	}
	return out
}
