package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// deleteRecords serves DeleteRecords v0 to v2 (KIP-107). With one replica the new
// log start holds everywhere as soon as it holds here, so there is no wait for
// the others.
func (h *Handlers) deleteRecords(c *Call, req *kmsg.DeleteRecordsRequest, resp *kmsg.DeleteRecordsResponse) {
	img := h.Image()
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = t.Topic
		for j := range t.Partitions {
			row := kmsg.NewDeleteRecordsResponseTopicPartition()
			row.Partition = t.Partitions[j].Partition
			low, err := h.deleteRecordsOf(img, c, t.Topic, row.Partition, t.Partitions[j].Offset)
			row.LowWatermark, row.ErrorCode = low, protocol.Code(err)
			out.Partitions = append(out.Partitions, row)
		}
		resp.Topics = append(resp.Topics, out)
	}
	c.Reply()
}

func (h *Handlers) deleteRecordsOf(img *metadata.Image, c *Call, topic string, partition int32, offset int64) (lowWatermark int64, err error) {
	p, err := h.partition(img, topic, partition)
	if err != nil {
		return -1, err
	}
	if p.Internal() && c.Header.ClientID != adminClientID {
		return -1, protocol.Errorf(kerr.InvalidTopicException, "records of the internal topic %s can't be deleted", topic)
	}
	return p.DeleteRecords(offset)
}
