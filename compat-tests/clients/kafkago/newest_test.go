//go:build !old

package kafkago

import (
	"context"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var lacks = map[string]string{
	"idempotent":       "the client has no idempotent producer",
	"transaction-read": "the client's readers give out aborted records and markers too, from Apache Kafka as well; what its transactions wrote is read by franz-go",
}

func newClient() cases.Client { return administrator{} }

var acks = map[string]kafka.RequiredAcks{"": kafka.RequireAll, "all": kafka.RequireAll, "1": kafka.RequireOne, "0": kafka.RequireNone}

func newWriter(topic string, with cases.Settings, balancer kafka.Balancer) *kafka.Writer {
	return &kafka.Writer{
		Transport: &kafka.Transport{}, // the shared one knows for six seconds no topic that it has not made itself
		Addr:      kafka.TCP(harness.Shared.Addr()), Topic: topic, Balancer: balancer, Compression: codecs[with.Codec], RequiredAcks: acks[with.Acks],
		BatchSize: 100, BatchTimeout: 5 * time.Millisecond,
	}
}

// administrator is the client with its requests for topics.
type administrator struct{ caseClient }

func (administrator) CreateTopic(ctx context.Context, topic string, partitions int) error {
	resp, err := apart().CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: topic, NumPartitions: partitions, ReplicationFactor: 1,
	}}})
	if err != nil {
		return err
	}
	return resp.Errors[topic]
}

func (administrator) Partitions(ctx context.Context, topic string) (int, error) {
	meta, err := apart().Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return 0, err
	}
	for _, listed := range meta.Topics {
		if listed.Name == topic {
			return len(listed.Partitions), listed.Error
		}
	}
	return 0, nil
}

func (administrator) AddPartitions(ctx context.Context, topic string, total int) error {
	resp, err := apart().CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(total)}}})
	if err != nil {
		return err
	}
	return resp.Errors[topic]
}

func (administrator) SetConfig(ctx context.Context, topic, key, value string) error {
	resp, err := apart().IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: key, Value: value, ConfigOperation: kafka.ConfigOperationSet}},
	}}})
	if err != nil {
		return err
	}
	return resp.Resources[0].Error
}

func (administrator) Config(ctx context.Context, topic, key string) (string, error) {
	resp, err := apart().DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{key},
	}}})
	if err != nil {
		return "", err
	}
	r := resp.Resources[0]
	if r.Error != nil || len(r.ConfigEntries) == 0 {
		return "", r.Error
	}
	return r.ConfigEntries[0].ConfigValue, nil
}

func (administrator) Groups(ctx context.Context) (names []string, err error) {
	resp, err := apart().ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	for _, g := range resp.Groups {
		names = append(names, g.GroupID)
	}
	return names, resp.Error
}

func (administrator) DeleteTopic(ctx context.Context, topic string) error {
	resp, err := apart().DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return resp.Errors[topic]
}
