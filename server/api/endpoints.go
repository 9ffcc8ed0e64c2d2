package api

import "github.com/barnabas-mq/barnabas/cluster/metadata"

// endpoint is the address under which the client of c shall reach broker b:
// what b advertises on the listener that the client came in on. An advertised
// endpoint without a host means that none is configured. Then the client is
// told the address under which it reached this broker; another broker of the
// cluster is taken to be on the same host, on its own port. ok is false when b
// has no such listener.
//
// Metadata, FindCoordinator, DescribeCluster and the node endpoints of Produce
// v10 and Fetch v16 all answer from here, so that a client never sees two
// addresses for one broker.
func (h *Handlers) endpoint(c *Call, b *metadata.Broker) (host string, port int32, ok bool) {
	return endpointOf(b, h.NodeID, c.Conn().Listener(), c.Conn().Reach)
}

func endpointOf(b *metadata.Broker, self int32, listener string, reach func() (string, int32)) (host string, port int32, ok bool) {
	e, ok := b.Endpoint(listener)
	if !ok || e.Host != "" {
		return e.Host, e.Port, ok
	}
	host, port = reach()
	if b.ID != self {
		port = e.Port
	}
	return host, port, true
}

// reachable lists the brokers that the client of c can be sent to, in order of
// their ids: neither fenced nor without its listener.
func (h *Handlers) reachable(c *Call, img *metadata.Image, each func(b *metadata.Broker, host string, port int32)) {
	for _, b := range img.Brokers() {
		if b.Fenced {
			continue
		}
		if host, port, ok := h.endpoint(c, b); ok {
			each(b, host, port)
		}
	}
}

// controllerOf is the active controller as clients are told, -1 while it is no broker
// that they could reach.
func controllerOf(img *metadata.Image) int32 {
	if b, ok := img.Broker(img.ControllerID); !ok || b.Fenced {
		return -1
	}
	return img.ControllerID
}

// rackOf is the rack for a response: null when the broker has none.
func rackOf(b *metadata.Broker) *string {
	if b.Rack == "" {
		return nil
	}
	return &b.Rack
}
