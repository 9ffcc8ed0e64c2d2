package controller

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// alterAssignments moves partitions to other brokers (KIP-455), or stops such
// moves. A partition whose new replicas are all in sync has moved at once.
func (m *Machine) alterAssignments(img *metadata.Image, req *kmsg.AlterPartitionAssignmentsRequest) Decision {
	resp := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	d := Decision{Response: resp}
	changed := map[*metadata.Partition]int{}
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		out.Topic = t.Topic
		for j := range t.Partitions {
			want := &t.Partitions[j]
			p, rec, err := reassign(img, t.Topic, want, req.AllowReplicationFactorChange)
			row := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			row.Partition = want.Partition
			row.ErrorCode, row.ErrorMessage = codeAndText(err)
			if err == kerr.NoReassignmentInProgress {
				row.ErrorMessage = nil // as Kafka
			}
			out.Partitions = append(out.Partitions, row)
			if rec == nil {
				continue
			}
			if at, again := changed[p]; again {
				d.Records[at] = rec // the last word about a partition counts
				continue
			}
			changed[p] = len(d.Records)
			d.Records = append(d.Records, rec)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if len(req.Topics) == 0 {
		resp.ErrorMessage = kmsg.StringPtr("") // as Kafka
	}
	return d
}

// reassign decides one partition; rec is nil when nothing changes.
func reassign(img *metadata.Image, topic string, want *kmsg.AlterPartitionAssignmentsRequestTopicPartition, otherFactor bool) (
	*metadata.Partition, metadata.Record, error,
) {
	t, ok := img.Topic(topic)
	if !ok {
		return nil, nil, protocol.Errorf(kerr.UnknownTopicOrPartition, "Unable to find a topic named %s.", topic)
	}
	p, ok := t.Partition(want.Partition)
	if !ok {
		return nil, nil, protocol.Errorf(kerr.UnknownTopicOrPartition, "Unable to find partition %s:%d.", topic, want.Partition)
	}
	if want.Replicas == nil {
		rec, err := cancelMove(t, p)
		return p, rec, err
	}
	if _, err := checkAssignment(img, want.Partition, want.Replicas, 0); err != nil {
		return nil, nil, err
	}
	settled := settledReplicas(p)
	if !otherFactor && len(want.Replicas) != len(settled) {
		return nil, nil, protocol.Errorf(kerr.InvalidReplicationFactor,
			"The replication factor is changed from %d to %d", len(settled), len(want.Replicas))
	}
	rec, err := move(t, p, want.Replicas, settled)
	return p, rec, err
}

// settledReplicas are a partition's replicas without those that a move under way
// adds.
func settledReplicas(p *metadata.Partition) []int32 {
	return without(p.Replicas, p.AddingReplicas)
}

func without(list, drop []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(list), func(id int32) bool { return slices.Contains(drop, id) })
}

// cancelMove takes back what a move has added.
func cancelMove(t *metadata.Topic, p *metadata.Partition) (metadata.Record, error) {
	if len(p.AddingReplicas) == 0 && len(p.RemovingReplicas) == 0 {
		return nil, kerr.NoReassignmentInProgress
	}
	rec := &metadata.PartitionChangeRecord{
		TopicID: t.ID, Index: p.Index, Replicas: settledReplicas(p), ISR: without(p.ISR, p.AddingReplicas),
		AddingReplicas: []int32{}, RemovingReplicas: []int32{},
	}
	return leadOn(rec, t, p)
}

// move is the change to the replicas in target; nil when they are there already.
func move(t *metadata.Topic, p *metadata.Partition, target, settled []int32) (metadata.Record, error) {
	adding, removing := without(target, settled), without(settled, target)
	rec := &metadata.PartitionChangeRecord{TopicID: t.ID, Index: p.Index}
	if len(without(target, p.ISR)) > 0 {
		// The new replicas come first, as the target has them; those that go stay
		// until the new ones are in sync.
		rec.Replicas = append(slices.Clone(target), removing...)
		rec.AddingReplicas, rec.RemovingReplicas = adding, removing
		if slices.Equal(rec.Replicas, p.Replicas) && slices.Equal(adding, p.AddingReplicas) && slices.Equal(removing, p.RemovingReplicas) {
			return nil, nil
		}
		rec.ISR = without(p.ISR, without(p.Replicas, rec.Replicas))
		return leadOn(rec, t, p)
	}
	if slices.Equal(target, p.Replicas) && len(p.AddingReplicas)+len(p.RemovingReplicas) == 0 {
		return nil, nil
	}
	rec.Replicas, rec.AddingReplicas, rec.RemovingReplicas = slices.Clone(target), []int32{}, []int32{}
	rec.ISR = without(p.ISR, without(p.ISR, target))
	return leadOn(rec, t, p)
}

// leadOn gives a partition a leader that stays; there must be one in sync.
func leadOn(rec *metadata.PartitionChangeRecord, t *metadata.Topic, p *metadata.Partition) (metadata.Record, error) {
	if len(rec.ISR) == 0 {
		return nil, protocol.Errorf(kerr.InvalidReplicaAssignment,
			"Unable to revert partition assignment for %s:%d to %v because it would require an unclean leader election.", t.Name, p.Index, rec.Replicas)
	}
	if p.Leader < 0 || slices.Contains(rec.ISR, p.Leader) {
		return rec, nil
	}
	for _, id := range rec.Replicas {
		if slices.Contains(rec.ISR, id) {
			rec.Leader = &id
			break
		}
	}
	return rec, nil
}

// listReassignments lists the moves under way; it is decided like a change so that
// it sees every change before it.
func (m *Machine) listReassignments(img *metadata.Image, req *kmsg.ListPartitionReassignmentsRequest) Decision {
	resp := req.ResponseKind().(*kmsg.ListPartitionReassignmentsResponse)
	asked := map[string]map[int32]bool{}
	if req.Topics == nil {
		for t := range img.Topics() {
			asked[t.Name] = nil
		}
	}
	for _, t := range req.Topics {
		if asked[t.Topic] == nil {
			asked[t.Topic] = map[int32]bool{}
		}
		for _, p := range t.Partitions {
			asked[t.Topic][p] = true
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(asked), cmp.Compare) {
		t, ok := img.Topic(name)
		if !ok {
			continue
		}
		out := kmsg.NewListPartitionReassignmentsResponseTopic()
		out.Topic = name
		for _, p := range t.Partitions {
			moving := len(p.AddingReplicas)+len(p.RemovingReplicas) > 0
			if !moving || req.Topics != nil && !asked[name][p.Index] {
				continue
			}
			row := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
			row.Partition, row.Replicas = p.Index, p.Replicas
			row.AddingReplicas, row.RemovingReplicas = p.AddingReplicas, p.RemovingReplicas
			out.Partitions = append(out.Partitions, row)
		}
		if len(out.Partitions) > 0 {
			resp.Topics = append(resp.Topics, out)
		}
	}
	return Decision{Response: resp}
}
