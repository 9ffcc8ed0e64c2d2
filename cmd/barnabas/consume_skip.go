package main

import (
	"context"
	"math"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lookAheadBytes is what one look for a visible record asks for; a larger batch
// comes whole all the same.
const lookAheadBytes = 1 << 20

// skipInvisible moves each partition on to the next offset at which a reader with
// this isolation sees a record.
func (e endOffsets) skipInvisible(ctx context.Context, client *kgo.Client, isolation string) {
	for topic, partitions := range e {
		for partition, at := range partitions {
			e.reached(topic, partition, nextVisible(ctx, client, topic, partition, at, isolation))
		}
	}
}

// nextVisible is the offset of the next record to be seen, or the end when there
// is none before it. What fails is not reported: the reader meets the same, and
// the next look begins where this one was.
func nextVisible(ctx context.Context, client *kgo.Client, topic string, partition int32, at unread, isolation string) int64 {
	for at.next < at.end {
		found, next, err := fetchOnce(ctx, client, topic, partition, at.next, isolation)
		switch {
		case err != nil || found.Err != nil:
			return at.next
		case len(found.Records) > 0:
			return found.Records[0].Offset
		case next > at.next:
			at.next = next
		case readableTo(found, isolation) >= at.end:
			return at.end // nothing is kept from here on
		default:
			return at.next
		}
	}
	return at.next
}

// readableTo is the offset up to which a reader with this isolation is served.
func readableTo(p kgo.FetchPartition, isolation string) int64 {
	if isolation == readCommitted {
		return p.LastStableOffset
	}
	return p.HighWatermark
}

// fetchOnce reads what a partition has at an offset, without waiting, and says at
// which offset that ends.
func fetchOnce(ctx context.Context, client *kgo.Client, topic string, partition int32, offset int64, isolation string) (kgo.FetchPartition, int64, error) {
	leader, _, err := client.PartitionLeader(topic, partition)
	if err != nil {
		return kgo.FetchPartition{}, offset, err
	}
	opts := kgo.ProcessFetchPartitionOpts{Topic: topic, Partition: partition, Offset: offset, IsolationLevel: kgo.ReadUncommitted()}
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = math.MaxInt32
	if isolation == readCommitted {
		req.IsolationLevel, opts.IsolationLevel = 1, kgo.ReadCommitted()
	}
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, lookAheadBytes
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	answer, err := client.Broker(int(leader)).Request(ctx, fetchByName{req})
	if err != nil {
		return kgo.FetchPartition{}, offset, err
	}
	for _, t := range answer.(*kmsg.FetchResponse).Topics {
		for _, rp := range t.Partitions {
			found, next := kgo.ProcessFetchPartition(opts, &rp, kgo.DefaultDecompressor(), nil)
			return found, next, nil
		}
	}
	return kgo.FetchPartition{}, offset, nil
}

// fetchByName is a Fetch of the last version that names topics instead of giving
// their ids.
type fetchByName struct{ *kmsg.FetchRequest }

func (fetchByName) MaxVersion() int16 { return 12 }
