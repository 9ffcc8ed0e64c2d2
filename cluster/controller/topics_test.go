package controller

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// The codes and texts below are those that Apache Kafka 4 answers.

func TestCreateTopicsRefusals(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("taken", 1, 1), topic("a.b", 1, 1)))
	resp := b.must(createTopics(
		topic("taken", 1, 1),
		topic("dup", 1, 1),
		topic("dup", 1, 1),
		topic("dup", 1, 1),
		topic("__cluster_metadata", 1, 1),
		topic("", 1, 1),
		topic("..", 1, 1),
		topic("x y", 1, 1),
		topic("a_b", 1, 1),
		topic("p0", 0, 1),
		topic("p-2", -2, 1),
		topic("r0", 1, 0),
		topic("r-2", 1, -2),
		topic("r3", 1, 3),
		by(topic("both-r", -1, 1), []int32{1}),
		by(topic("both-p", 1, -1), []int32{1}),
		by(topic("twice", -1, -1), []int32{1, 1}),
		by(topic("nobody", -1, -1), []int32{9}),
		by(topic("empty", -1, -1), []int32{}),
		by(topic("uneven", -1, -1), []int32{1}, []int32{1, 1}),
		with(topic("null", 1, 1), "retention.ms", "cleanup.policy=compact", "flush.ms"),
		with(topic("unknown", 1, 1), "nope=1"),
		with(topic("value", 1, 1), "retention.ms=abc"),
	))
	same(t, "create", createdLines(resp),
		"taken: 36 Topic 'taken' already exists.",
		": 17 Topic name is invalid: the empty string is not allowed",
		"..: 17 Topic name is invalid: '..' is not allowed",
		"x y: 17 Topic name is invalid: 'x y' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
		"a_b: 17 Topic 'a_b' collides with existing topic: a.b",
		"p0: 37 Number of partitions was set to an invalid non-positive value.",
		"p-2: 37 Number of partitions was set to an invalid non-positive value.",
		"r0: 38 Replication factor must be larger than 0, or -1 to use the default value.",
		"r-2: 38 Replication factor must be larger than 0, or -1 to use the default value.",
		"r3: 38 Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
		"both-r: 42 A manual partition assignment was specified, but replication factor was not set to -1.",
		"both-p: 42 A manual partition assignment was specified, but numPartitions was not set to -1.",
		"twice: 39 The manual partition assignment includes the broker 1 more than once.",
		"nobody: 39 The manual partition assignment includes broker 9, but no such broker is registered.",
		"empty: 39 The manual partition assignment includes an empty replica list.",
		"uneven: 39 The manual partition assignment includes the broker 1 more than once.",
		"null: 40 Null value not supported for topic configs: retention.ms,flush.ms",
		"unknown: 40 Unknown topic config name: nope",
		"value: 40 Invalid value abc for configuration retention.ms: Not a number of type LONG",
		"dup: 42 Duplicate topic name.",
		"__cluster_metadata: 42 Creation of internal topic __cluster_metadata is prohibited.",
	)
	if n := b.img.TopicCount(); n != 2 {
		t.Fatalf("%d topics exist", n)
	}
	for _, out := range resp.(*kmsg.CreateTopicsResponse).Topics {
		if out.NumPartitions != -1 || out.ReplicationFactor != -1 || out.Configs == nil || out.TopicID != [16]byte{} {
			t.Errorf("refused topic %+v", out)
		}
	}
}

func TestCreateTopicsAssignmentIndexes(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	gap := by(topic("gap", -1, -1), []int32{1}, []int32{1})
	gap.ReplicaAssignment[1].Partition = 2
	again := by(topic("again", -1, -1), []int32{1}, []int32{1})
	again.ReplicaAssignment[1].Partition = 0
	same(t, "create", createdLines(b.must(createTopics(gap, again))),
		"gap: 39 partitions should be a consecutive 0-based integer sequence",
		"again: 39 Found multiple manual partition assignments for partition 0",
	)
}

