package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

func electing(kind int8, topic string, partitions ...int32) *kmsg.ElectLeadersRequest {
	req := kmsg.NewPtrElectLeadersRequest()
	req.ElectionType, req.TimeoutMillis = kind, 1000
	if topic != "" {
		req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: partitions}}
	}
	return req
}

func (b *bench) elect(req *kmsg.ElectLeadersRequest) (lines []string) {
	b.t.Helper()
	resp := b.must(req).(*kmsg.ElectLeadersResponse)
	if resp.ErrorCode != 0 {
		lines = append(lines, fmt.Sprintf("refused: %d", resp.ErrorCode))
	}
	for _, t := range resp.Topics {
		lines = append(lines, t.Topic)
		for _, p := range t.Partitions {
			lines = append(lines, verdictText(fmt.Sprint(p.Partition), p.ErrorCode, p.ErrorMessage))
		}
	}
	return lines
}

// led shows a partition as "leader 1 of [1 2], in sync [1]".
func (b *bench) led(topic string, index int32) string {
	p, _ := b.img.Partition(topic, index)
	text := fmt.Sprintf("leader %d of %v, in sync %v", p.Leader, p.Replicas, p.ISR)
	if len(p.AddingReplicas)+len(p.RemovingReplicas) > 0 {
		text += fmt.Sprintf(", adds %v, removes %v", p.AddingReplicas, p.RemovingReplicas)
	}
	return text
}

// become changes a partition behind the machine's back.
func (b *bench) become(topic string, index, leader int32, isr ...int32) {
	t, _ := b.img.Topic(topic)
	b.img = b.img.Apply(&metadata.PartitionChangeRecord{TopicID: t.ID, Index: index, Leader: &leader, ISR: append([]int32{}, isr...)})
}

// TestElectOnOneNode has Apache Kafka's own answers.
func TestElectOnOneNode(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("t", 2, 1)))
	for _, kind := range []int8{electPreferred, electUnclean} {
		same(t, "named", b.elect(electing(kind, "t", 0, 7)), "t", "0: 84 Leader election not needed for topic partition.", "7: 3 No such partition as t-7")
		same(t, "missing", b.elect(electing(kind, "none", 0)), "none", "0: 3 No such topic as none")
		same(t, "all", b.elect(electing(kind, "")), "t")
	}
	none := electing(electPreferred, "")
	none.Topics = []kmsg.ElectLeadersRequestTopic{}
	same(t, "no topics", b.elect(none))
	same(t, "unknown kind", b.elect(electing(5, "t", 0)), "refused: 42", "t", "0: 42 Unknown election type 5")
	same(t, "unknown kind, all", b.elect(electing(5, "")), "refused: 42")

	b.must(unregister(1))
	same(t, "unclean without a broker", b.elect(electing(electUnclean, "t", 0)), "t", "0: 83 Eligible topic partition leaders are not available.")
	same(t, "preferred without a broker", b.elect(electing(electPreferred, "")), "t",
		"0: 80 The preferred leader was not available.", "1: 80 The preferred leader was not available.")
}

// TestElect elects among three.
func TestElect(t *testing.T) {
	b := newBench(t, testConfig())
	for id := range int32(3) {
		b.register(id+1, 1)
	}
	b.must(createTopics(by(topic("t", -1, -1), []int32{1, 2, 3}, []int32{1, 2, 3}, []int32{1, 2, 3})))
	b.become("t", 0, 2, 2, 1)
	b.become("t", 1, 2, 2)
	b.become("t", 2, -1, 3)
	epoch := func() int32 { p, _ := b.img.Partition("t", 0); return p.LeaderEpoch }
	before := epoch()
	same(t, "preferred", b.elect(electing(electPreferred, "t", 0, 0, 1, 2)), "t",
		"0: 0", "0: 0", "1: 80 The preferred leader was not available.", "2: 80 The preferred leader was not available.")
	if got := b.led("t", 0); got != "leader 1 of [1 2 3], in sync [2 1]" || epoch() != before+1 {
		t.Errorf("%s, epoch %d after %d", got, epoch(), before)
	}
	same(t, "unclean", b.elect(electing(electUnclean, "")), "t", "2: 0")
	if got := b.led("t", 2); got != "leader 3 of [1 2 3], in sync [3]" {
		t.Errorf("who is in sync does not lead: %s", got)
	}
	b.must(unregister(2))
	b.must(unregister(1))
	if got := b.led("t", 1); got != "leader -1 of [1 2 3], in sync [2]" {
		t.Errorf("the last in sync is forgotten: %s", got)
	}
	same(t, "unclean", b.elect(electing(electUnclean, "t", 1)), "t", "1: 0")
	if got := b.led("t", 1); got != "leader 3 of [1 2 3], in sync [3]" {
		t.Errorf("a replica that lives does not lead: %s", got)
	}
}

func unregister(id int32) *kmsg.UnregisterBrokerRequest {
	req := kmsg.NewPtrUnregisterBrokerRequest()
	req.BrokerID = id
	return req
}

func TestUnregisterBroker(t *testing.T) {
	b := newBench(t, testConfig())
	resp := b.must(unregister(7)).(*kmsg.UnregisterBrokerResponse)
	same(t, "unknown", []string{verdictText("7", resp.ErrorCode, resp.ErrorMessage)}, "7: 102 Broker ID 7 is not currently registered")
	b.register(1, 1)
	b.register(2, 1)
	b.must(createTopics(by(topic("t", -1, -1), []int32{1, 2}, []int32{2, 1}, []int32{1, 2}), by(topic("u", -1, -1), []int32{1})))
	b.become("t", 2, 2, 2)
	resp = b.must(unregister(1)).(*kmsg.UnregisterBrokerResponse)
	if resp.ErrorCode != 0 {
		t.Fatalf("%+v", resp)
	}
	got := []string{b.led("t", 0), b.led("t", 1), b.led("t", 2), b.led("u", 0)}
	same(t, "partitions", got,
		"leader 2 of [1 2], in sync [2]", "leader 2 of [2 1], in sync [2]", "leader 2 of [1 2], in sync [2]", "leader -1 of [1], in sync [1]")
	if _, ok := b.img.Broker(1); ok {
		t.Error("it is still registered")
	}
	b.register(1, 2)
	if got := b.led("u", 0); !strings.HasPrefix(got, "leader 1") {
		t.Errorf("after it has started again: %s", got)
	}
}
