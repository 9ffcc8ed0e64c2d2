package network

import (
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

// metrics of one server. Bytes are counted in atomics of our own because every turn
// adds to them.
type metrics struct {
	bytesIn, bytesOut atomic.Int64
	pauses            *telemetry.Counter
	accepted          *telemetry.Counter
	refused           *telemetry.Counter
	closed            *telemetry.Counter
	panics            *telemetry.Counter
}

func newMetrics(r *telemetry.Registry, s *Server) *metrics {
	m := &metrics{
		accepted: r.Counter("barnabas_network_connections_accepted_total", "Connections that were accepted.", "listener"),
		refused: r.Counter("barnabas_network_connections_refused_total",
			"Connections that were not served at once: per_ip (closed), waiting (at max.connections), accept (the system has no files or memory).", "reason"),
		closed: r.Counter("barnabas_network_connections_closed_total", "Connections that ended, by who or what ended them.", "reason"),
		panics: r.Counter("barnabas_network_panics_total", "Panics in serving a connection, such as of a request's handler; the connection was closed."),
		pauses: r.Counter("barnabas_network_pauses_total", "Times a connection was no longer read because it, or all together, held too much."),
	}
	r.GaugeFunc("barnabas_network_connections", "Open client connections.", func() float64 { return float64(s.Connections()) })
	r.CounterFunc("barnabas_network_received_bytes_total", "Bytes received from clients.", func() float64 { return float64(m.bytesIn.Load()) })
	r.CounterFunc("barnabas_network_sent_bytes_total", "Bytes sent to clients.", func() float64 { return float64(m.bytesOut.Load()) })
	r.GaugeFunc("barnabas_network_request_memory_bytes", "Memory held by requests, of queued.max.request.bytes.",
		func() float64 { return float64(s.budget.usedBytes.Load()) })
	r.GaugeFunc("barnabas_network_request_memory_waiting", "Connections that wait for request memory.",
		func() float64 { return float64(s.budget.waiting()) })
	r.GaugeFunc("barnabas_network_response_memory_bytes", "Memory held by responses that clients have not read.",
		func() float64 { return float64(s.outHeapBytes.Load()) })
	return m
}