func TestCreateTopics(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	resp := b.must(createTopics(
		with(topic("t", -1, -1), "cleanup.policy=compact"),
		topic("__consumer_offsets", 3, 1),
		by(topic("hand", -1, -1), []int32{1}, []int32{1}),
		topic("c.d", 1, 1),
		topic("c_d", 1, 1),
	)).(*kmsg.CreateTopicsResponse)
	same(t, "create", createdLines(resp), "t: 0", "__consumer_offsets: 0", "hand: 0", "c.d: 0", "c_d: 0")
	first := resp.Topics[0]
	made, ok := b.img.Topic("t")
	if !ok || made.ID != first.TopicID || made.Internal || len(made.Partitions) != 2 || first.NumPartitions != 2 || first.ReplicationFactor != 1 {
		t.Fatalf("%+v answered as %+v", made, first)
	}
	var configs []string
	for _, c := range first.Configs {
		configs = append(configs, fmt.Sprintf("%s=%s source %d", c.Name, *c.Value, c.Source))
	}
	same(t, "configs", configs, "cleanup.policy=compact source 1", "retention.ms=604800000 source 5")
	if b.img.TopicConfig("t")["cleanup.policy"] != "compact" {
		t.Fatal("config is not set")
	}
	if p := made.Partitions[1]; p.Index != 1 || p.Leader != 1 || p.LeaderEpoch != 0 || p.PartitionEpoch != 0 {
		t.Fatalf("partition %+v", p)
	}
	if internal, _ := b.img.Topic("__consumer_offsets"); !internal.Internal {
		t.Fatal("__consumer_offsets is not internal")
	}
	if id := made.ID; id[6]>>4 != 4 || id[8]>>6 != 2 || id[0]>>2 == 62 {
		t.Fatalf("topic id %x", id)
	}
}

func TestCreateTopicsValidateOnly(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	req := createTopics(topic("t", 3, 1), topic("bad", 0, 1))
	req.ValidateOnly = true
	resp := b.must(req).(*kmsg.CreateTopicsResponse)
	if resp.Topics[0].ErrorCode != 0 || resp.Topics[0].NumPartitions != 3 || resp.Topics[1].ErrorCode != 37 {
		t.Fatalf("%+v", resp.Topics)
	}
	if b.img.TopicCount() != 0 {
		t.Fatal("validation made a topic")
	}
}

func TestCreateTopicsBounds(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	if _, err := b.do(createTopics(topic("a", 10_000, 1), topic("b", 1, 1))); !errors.Is(err, kerr.PolicyViolation) {
		t.Fatalf("10001 partitions: %v", err)
	}
	if _, err := b.do(createTopics(topic("a", 9_999, 1), topic("b", -1, 1))); !errors.Is(err, kerr.PolicyViolation) {
		t.Fatalf("10001 partitions with the default: %v", err)
	}
	same(t, "create", createdLines(b.must(createTopics(topic("a", 9_999, 1), topic("b", 1, 1)))), "a: 0", "b: 0")
	many := createTopics()
	for i := range 9_000 {
		many.Topics = append(many.Topics, with(topic(fmt.Sprint("t", i), 1, 1), "retention.ms=1"))
	}
	if _, err := b.do(many); !errors.Is(err, kerr.PolicyViolation) {
		t.Fatalf("27000 records: %v", err)
	}
}

func TestNoLiveBroker(t *testing.T) {
	b := newBench(t, testConfig())
	same(t, "create", createdLines(b.must(createTopics(topic("t", 1, 1)))),
		"t: 38 Unable to replicate the partition 1 time(s): All brokers are currently fenced or in controlled shutdown.")
	b.register(1, 1)
	b.img = b.img.Apply(&metadata.BrokerChangeRecord{BrokerID: 1, Fenced: new(true)})
	same(t, "create", createdLines(b.must(createTopics(topic("t", 1, 1), by(topic("u", -1, -1), []int32{1})))),
		"t: 38 Unable to replicate the partition 1 time(s): All brokers are currently fenced or in controlled shutdown.",
		"u: 39 All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled shutdown.")
}

