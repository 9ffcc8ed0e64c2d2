package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// markerTask is one marker for one partition.
type markerTask struct {
	row *kmsg.WriteTxnMarkersResponseMarkerTopicPartition
	tp  storage.TopicPartition
	m   replica.Marker
}

// writeTxnMarkers serves WriteTxnMarkers v1 and v2, by which the coordinator of
// another broker, or a tool that ends a hanging transaction (KIP-664), writes
// markers to the partitions that this broker leads.
func (h *Handlers) writeTxnMarkers(c *Call, req *kmsg.WriteTxnMarkersRequest, resp *kmsg.WriteTxnMarkersResponse) {
	tasks := markerTasks(req, resp)
	gather(len(tasks), func(i int, done func(error)) {
		h.writeMarker(tasks[i].tp, tasks[i].m, done)
	}, func(errs []error) {
		h.guard(c, func() {
			for i, err := range errs {
				tasks[i].row.ErrorCode = markerCode(err)
			}
			c.Reply()
		})
	})
}

// markerTasks lays the response out as the request is.
func markerTasks(req *kmsg.WriteTxnMarkersRequest, resp *kmsg.WriteTxnMarkersResponse) []markerTask {
	rows := 0
	for i := range req.Markers {
		for j := range req.Markers[i].Topics {
			rows += len(req.Markers[i].Topics[j].Partitions)
		}
	}
	tasks := make([]markerTask, 0, rows)
	resp.Markers = make([]kmsg.WriteTxnMarkersResponseMarker, len(req.Markers))
	for i := range req.Markers {
		in, out := &req.Markers[i], &resp.Markers[i]
		out.Default()
		out.ProducerID = in.ProducerID
		m := replica.Marker{
			ProducerID: in.ProducerID, ProducerEpoch: in.ProducerEpoch, CoordinatorEpoch: in.CoordinatorEpoch,
			Commit: in.Committed, TransactionVersion: int16(in.TransactionVersion),
		}
		out.Topics = make([]kmsg.WriteTxnMarkersResponseMarkerTopic, len(in.Topics))
		for j := range in.Topics {
			t := &out.Topics[j]
			t.Default()
			t.Topic = in.Topics[j].Topic
			t.Partitions = make([]kmsg.WriteTxnMarkersResponseMarkerTopicPartition, len(in.Topics[j].Partitions))
			for k, p := range in.Topics[j].Partitions {
				row := &t.Partitions[k]
				row.Default()
				row.Partition = p
				tasks = append(tasks, markerTask{row, storage.TopicPartition{Topic: t.Topic, Partition: p}, m})
			}
		}
	}
	return tasks
}

// errNoPartitionToMark is one value, because a request may name millions of
// partitions that are not here; nobody is shown its text.
var errNoPartitionToMark = protocol.Errorf(kerr.UnknownTopicOrPartition, "this broker has no such partition")

// errNoMarker is of a marker that belongs to no producer, which Kafka refuses too.
var errNoMarker = protocol.Errorf(kerr.InvalidRequest, "a marker needs a producer id, an epoch and a transaction version")

// writeMarker writes one marker; the offsets of a transaction are the group
// coordinator's to end.
func (h *Handlers) writeMarker(tp storage.TopicPartition, m replica.Marker, done func(error)) {
	p, ok := h.Partitions.Partition(tp.Topic, tp.Partition)
	switch {
	case !ok:
		done(errNoPartitionToMark)
	case m.ProducerID < 0 || m.ProducerEpoch < 0 || m.TransactionVersion < 0:
		done(errNoMarker)
	case tp.Topic == group.Topic:
		h.Groups.CompleteTransaction(tp.Partition, m, done)
	default:
		p.WriteMarker(m, done)
	}
}

// markerCode is the code of a marker's outcome. Another broker's coordinator knows
// a partition of offsets as any other: one that nobody coordinates here now is led
// elsewhere.
func markerCode(err error) int16 {
	for _, e := range []*kerr.Error{kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator} {
		if errors.Is(err, e) {
			return kerr.NotLeaderForPartition.Code
		}
	}
	return protocol.Code(err)
}
