//go:build !old

package kafkago

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func client() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(harness.Shared.Addr()), Timeout: 10 * time.Second}
}

func createTopic(t *testing.T, ctx context.Context, partitions int) string {
	t.Helper()
	name := harness.Name(t, "kafkago")
	resp, err := client().CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: name, NumPartitions: partitions, ReplicationFactor: 1,
	}}})
	if err != nil || resp.Errors[name] != nil {
		t.Fatal(err, resp)
	}
	harness.Settle(t, name, partitions)
	return name
}

func TestProduceConsume(t *testing.T) {
	codecs := map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	for name, codec := range codecs {
		for acksName, acks := range map[string]kafka.RequiredAcks{"1": kafka.RequireOne, "all": kafka.RequireAll} {
			t.Run(name+"/acks="+acksName, func(t *testing.T) { roundTrip(t, codec, acks) })
		}
	}
}

func roundTrip(t *testing.T, codec kafka.Compression, acks kafka.RequiredAcks) {
	const count = 400
	ctx := harness.Context(t, time.Minute)
	topic := createTopic(t, ctx, 1)
	w := &kafka.Writer{
		Addr: kafka.TCP(harness.Shared.Addr()), Topic: topic, Compression: codec, RequiredAcks: acks,
		BatchSize: 100, BatchTimeout: 5 * time.Millisecond, MaxAttempts: 20,
	}
	defer w.Close()
	var sent []kafka.Message
	for i := range count {
		sent = append(sent, kafka.Message{
			Key: fmt.Append(nil, i), Value: []byte(strings.Repeat("x", i)), Headers: []kafka.Header{{Key: "i", Value: fmt.Append(nil, i)}},
		})
	}
	if err := w.WriteMessages(ctx, sent...); err != nil {
		t.Fatal(err)
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{harness.Shared.Addr()}, Topic: topic, MaxWait: 100 * time.Millisecond})
	defer r.Close()
	for i := range count {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if m.Offset != int64(i) || string(m.Key) != fmt.Sprint(i) || len(m.Value) != i || len(m.Headers) != 1 || string(m.Headers[0].Value) != fmt.Sprint(i) {
			t.Fatalf("message %d is offset %d, key %q, %d bytes, headers %v", i, m.Offset, m.Key, len(m.Value), m.Headers)
		}
	}
}

func TestOffsets(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	topic := createTopic(t, ctx, 1)
	w := &kafka.Writer{Addr: kafka.TCP(harness.Shared.Addr()), Topic: topic, RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond, MaxAttempts: 20}
	defer w.Close()
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range 10 {
		if err := w.WriteMessages(ctx, kafka.Message{Value: []byte("v"), Time: base.Add(time.Duration(i) * time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	p := offsets(t, ctx, topic, kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0), kafka.TimeOffsetOf(0, base.Add(150*time.Second)))
	if p.Error != nil || p.FirstOffset != 0 || p.LastOffset != 10 {
		t.Errorf("offsets: %+v", p)
	}
	if _, ok := p.Offsets[3]; !ok {
		t.Errorf("the offset by time is among %v, want 3", p.Offsets)
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{harness.Shared.Addr()}, Topic: topic, MaxWait: 100 * time.Millisecond})
	defer r.Close()
	if err := r.SetOffsetAt(ctx, base.Add(8*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if m, err := r.ReadMessage(ctx); err != nil || m.Offset != 8 {
		t.Errorf("from a time: offset %d, %v", m.Offset, err)
	}
}

// offsets asks until every answer is one: a client that learns of the topic late fills in -1 and reports no error.
func offsets(t *testing.T, ctx context.Context, topic string, asked ...kafka.OffsetRequest) kafka.PartitionOffsets {
	t.Helper()
	for {
		resp, err := client().ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: asked}})
		if err != nil {
			t.Fatal(err)
		}
		p := resp.Topics[topic][0]
		if _, failed := p.Offsets[-1]; !failed || ctx.Err() != nil {
			return p
		}
	}
}

func TestAdmin(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	topic := createTopic(t, ctx, 3)
	c := client()
	meta, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil || len(meta.Topics) != 1 || len(meta.Topics[0].Partitions) != 3 {
		t.Fatalf("%+v, %v", meta, err)
	}
	alter, err := c.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "retention.ms", Value: "1000000", ConfigOperation: kafka.ConfigOperationSet}},
	}}})
	if err != nil || alter.Resources[0].Error != nil {
		t.Errorf("alter: %+v, %v", alter, err)
	}
	deleted, err := c.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil || deleted.Errors[topic] != nil {
		t.Errorf("delete: %+v, %v", deleted, err)
	}
	versions, err := c.ApiVersions(ctx, &kafka.ApiVersionsRequest{})
	if err != nil || versions.Error != nil || len(versions.ApiKeys) < 20 {
		t.Errorf("versions: %+v, %v", versions, err)
	}
}