func TestPlacementSpreads(t *testing.T) {
	b := newBench(t, testConfig())
	for id := range int32(4) {
		b.register(id, 1)
	}
	b.img = b.img.Apply(&metadata.BrokerChangeRecord{BrokerID: 3, Fenced: new(true)})
	b.must(createTopics(topic("t", 6, 2), topic("wide", 1, 4)))
	leads, holds := map[int32]int{}, map[int32]int{}
	made, _ := b.img.Topic("t")
	for _, p := range made.Partitions {
		leads[p.Leader]++
		for _, r := range p.Replicas {
			holds[r]++
		}
	}
	for id := range int32(3) {
		if leads[id] != 2 || holds[id] != 4 {
			t.Fatalf("leaders %v, replicas %v", leads, holds)
		}
	}
	wide, _ := b.img.Partition("wide", 0)
	if len(wide.Replicas) != 4 || wide.Replicas[3] != 3 || len(wide.ISR) != 3 {
		t.Fatalf("the fenced broker is not last, or in the ISR: %+v", wide)
	}
}

func deleteTopics(topics ...kmsg.DeleteTopicsRequestTopic) *kmsg.DeleteTopicsRequest {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Topics = topics
	return req
}

func byName(name string) kmsg.DeleteTopicsRequestTopic {
	return kmsg.DeleteTopicsRequestTopic{Topic: &name}
}

func TestDeleteTopics(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("a", 1, 1), with(topic("b", 1, 1), "retention.ms=5"), topic("c", 1, 1)))
	bTopic, _ := b.img.Topic("b")
	cTopic, _ := b.img.Topic("c")
	both := byName("x")
	both.TopicID = [16]byte{7}
	none := [16]byte{7: 1}
	resp := b.must(deleteTopics(
		byName("a"), byName("nope"), byName("dup"), byName("dup"),
		kmsg.DeleteTopicsRequestTopic{TopicID: bTopic.ID},
		kmsg.DeleteTopicsRequestTopic{TopicID: none},
		both,
		kmsg.DeleteTopicsRequestTopic{},
		kmsg.DeleteTopicsRequestTopic{TopicID: cTopic.ID}, byName("c"),
	)).(*kmsg.DeleteTopicsResponse)
	var lines []string
	for _, out := range resp.Topics {
		name := "null"
		if out.Topic != nil {
			name = *out.Topic
		}
		lines = append(lines, verdictText(name, out.ErrorCode, out.ErrorMessage))
	}
	same(t, "delete", lines,
		"a: 0",
		"nope: 3 This server does not host this topic-partition.",
		"dup: 42 Duplicate topic name.",
		"b: 0",
		"null: 100 This server does not host this topic ID.",
		"x: 42 You may not specify both topic name and topic id.",
		"null: 42 Neither topic name nor id were specified.",
		"c: 0",
		"c: 42 The provided topic name maps to an ID that was already supplied.",
	)
	if b.img.TopicCount() != 0 || b.img.TopicConfig("b") != nil {
		t.Fatal("something is left")
	}
	if _, ok := b.img.RemovedTopic(bTopic.ID); !ok {
		t.Fatal("the deletion is not remembered")
	}
	// A topic made again has nothing of the old one.
	b.must(createTopics(topic("b", 1, 1)))
	if again, _ := b.img.Topic("b"); again.ID == bTopic.ID || b.img.TopicConfig("b") != nil {
		t.Fatal("the new topic inherits")
	}
}

func TestDeleteTopicsOldVersionsUseNames(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("a", 1, 1)))
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.SetVersion(1)
	req.TopicNames = []string{"a", "nope"}
	resp := b.must(req).(*kmsg.DeleteTopicsResponse)
	if len(resp.Topics) != 2 || *resp.Topics[0].Topic != "a" || resp.Topics[0].ErrorCode != 0 || resp.Topics[1].ErrorCode != 3 {
		t.Fatalf("%+v", resp.Topics)
	}
}

