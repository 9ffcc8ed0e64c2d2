package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

// offsetForLeaderEpoch serves OffsetForLeaderEpoch v0 to v4 (KIP-101, 279, 320).
func (h *Handlers) offsetForLeaderEpoch(c *Call, req *kmsg.OffsetForLeaderEpochRequest, resp *kmsg.OffsetForLeaderEpochResponse) {
	img := h.Image()
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		for j := range t.Partitions {
			in := &t.Partitions[j]
			row := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			row.Partition, row.LeaderEpoch, row.EndOffset = in.Partition, -1, -1
			p, err := h.partition(img, t.Topic, in.Partition)
			if err == nil {
				end, endErr := p.EndOffsetForEpoch(in.CurrentLeaderEpoch, in.LeaderEpoch)
				row.LeaderEpoch, row.EndOffset, err = end.Epoch, end.EndOffset, endErr
			}
			row.ErrorCode = protocol.Code(err)
			out.Partitions = append(out.Partitions, row)
		}
		resp.Topics = append(resp.Topics, out)
	}
	c.Reply()
}
