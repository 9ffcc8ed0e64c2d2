package controller

import (
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// producerIDBlock is Kafka's size of a block; ids are never handed out twice.
const producerIDBlock = 1000

func (m *Machine) allocateProducerIDs(img *metadata.Image, req *kmsg.AllocateProducerIDsRequest) Decision {
	resp := req.ResponseKind().(*kmsg.AllocateProducerIDsResponse)
	d := Decision{Response: resp}
	first := img.NextProducerID()
	switch b, ok := img.Broker(req.BrokerID); {
	case !ok || b.Epoch != req.BrokerEpoch:
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
	case first > math.MaxInt64-producerIDBlock:
		resp.ErrorCode = kerr.UnknownServerError.Code
	default:
		resp.ProducerIDStart, resp.ProducerIDLen = first, producerIDBlock
		d.Records = []metadata.Record{&metadata.ProducerIDsRecord{
			BrokerID: req.BrokerID, BrokerEpoch: req.BrokerEpoch, Next: first + producerIDBlock,
		}}
	}
	return d
}

// registerBroker takes a broker that has just started. The lock on its data
// folder proves that its former self is dead, so it replaces that at once.
func (m *Machine) registerBroker(img *metadata.Image, req *kmsg.BrokerRegistrationRequest) Decision {
	resp := req.ResponseKind().(*kmsg.BrokerRegistrationResponse)
	resp.BrokerEpoch = -1
	d := Decision{Response: resp}
	if req.ClusterID != img.ClusterID {
		resp.ErrorCode = kerr.InconsistentClusterID.Code
		return d
	}
	rec := &metadata.RegisterBrokerRecord{BrokerID: req.BrokerID, IncarnationID: req.IncarnationID}
	if req.Rack != nil {
		rec.Rack = *req.Rack
	}
	for _, l := range req.Listeners {
		rec.Endpoints = append(rec.Endpoints, metadata.Endpoint{
			Listener: l.Name, Host: l.Host, Port: int32(l.Port), SecurityProtocol: l.SecurityProtocol,
		})
	}
	d.Records = append(d.Records, rec)
	d.Records = append(d.Records, m.firstLevels(img)...)
	if old, ok := img.Broker(req.BrokerID); !ok || old.IncarnationID != req.IncarnationID {
		d.Records = append(d.Records, reElect(img, req.BrokerID)...)
	}
	d.Finish = func(img *metadata.Image) {
		if b, ok := img.Broker(req.BrokerID); ok {
			resp.BrokerEpoch = b.Epoch
		}
	}
	return d
}

// reElect makes a broker that has started again the leader of what it led, and
// of what waits for a leader in its ISR, each with a new leader epoch: whatever
// its former self had under way is fenced off. A sole replica is always chosen
// again, or a node alone would never return after a crash.
func reElect(img *metadata.Image, broker int32) (records []metadata.Record) {
	for t := range img.Topics() {
		for _, p := range t.Partitions {
			led := p.Leader == broker || (p.Leader < 0 && slices.Contains(p.ISR, broker))
			if led {
				records = append(records, &metadata.PartitionChangeRecord{
					TopicID: t.ID, Index: p.Index, Leader: new(broker),
				})
			}
		}
	}
	return records
}
