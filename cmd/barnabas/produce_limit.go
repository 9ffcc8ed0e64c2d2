package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What a batch may have: by default a little less than a broker takes by default. The
// ends are what the client library allows and what the longest line can need.
const (
	defaultBatchBytes  = 1_000_000
	smallestBatchBytes = 512
	largestBatchBytes  = maxLineBytes + 1<<20
)

// batchLimit is how large a batch the topic takes, so that neither a record that it
// takes is refused by the client, nor many small ones together by the broker. A topic
// that is not there yet will have what its broker says.
func batchLimit(ctx context.Context, client *kgo.Client, topic string) int32 {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	adm, key := kadm.NewClient(client), "max.message.bytes"
	configs, err := adm.DescribeTopicConfigs(ctx, topic)
	if err == nil && len(configs) > 0 && errors.Is(configs[0].Err, kerr.UnknownTopicOrPartition) {
		brokers, err := adm.BrokerMetadata(ctx)
		if err != nil || len(brokers.Brokers) == 0 {
			return defaultBatchBytes
		}
		key = "message.max.bytes"
		configs, _ = adm.DescribeBrokerConfigs(ctx, brokers.Brokers[0].NodeID)
	}
	for _, rc := range configs {
		for _, cfg := range rc.Configs {
			if n, err := strconv.ParseInt(cfg.MaybeValue(), 10, 32); cfg.Key == key && err == nil {
				return int32(min(max(n, smallestBatchBytes), largestBatchBytes))
			}
		}
	}
	return defaultBatchBytes
}
