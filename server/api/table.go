package api

import "github.com/twmb/franz-go/pkg/kmsg"

// API is one row of Table.
type API struct {
	Key, Min, Max int16
	// Name is Kafka's name of the API, as in metric labels.
	Name string
	// Inline says that the handler never blocks: it may run on an event loop.
	Inline bool
	// AdvertiseMin is the lowest version ApiVersions lists when it differs from
	// Min (Produce is listed from 0, as in Kafka 4).
	AdvertiseMin int16
	serve        func(*Handlers, *Call, kmsg.Request)
	newRequest   func() kmsg.Request
}

// Table lists every API that is served. A handler must not read it (that is an
// initialization cycle): Handlers has a copy.
var Table = []API{}

// rowOf makes a row from a handler; key and types come from the request type.
// Every version that kmsg knows from min on is served.
func rowOf[Req any, PReq interface {
	*Req
	kmsg.Request
}, Resp any](min int16, inline bool, handle func(*Handlers, *Call, *Req, *Resp)) API {
	newReq := func() kmsg.Request {
		r := PReq(new(Req))
		if d, ok := any(r).(interface{ Default() }); ok {
			d.Default()
		}
		return r
	}
	probe := newReq()
	return API{
		Key: probe.Key(), Min: min, Max: probe.MaxVersion(), AdvertiseMin: min,
		Name: kmsg.NameForKey(probe.Key()), Inline: inline, newRequest: newReq,
		serve: func(h *Handlers, c *Call, req kmsg.Request) {
			c.resp = req.ResponseKind()
			handle(h, c, (*Req)(req.(PReq)), any(c.resp).(*Resp))
		},
	}
}
