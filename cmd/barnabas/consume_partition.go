package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// onePartitionOf is what to read when --partition names one of each topic.
func onePartitionOf(topics []string, partition int32, from kgo.Offset) map[string]map[int32]kgo.Offset {
	out := map[string]map[int32]kgo.Offset{}
	for _, t := range topics {
		out[t] = map[int32]kgo.Offset{partition: from}
	}
	return out
}

// requireTopics fails at once for a topic that does not exist, or that has no partition
// of this number, unless that is below 0: waiting for it in silence is what people take
// for a hang.
func requireTopics(ctx context.Context, client *kgo.Client, topics []string, partition int32) error {
	details, err := kadm.NewClient(client).ListTopicsWithInternal(ctx, topics...)
	if err != nil {
		return fmt.Errorf("consume: look up the topics: %w", err)
	}
	var failed []string
	for _, d := range details.Sorted() {
		if d.Err != nil {
			failed = append(failed, describeFailure(d.Topic, d.Err, ""))
		} else if partition >= 0 && int(partition) >= len(d.Partitions) {
			failed = append(failed, noPartition(d.Topic, len(d.Partitions), partition))
		}
	}
	return failures("consume", failed)
}

// noPartition says that a topic of n partitions does not have this one.
func noPartition(topic string, n int, partition int32) string {
	return fmt.Sprintf("%s: there is no partition %d; it has %s, counted from 0", topic, partition, plural(n, "partition"))
}
