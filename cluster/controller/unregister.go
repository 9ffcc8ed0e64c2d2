package controller

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// unregisterBroker forgets a broker, also one that lives: what it led is led by
// the next in sync, or by nobody until the broker starts again and registers.
func (m *Machine) unregisterBroker(img *metadata.Image, req *kmsg.UnregisterBrokerRequest) Decision {
	resp := req.ResponseKind().(*kmsg.UnregisterBrokerResponse)
	if _, ok := img.Broker(req.BrokerID); !ok {
		resp.ErrorCode = kerr.BrokerIDNotRegistered.Code
		resp.ErrorMessage = kmsg.StringPtr("Broker ID " + strconv.Itoa(int(req.BrokerID)) + " is not currently registered")
		return Decision{Response: resp}
	}
	resp.ErrorMessage = kmsg.StringPtr("") // as Kafka
	d := Decision{Response: resp}
	for t := range img.Topics() {
		for _, p := range t.Partitions {
			if rec := leaveISR(img, t, p, req.BrokerID); rec != nil {
				d.Records = append(d.Records, rec)
			}
		}
	}
	d.Records = append(d.Records, &metadata.UnregisterBrokerRecord{BrokerID: req.BrokerID})
	return d
}

// leaveISR takes a broker out of a partition's ISR and leadership. The last in
// sync stays in the ISR: nobody else may lead without a loss.
func leaveISR(img *metadata.Image, t *metadata.Topic, p *metadata.Partition, broker int32) metadata.Record {
	if !slices.Contains(p.ISR, broker) && p.Leader != broker {
		return nil
	}
	rec := &metadata.PartitionChangeRecord{TopicID: t.ID, Index: p.Index}
	rest := without(p.ISR, []int32{broker})
	if len(rest) > 0 {
		rec.ISR = rest
	}
	if p.Leader != broker {
		if rec.ISR == nil {
			return nil
		}
		return rec
	}
	rec.Leader = new(int32(-1))
	for _, id := range p.Replicas {
		if slices.Contains(rest, id) && live(img, id) {
			rec.Leader = &id
			break
		}
	}
	return rec
}
