//go:build cgo && !old

package confluent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func adminClient(t *testing.T) *kafka.AdminClient {
	t.Helper()
	adm, err := kafka.NewAdminClient(config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(adm.Close)
	return adm
}

func createTopic(t *testing.T, ctx context.Context, partitions int) string {
	t.Helper()
	name := harness.Name(t, "confluent")
	results, err := adminClient(t).CreateTopics(ctx, []kafka.TopicSpecification{{Topic: name, NumPartitions: partitions, ReplicationFactor: 1}})
	if err != nil || results[0].Error.Code() != kafka.ErrNoError {
		t.Fatal(err, results)
	}
	harness.Settle(t, name, partitions)
	return name
}

// produce sends count messages and waits for each one's report.
func produce(t *testing.T, topic string, from, count int, extra ...string) {
	t.Helper()
	p, err := kafka.NewProducer(config(extra...))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	reports := make(chan kafka.Event, count)
	for i := range count {
		n := from + i
		m := &kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: kafka.PartitionAny},
			Key:            fmt.Append(nil, n), Value: []byte(strings.Repeat("v", n%500)),
			Headers: []kafka.Header{{Key: "n", Value: fmt.Append(nil, n)}, {Key: "null", Value: nil}},
		}
		if err := p.Produce(m, reports); err != nil {
			t.Fatal(err)
		}
	}
	for range count {
		select {
		case e := <-reports:
			if m := e.(*kafka.Message); m.TopicPartition.Error != nil {
				t.Fatal(m.TopicPartition.Error)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no delivery report for 30 s")
		}
	}
}

// consume reads in a group until it has want distinct messages, commits and leaves.
func consume(t *testing.T, topic, group string, seen map[string]bool, want int, extra ...string) {
	t.Helper()
	c, err := kafka.NewConsumer(config(append([]string{"group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false", "check.crcs", "true"}, extra...)...))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Errorf("leave: %v", err)
		}
	}()
	if err := c.Subscribe(topic, nil); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(40 * time.Second)
	for len(seen) < want {
		m, err := c.ReadMessage(time.Second)
		if err != nil {
			if e, ok := err.(kafka.Error); ok && e.IsTimeout() && time.Now().Before(deadline) {
				continue
			}
			t.Fatalf("after %d of %d: %v", len(seen), want, err)
		}
		key := string(m.Key)
		if seen[key] {
			t.Fatalf("message %s came twice", key)
		}
		seen[key] = true
		if len(m.Headers) != 2 || string(m.Headers[0].Value) != key || m.Headers[1].Value != nil {
			t.Fatalf("message %s has headers %v", key, m.Headers)
		}
	}
	if _, err := c.Commit(); err != nil {
		t.Errorf("commit: %v", err)
	}
}

func TestProduceConsume(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		for _, kind := range [][2]string{{"enable.idempotence", "true"}, {"acks", "all"}, {"acks", "1"}, {"acks", "0"}} {
			t.Run(codec+"/"+kind[0]+"="+kind[1], func(t *testing.T) {
				topic := createTopic(t, harness.Context(t, time.Minute), 3)
				produce(t, topic, 0, 1000, "compression.codec", codec, kind[0], kind[1], "batch.num.messages", "100")
				consume(t, topic, "g-"+topic, map[string]bool{}, 1000)
			})
		}
	}
}

func TestOffsets(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	topic := createTopic(t, ctx, 1)
	produce(t, topic, 0, 10)
	c, err := kafka.NewConsumer(config("group.id", "g-"+topic))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	low, high, err := c.QueryWatermarkOffsets(topic, 0, 10_000)
	if err != nil || low != 0 || high != 10 {
		t.Errorf("watermarks %d and %d, %v", low, high, err)
	}
	hourAgo := kafka.Offset(time.Now().Add(-time.Hour).UnixMilli())
	at, err := c.OffsetsForTimes([]kafka.TopicPartition{{Topic: &topic, Partition: 0, Offset: hourAgo}}, 10_000)
	if err != nil || at[0].Offset != 0 {
		t.Errorf("the offset of an hour ago: %v, %v", at, err)
	}
	if _, err := c.CommitOffsets([]kafka.TopicPartition{{Topic: &topic, Partition: 0, Offset: 7}}); err != nil {
		t.Error(err)
	}
	committed, err := c.Committed([]kafka.TopicPartition{{Topic: &topic, Partition: 0}}, 10_000)
	if err != nil || committed[0].Offset != 7 {
		t.Errorf("committed: %v, %v", committed, err)
	}
}

func TestAdmin(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	topic := createTopic(t, ctx, 2)
	produce(t, topic, 0, 100)
	consume(t, topic, "g-"+topic, map[string]bool{}, 100)
	adm := adminClient(t)
	if r, err := adm.CreatePartitions(ctx, []kafka.PartitionsSpecification{{Topic: topic, IncreaseTo: 3}}); err != nil || r[0].Error.Code() != kafka.ErrNoError {
		t.Error(err, r)
	}
	resource := kafka.ConfigResource{Type: kafka.ResourceTopic, Name: topic, Config: []kafka.ConfigEntry{{
		Name: "retention.ms", Value: "3600000", IncrementalOperation: kafka.AlterConfigOpTypeSet,
	}}}
	if r, err := adm.IncrementalAlterConfigs(ctx, []kafka.ConfigResource{resource}); err != nil || r[0].Error.Code() != kafka.ErrNoError {
		t.Error(err, r)
	}
	configs, err := adm.DescribeConfigs(ctx, []kafka.ConfigResource{resource})
	if err != nil || configs[0].Config["retention.ms"].Value != "3600000" {
		t.Errorf("retention.ms: %v, %v", configs, err)
	}
	groups, err := adm.DescribeConsumerGroups(ctx, []string{"g-" + topic})
	if err != nil || groups.ConsumerGroupDescriptions[0].State != kafka.ConsumerGroupStateEmpty {
		t.Errorf("the group: %+v, %v", groups, err)
	}
	cluster, err := adm.DescribeCluster(ctx)
	if err != nil || len(cluster.Nodes) != 1 || cluster.Nodes[0].ID != 1 {
		t.Errorf("the cluster: %+v, %v", cluster, err)
	}
	described, err := adm.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames([]string{topic}))
	if err != nil || len(described.TopicDescriptions[0].Partitions) != 3 {
		t.Errorf("the topic: %+v, %v", described, err)
	}
	if r, err := adm.DeleteConsumerGroups(ctx, []string{"g-" + topic}); err != nil || r.ConsumerGroupResults[0].Error.Code() != kafka.ErrNoError {
		t.Error(err, r)
	}
	if r, err := adm.DeleteTopics(ctx, []string{topic}); err != nil || r[0].Error.Code() != kafka.ErrNoError {
		t.Error(err, r)
	}
}
