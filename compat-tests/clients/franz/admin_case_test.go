package franz

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const timeoutMillis = 10_000

func (caseClient) CreateTopic(ctx context.Context, topic string, partitions int) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, int32(partitions), 1
	req.TimeoutMillis, req.Topics = timeoutMillis, append(req.Topics, rt)
	resp, err := ask(ctx, req)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
}

func (caseClient) Partitions(ctx context.Context, topic string) (int, error) {
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	resp, err := ask(ctx, req)
	if err != nil {
		return 0, err
	}
	listed := resp.(*kmsg.MetadataResponse).Topics[0]
	if err := kerr.ErrorForCode(listed.ErrorCode); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return len(listed.Partitions), err
	}
	return 0, nil
}

func (caseClient) AddPartitions(ctx context.Context, topic string, total int) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = topic, int32(total)
	req.TimeoutMillis, req.Topics = timeoutMillis, append(req.Topics, rt)
	resp, err := ask(ctx, req)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode)
}

func (caseClient) SetConfig(ctx context.Context, topic, key, value string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	rr := kmsg.NewIncrementalAlterConfigsRequestResource()
	rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	rc.Name, rc.Value = key, &value
	rr.ResourceType, rr.ResourceName, rr.Configs = kmsg.ConfigResourceTypeTopic, topic, append(rr.Configs, rc)
	req.Resources = append(req.Resources, rr)
	resp, err := ask(ctx, req)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode)
}

func (caseClient) Config(ctx context.Context, topic, key string) (string, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	rr := kmsg.NewDescribeConfigsRequestResource()
	rr.ResourceType, rr.ResourceName, rr.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{key}
	req.Resources = append(req.Resources, rr)
	resp, err := ask(ctx, req)
	if err != nil {
		return "", err
	}
	described := resp.(*kmsg.DescribeConfigsResponse).Resources[0]
	if len(described.Configs) == 0 || described.Configs[0].Value == nil {
		return "", kerr.ErrorForCode(described.ErrorCode)
	}
	return *described.Configs[0].Value, nil
}

func (caseClient) Groups(ctx context.Context) (names []string, err error) {
	resp, err := ask(ctx, kmsg.NewPtrListGroupsRequest())
	if err != nil {
		return nil, err
	}
	listed := resp.(*kmsg.ListGroupsResponse)
	for _, g := range listed.Groups {
		names = append(names, g.Group)
	}
	return names, kerr.ErrorForCode(listed.ErrorCode)
}

func (caseClient) DeleteTopic(ctx context.Context, topic string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = &topic
	req.TimeoutMillis, req.TopicNames, req.Topics = timeoutMillis, []string{topic}, append(req.Topics, rt)
	resp, err := ask(ctx, req)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode)
}