func TestTopicDeletionDisabled(t *testing.T) {
	cfg := testConfig()
	cfg.TopicDeletionDisabled = true
	b := newBench(t, cfg)
	if _, err := b.do(deleteTopics(byName("a"))); !errors.Is(err, kerr.TopicDeletionDisabled) {
		t.Fatal(err)
	}
	old := deleteTopics()
	old.SetVersion(2)
	if _, err := b.do(old); !errors.Is(err, kerr.InvalidRequest) {
		t.Fatal(err)
	}
}

func createPartitions(name string, count int32, lists ...[]int32) kmsg.CreatePartitionsRequestTopic {
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = name, count
	for _, replicas := range lists {
		t.Assignment = append(t.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: replicas})
	}
	return t
}

func TestCreatePartitions(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("t", 2, 1), topic("u", 1, 1), topic("v", 1, 1)))
	emptyList := createPartitions("v", 3)
	emptyList.Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{}
	for _, c := range []struct {
		topics []kmsg.CreatePartitionsRequestTopic
		want   []string
	}{
		{[]kmsg.CreatePartitionsRequestTopic{createPartitions("t", 2)}, []string{"t: 37 Topic already has 2 partition(s)."}},
		{[]kmsg.CreatePartitionsRequestTopic{createPartitions("t", 0), createPartitions("nope", 3), createPartitions("a", 3), createPartitions("a", 3)}, []string{
			"t: 37 The topic t currently has 2 partition(s); 0 would not be an increase.",
			"nope: 3",
			"a: 42 Duplicate topic name.",
		}},
		{[]kmsg.CreatePartitionsRequestTopic{createPartitions("t", 4, []int32{1})}, []string{
			"t: 39 Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."}},
		{[]kmsg.CreatePartitionsRequestTopic{emptyList}, []string{
			"v: 39 Attempted to add 2 additional partition(s), but only 0 assignment(s) were specified."}},
		{[]kmsg.CreatePartitionsRequestTopic{createPartitions("t", 3, []int32{1, 1})}, []string{
			"t: 39 The manual partition assignment includes the broker 1 more than once."}},
		{[]kmsg.CreatePartitionsRequestTopic{createPartitions("t", 3, []int32{7})}, []string{
			"t: 39 The manual partition assignment includes broker 7, but no such broker is registered."}},
		{[]kmsg.CreatePartitionsRequestTopic{createPartitions("t", 4), createPartitions("u", 2, []int32{1})}, []string{"t: 0", "u: 0"}},
	} {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Topics = c.topics
		var lines []string
		for _, out := range b.must(req).(*kmsg.CreatePartitionsResponse).Topics {
			lines = append(lines, verdictText(out.Topic, out.ErrorCode, out.ErrorMessage))
		}
		same(t, "create partitions", lines, c.want...)
	}
	if n := b.img.PartitionCount(); n != 7 {
		t.Fatalf("%d partitions", n)
	}
	check := kmsg.NewPtrCreatePartitionsRequest()
	check.Topics, check.ValidateOnly = []kmsg.CreatePartitionsRequestTopic{createPartitions("t", 9)}, true
	if out := b.must(check).(*kmsg.CreatePartitionsResponse).Topics[0]; out.ErrorCode != 0 || b.img.PartitionCount() != 7 {
		t.Fatalf("validation: %+v, %d partitions", out, b.img.PartitionCount())
	}
	big := kmsg.NewPtrCreatePartitionsRequest()
	big.Topics = []kmsg.CreatePartitionsRequestTopic{createPartitions("t", 20_000)}
	if _, err := b.do(big); !errors.Is(err, kerr.PolicyViolation) {
		t.Fatalf("20000 partitions: %v", err)
	}
}

func TestUnknownRequest(t *testing.T) {
	if _, err := newBench(t, testConfig()).do(kmsg.NewPtrMetadataRequest()); !errors.Is(err, kerr.InvalidRequest) {
		t.Fatal(err)
	}
}
