package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

// electLeaders serves ElectLeaders v0-2 (KIP-183, KIP-460).
func (h *Handlers) electLeaders(c *Call, req *kmsg.ElectLeadersRequest, resp *kmsg.ElectLeadersResponse) {
	h.decide(c, req, func(decided kmsg.Response, err error) {
		if err == nil {
			*resp = *decided.(*kmsg.ElectLeadersResponse)
			return
		}
		resp.ErrorCode = protocol.Code(err)
		for _, t := range req.Topics {
			topic := kmsg.NewElectLeadersResponseTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				row := kmsg.NewElectLeadersResponseTopicPartition()
				row.Partition, row.ErrorCode, row.ErrorMessage = p, resp.ErrorCode, ownText(err)
				topic.Partitions = append(topic.Partitions, row)
			}
			resp.Topics = append(resp.Topics, topic)
		}
	})
}

// alterAssignments serves AlterPartitionReassignments v0-1 (KIP-455).
func (h *Handlers) alterAssignments(c *Call, req *kmsg.AlterPartitionAssignmentsRequest, resp *kmsg.AlterPartitionAssignmentsResponse) {
	h.decide(c, req, func(decided kmsg.Response, err error) {
		if err == nil {
			*resp = *decided.(*kmsg.AlterPartitionAssignmentsResponse)
			return
		}
		resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
		resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), ownText(err)
		for _, t := range req.Topics {
			topic := kmsg.NewAlterPartitionAssignmentsResponseTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				row := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
				row.Partition, row.ErrorCode, row.ErrorMessage = p.Partition, resp.ErrorCode, ownText(err)
				topic.Partitions = append(topic.Partitions, row)
			}
			resp.Topics = append(resp.Topics, topic)
		}
	})
}

// listReassignments serves ListPartitionReassignments v0. It changes nothing, so
// that its time-out does not matter.
func (h *Handlers) listReassignments(c *Call, req *kmsg.ListPartitionReassignmentsRequest, resp *kmsg.ListPartitionReassignmentsResponse) {
	h.decideAnyTime(c, req, func(decided kmsg.Response, err error) {
		if err == nil {
			*resp = *decided.(*kmsg.ListPartitionReassignmentsResponse)
			return
		}
		resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), ownText(err)
	})
}
