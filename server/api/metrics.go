package api

import (
	"reflect"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

// metrics counts requests by API. Its methods are safe for concurrent use and do
// nothing when there is no registry.
type metrics struct {
	on     bool
	perAPI [kmsg.MaxKey + 1]apiMetrics
	errors *telemetry.Counter
	// up and down count records that were converted from and to old message
	// formats.
	up, down *telemetry.Counter
}

type apiMetrics struct {
	requests, bytesIn, bytesOut *telemetry.Counter
	seconds                     *telemetry.Histogram
}

func newMetrics(r *telemetry.Registry, table []API) *metrics {
	m := &metrics{on: r != nil}
	requests := r.Counter("barnabas_requests_total", "Requests that were answered, by API.", "api")
	bytesIn := r.Counter("barnabas_request_bytes_total", "Bytes of requests, by API.", "api")
	bytesOut := r.Counter("barnabas_response_bytes_total", "Bytes of responses, by API.", "api")
	seconds := r.Histogram("barnabas_request_seconds", "Time from a request's arrival to its answer, waits included, by API.", "api")
	m.errors = r.Counter("barnabas_request_errors_total", "Error codes in responses, by API and by Kafka's name of the error.", "api", "error")
	converted := r.Counter("barnabas_converted_records_total", "Records that were converted from the message formats of clients before Kafka 0.11 (up) or to them (down).", "direction")
	m.up, m.down = converted.With("up"), converted.With("down")
	for _, row := range table {
		m.perAPI[row.Key] = apiMetrics{requests.With(row.Name), bytesIn.With(row.Name), bytesOut.With(row.Name), seconds.With(row.Name)}
	}
	return m
}

// observe counts a call at its end.
func (m *metrics) observe(c *Call, responseBytes int) {
	if m == nil || !m.on {
		return
	}
	a := &m.perAPI[c.row.Key]
	a.requests.Inc()
	a.bytesIn.Add(float64(c.requestBytes))
	a.bytesOut.Add(float64(responseBytes))
	a.seconds.ObserveDuration(c.h.Clock.Now().Sub(c.start))
}

func (m *metrics) countError(row *API, code int16) {
	if m == nil || !m.on || code == 0 {
		return
	}
	name := kerr.UnknownServerError.Message
	if e := kerr.TypedErrorForCode(code); e != nil {
		name = e.Message
	}
	m.errors.With(row.Name, name).Inc()
}

// convertedUp counts records that came in an old message format.
func (m *metrics) convertedUp(n int32) {
	if m != nil && m.on {
		m.up.Add(float64(n))
	}
}

// convertedDown counts records that went out in an old message format.
func (m *metrics) convertedDown(n int) {
	if m != nil && m.on {
		m.down.Add(float64(n))
	}
}

// countErrors counts every error code in a response.
func (m *metrics) countErrors(row *API, resp kmsg.Response) {
	if m == nil || !m.on {
		return
	}
	v := reflect.ValueOf(resp).Elem()
	planOf(v.Type()).walk(v, func(code int16) { m.countError(row, code) })
}

// errorPlan says where a response type has error codes.
type errorPlan struct {
	codes []int
	// lists are the slice fields whose elements have error codes.
	lists []int
	elem  []*errorPlan
}

var errorPlans sync.Map // reflect.Type -> *errorPlan

func planOf(t reflect.Type) *errorPlan {
	if p, ok := errorPlans.Load(t); ok {
		return p.(*errorPlan)
	}
	p := &errorPlan{}
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Name == "ErrorCode" && f.Type.Kind() == reflect.Int16:
			p.codes = append(p.codes, i)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			if e := planOf(f.Type.Elem()); len(e.codes)+len(e.lists) > 0 {
				p.lists, p.elem = append(p.lists, i), append(p.elem, e)
			}
		}
	}
	errorPlans.Store(t, p)
	return p
}

func (p *errorPlan) walk(v reflect.Value, count func(int16)) {
	for _, i := range p.codes {
		if code := int16(v.Field(i).Int()); code != 0 {
			count(code)
		}
	}
	for k, i := range p.lists {
		list := v.Field(i)
		for j := range list.Len() {
			p.elem[k].walk(list.Index(j), count)
		}
	}
}
