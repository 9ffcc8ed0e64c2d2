package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// describePartitionsMax is max.request.partition.size.limit: what one response
// may list.
const describePartitionsMax = 2000

// describeTopicPartitions serves DescribeTopicPartitions v0 (KIP-966): topics in
// order of their names, partition by partition, from the cursor on.
func (h *Handlers) describeTopicPartitions(c *Call, req *kmsg.DescribeTopicPartitionsRequest, resp *kmsg.DescribeTopicPartitionsResponse) {
	defer c.Reply()
	if req.Cursor != nil && (req.Cursor.Partition < 0 || protocol.CheckTopicName(req.Cursor.Topic) != nil) {
		for _, t := range req.Topics {
			row := kmsg.NewDescribeTopicPartitionsResponseTopic()
			row.ErrorCode, row.Topic = kerr.InvalidRequest.Code, &t.Topic
			resp.Topics = append(resp.Topics, row)
		}
		return
	}
	img := h.Image()
	p := &topicPage{
		img: img, resp: resp,
		view: partitionView{img: img, listener: c.Conn().Listener()},
		left: max(min(int(req.ResponsePartitionLimit), describePartitionsMax), 1),
	}
	if req.Cursor != nil {
		p.fromTopic, p.fromPartition = req.Cursor.Topic, int(req.Cursor.Partition)
	}
	if len(req.Topics) == 0 {
		for t := range img.TopicsAfter(p.fromTopic) {
			if !p.add(t.Name, t) {
				return
			}
		}
		return
	}
	for _, name := range p.names(req.Topics) {
		t, _ := img.Topic(name)
		if !p.add(name, t) {
			return
		}
	}
}

// topicPage fills one response up to its limit.
type topicPage struct {
	img           *metadata.Image
	view          partitionView
	resp          *kmsg.DescribeTopicPartitionsResponse
	fromTopic     string
	fromPartition int
	// left is how many partitions fit yet.
	left int
}

// names are the wanted topics from the cursor on, sorted, without repeats.
func (p *topicPage) names(topics []kmsg.DescribeTopicPartitionsRequestTopic) []string {
	var out []string
	for _, t := range topics {
		if t.Topic >= p.fromTopic {
			out = append(out, t.Topic)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// add appends a topic, nil when it does not exist. It is false when the page is
// full and the cursor set.
func (p *topicPage) add(name string, t *metadata.Topic) bool {
	if p.left == 0 {
		p.next(name, 0)
		return false
	}
	row := kmsg.NewDescribeTopicPartitionsResponseTopic()
	row.Topic, row.IsInternal, row.AuthorizedOperations = &name, protocol.IsInternalTopic(name), authorizedTopic
	if t == nil {
		row.ErrorCode = missingTopicCode(name)
		p.resp.Topics = append(p.resp.Topics, row)
		return true
	}
	row.TopicID = t.ID
	first := 0
	if name == p.fromTopic {
		first = min(p.fromPartition, len(t.Partitions))
	}
	end := min(first+p.left, len(t.Partitions))
	for _, partition := range t.Partitions[first:end] {
		row.Partitions = append(row.Partitions, p.partition(partition))
	}
	p.left -= end - first
	p.resp.Topics = append(p.resp.Topics, row)
	if end < len(t.Partitions) {
		p.next(name, end)
		return false
	}
	return true
}

func (p *topicPage) next(topic string, partition int) {
	next := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	next.Topic, next.Partition = topic, int32(partition)
	p.resp.NextCursor = &next
}

func (p *topicPage) partition(from *metadata.Partition) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	row := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	row.Partition, row.LeaderID, row.LeaderEpoch = from.Index, -1, from.LeaderEpoch
	if p.view.reachable(from.Leader) {
		row.LeaderID = from.Leader
	}
	row.Replicas, row.ISR = from.Replicas, from.ISR
	row.EligibleLeaderReplicas, row.LastKnownELR = orEmpty(from.ELR), orEmpty(from.LastKnownELR)
	row.OfflineReplicas = p.view.offline(from)
	return row
}

// orEmpty keeps an empty list from being encoded as null.
func orEmpty(ids []int32) []int32 {
	if ids == nil {
		return []int32{}
	}
	return ids
}
