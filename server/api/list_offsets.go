package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/protocol"
)

// specialSince is the first version that knows each special timestamp: max
// timestamp is KIP-734, earliest local KIP-405, latest tiered KIP-1005, earliest
// pending upload KIP-1023.
var specialSince = map[int64]int16{
	replica.TimestampLatest:                0,
	replica.TimestampEarliest:              0,
	replica.TimestampMax:                   7,
	replica.TimestampEarliestLocal:         8,
	replica.TimestampLatestTiered:          9,
	replica.TimestampEarliestPendingUpload: 11,
}

// listOffsets serves ListOffsets v0 to v11.
func (h *Handlers) listOffsets(c *Call, req *kmsg.ListOffsetsRequest, resp *kmsg.ListOffsetsResponse) {
	img := h.Image()
	seen := map[partitionKey]int{}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			seen[partitionKey{req.Topics[i].Topic, req.Topics[i].Partitions[j].Partition}]++
		}
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for j := range t.Partitions {
			row := kmsg.NewListOffsetsResponseTopicPartition()
			row.Partition = t.Partitions[j].Partition
			row.Timestamp, row.Offset, row.LeaderEpoch = -1, -1, -1
			var err error
			key := partitionKey{t.Topic, row.Partition}
			switch seen[key] {
			case 0:
				continue // it was answered already
			case 1:
				err = h.listOffset(img, req, t.Topic, &t.Partitions[j], &row)
			default:
				seen[key] = 0
				err = protocol.Errorf(kerr.InvalidRequest, "partition %s-%d is asked for twice", t.Topic, row.Partition)
			}
			row.ErrorCode = listOffsetsCode(req.Version, err)
			out.Partitions = append(out.Partitions, row)
		}
		resp.Topics = append(resp.Topics, out)
	}
	c.Reply()
}

// partitionKey names a partition in a request.
type partitionKey struct {
	topic     string
	partition int32
}

// listOffsetsCode is an error's code; clients before v5 don't know
// OFFSET_NOT_AVAILABLE.
func listOffsetsCode(version int16, err error) int16 {
	if version < 5 && errors.Is(err, kerr.OffsetNotAvailable) {
		return kerr.LeaderNotAvailable.Code
	}
	return protocol.Code(err)
}

func (h *Handlers) listOffset(img *metadata.Image, req *kmsg.ListOffsetsRequest, topic string, in *kmsg.ListOffsetsRequestTopicPartition, row *kmsg.ListOffsetsResponseTopicPartition) error {
	if since, ok := specialSince[in.Timestamp]; in.Timestamp < 0 && (!ok || req.Version < since) {
		return protocol.Errorf(kerr.UnsupportedVersion, "ListOffsets v%d has no timestamp %d", req.Version, in.Timestamp)
	}
	p, err := h.partition(img, topic, in.Partition)
	if err != nil {
		return err
	}
	q := replica.OffsetQuery{
		TimestampMs: in.Timestamp, LeaderEpoch: in.CurrentLeaderEpoch,
		// A consumer is -1; any other, a debugging consumer (-2) too, sees the
		// end of the log.
		Follower: req.ReplicaID != -1, Committed: req.IsolationLevel == readCommitted,
	}
	if req.Version == 0 {
		return oldStyleOffsets(p, in, q.Follower, row)
	}
	found, err := p.Offset(q)
	if err != nil {
		return err
	}
	row.Timestamp, row.Offset, row.LeaderEpoch = found.TimestampMs, found.Offset, found.LeaderEpoch
	return nil
}

// oldStyleOffsets is v0's array, newest first: at most as many as asked for. It
// knows when segments were written and nothing of the records' timestamps.
func oldStyleOffsets(p *replica.Partition, in *kmsg.ListOffsetsRequestTopicPartition, follower bool, row *kmsg.ListOffsetsResponseTopicPartition) error {
	offsets, err := p.OffsetsBefore(in.Timestamp, follower)
	row.OldStyleOffsets = append([]int64{}, offsets[:max(min(int(in.MaxNumOffsets), len(offsets)), 0)]...)
	return err
}
