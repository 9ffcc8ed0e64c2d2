package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// Kafka's numbers of the endpoint types (KIP-919).
const (
	endpointBroker     = 1
	endpointController = 2
)

// describeCluster serves DescribeCluster v0-2.
func (h *Handlers) describeCluster(c *Call, req *kmsg.DescribeClusterRequest, resp *kmsg.DescribeClusterResponse) {
	defer c.Reply()
	if err := checkEndpointType(c.Header.Version, req.EndpointType); err != nil {
		resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), protocol.Message(err)
		return
	}
	img := h.Image()
	resp.ClusterID, resp.ControllerID = img.ClusterID, controllerOf(img)
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = authorizedCluster
	}
	for _, b := range img.Brokers() {
		host, port, ok := h.endpoint(c, b)
		if !ok || b.Fenced && !req.IncludeFencedBrokers {
			continue
		}
		resp.Brokers = append(resp.Brokers, clusterBroker(b, host, port))
	}
}

func checkEndpointType(version int16, endpointType int8) error {
	switch {
	case version == 0 || endpointType == endpointBroker:
		return nil
	case endpointType == endpointController:
		return protocol.Errorf(kerr.MismatchedEndpointType,
			"The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
	}
	return protocol.Errorf(kerr.UnsupportedEndpointType, "Unsupported endpoint type %d", endpointType)
}

func clusterBroker(b *metadata.Broker, host string, port int32) kmsg.DescribeClusterResponseBroker {
	row := kmsg.NewDescribeClusterResponseBroker()
	row.NodeID, row.Host, row.Port, row.Rack, row.IsFenced = b.ID, host, port, rackOf(b), b.Fenced
	return row
}
