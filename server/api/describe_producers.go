package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// describeProducers serves DescribeProducers v0 (KIP-664): every producer with an id
// of which a partition knows, idempotent ones too.
func (h *Handlers) describeProducers(c *Call, req *kmsg.DescribeProducersRequest, resp *kmsg.DescribeProducersResponse) {
	img := h.Image()
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = t.Topic
		for _, partition := range t.Partitions {
			row := kmsg.NewDescribeProducersResponseTopicPartition()
			row.Partition = partition
			states, err := h.producersOf(img, t.Topic, partition)
			if err != nil {
				row.ErrorCode, row.ErrorMessage = protocol.Code(err), protocol.Message(err)
			}
			for _, s := range states {
				row.ActiveProducers = append(row.ActiveProducers, kmsg.DescribeProducersResponseTopicPartitionActiveProducer{
					ProducerID: s.ProducerID, ProducerEpoch: int32(s.ProducerEpoch), LastSequence: s.LastSequence,
					LastTimestamp: s.LastTimestampMs, CoordinatorEpoch: s.CoordinatorEpoch, CurrentTxnStartOffset: s.CurrentTxnFirstOffset,
				})
			}
			if !c.keep(row) {
				c.hangupTooLarge()
				return
			}
			out.Partitions = append(out.Partitions, row)
		}
		resp.Topics = append(resp.Topics, out)
	}
	c.Reply()
}

func (h *Handlers) producersOf(img *metadata.Image, topic string, partition int32) ([]storage.ProducerState, error) {
	p, err := h.partition(img, topic, partition)
	if err != nil {
		return nil, err
	}
	return p.Producers()
}
