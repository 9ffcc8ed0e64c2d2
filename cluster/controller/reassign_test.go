package controller

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func assigning(topic string, partition int32, replicas []int32) *kmsg.AlterPartitionAssignmentsRequest {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{
		Topic: topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: partition, Replicas: replicas}},
	}}
	return req
}

func (b *bench) assign(topic string, partition int32, replicas ...int32) string {
	b.t.Helper()
	return b.assigned(assigning(topic, partition, replicas))
}

func (b *bench) assigned(req *kmsg.AlterPartitionAssignmentsRequest) string {
	b.t.Helper()
	resp := b.must(req).(*kmsg.AlterPartitionAssignmentsResponse)
	p := resp.Topics[0].Partitions[0]
	return verdictText(fmt.Sprint(p.Partition), p.ErrorCode, p.ErrorMessage)
}

func (b *bench) moves(topics ...kmsg.ListPartitionReassignmentsRequestTopic) (lines []string) {
	b.t.Helper()
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.Topics = topics
	for _, t := range b.must(req).(*kmsg.ListPartitionReassignmentsResponse).Topics {
		for _, p := range t.Partitions {
			lines = append(lines, fmt.Sprintf("%s-%d: %v + %v - %v", t.Topic, p.Partition, p.Replicas, p.AddingReplicas, p.RemovingReplicas))
		}
	}
	return lines
}

// TestReassignOnOneNode has Apache Kafka's own answers.
func TestReassignOnOneNode(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("t", 2, 1)))
	before := b.img.Offset
	const bad = "39 The manual partition assignment includes "
	for _, c := range []struct {
		topic     string
		partition int32
		replicas  []int32
		want      string
	}{
		{"t", 0, []int32{1}, "0: 0"},
		{"t", 1, nil, "1: 85"},
		{"t", 7, []int32{1}, "7: 3 Unable to find partition t:7."},
		{"t", -1, []int32{1}, "-1: 3 Unable to find partition t:-1."},
		{"none", 0, []int32{1}, "0: 3 Unable to find a topic named none."},
		{"t", 0, []int32{2}, "0: " + bad + "broker 2, but no such broker is registered."},
		{"t", 0, []int32{1, 2}, "0: " + bad + "broker 2, but no such broker is registered."},
		{"t", 0, []int32{}, "0: " + bad + "an empty replica list."},
		{"t", 0, []int32{1, 1}, "0: " + bad + "the broker 1 more than once."},
	} {
		for _, otherFactor := range []bool{false, true} {
			req := assigning(c.topic, c.partition, c.replicas)
			req.AllowReplicationFactorChange = otherFactor
			if got := b.assigned(req); got != c.want {
				t.Errorf("%s-%d to %v: %s, want %s", c.topic, c.partition, c.replicas, got, c.want)
			}
		}
	}
	if b.img.Offset != before {
		t.Error("what changes nothing makes records")
	}
	same(t, "moves", b.moves())
}

// TestReassign moves among three brokers, of which those in sync take over at once.
func TestReassign(t *testing.T) {
	b := newBench(t, testConfig())
	for id := range int32(4) {
		b.register(id+1, 1)
	}
	b.must(createTopics(by(topic("t", -1, -1), []int32{1, 2}, []int32{1, 2}), by(topic("u", -1, -1), []int32{1, 2})))
	step := func(replicas []int32, want, state string) {
		t.Helper()
		if got := b.assign("t", 0, replicas...); got != want {
			t.Errorf("to %v: %s, want %s", replicas, got, want)
		}
		if got := b.led("t", 0); got != state {
			t.Errorf("to %v: %s, want %s", replicas, got, state)
		}
	}
	step([]int32{2, 1}, "0: 0", "leader 1 of [2 1], in sync [1 2]")
	step([]int32{2}, "0: 0", "leader 2 of [2], in sync [2]")
	step([]int32{3, 2}, "0: 0", "leader 2 of [3 2], in sync [2], adds [3], removes []")
	step([]int32{3}, "0: 0", "leader 2 of [3 2], in sync [2], adds [3], removes [2]")
	b.assign("u", 0, 1, 3)
	same(t, "moves", b.moves(), "t-0: [3 2] + [3] - [2]", "u-0: [1 3 2] + [3] - [2]")
	same(t, "moves of some", b.moves(kmsg.ListPartitionReassignmentsRequestTopic{Topic: "t", Partitions: []int32{0, 1, 9}}), "t-0: [3 2] + [3] - [2]")
	same(t, "moves of none", b.moves(kmsg.ListPartitionReassignmentsRequestTopic{Topic: "none", Partitions: []int32{0}}))
	step([]int32{4}, "0: 0", "leader 2 of [4 2], in sync [2], adds [4], removes [2]")
	step(nil, "0: 0", "leader 2 of [2], in sync [2]")
	step(nil, "0: 85", "leader 2 of [2], in sync [2]")

	req := assigning("t", 1, []int32{1})
	req.AllowReplicationFactorChange = false
	if got := b.assigned(req); got != "1: 38 The replication factor is changed from 2 to 1" {
		t.Error(got)
	}
	// A move whose new replica leads uncleanly cannot be taken back.
	b.assign("t", 0, 3)
	b.become("t", 0, 3, 3)
	step(nil, "0: 39 Unable to revert partition assignment for t:0 to [2] because it would require an unclean leader election.",
		"leader 3 of [3 2], in sync [3], adds [3], removes [2]")
	if p, _ := b.img.Partition("u", 0); p.Leader != 1 {
		t.Error("a leader that stays in sync has changed")
	}
}
