package api

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/server/network"
)

// longPoll waits for a record of t-0, and names n partitions that are not there.
func longPoll(n int) *kmsg.FetchRequest {
	r := fetchRequest("t", metadata.TopicID{}, 0, 0)
	r.MaxWaitMillis = int32((10 * time.Minute).Milliseconds())
	for range n {
		part := r.Topics[0].Partitions[0]
		part.Partition = int32(len(r.Topics[0].Partitions))
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, part)
	}
	return r
}

// TestLargeFetchesDoNotFillTheMemoryByWaiting has long polls of many partitions: one
// that finds half of the memory for requests in use is answered at once, and its client told to wait. A small one
// waits as ever, and so do those that came before.
func TestLargeFetchesDoNotFillTheMemoryByWaiting(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, nil)
	dial := d.onLoopsWithin(network.Limits{QueuedBytes: 1 << 20})
	var waiting []chan *kmsg.FetchResponse
	wait := func(n int) {
		waiting = append(waiting, later[*kmsg.FetchResponse](dial(), 12, longPoll(n)))
		d.parked(len(waiting))
	}
	wait(300)
	wait(300)
	answer := soon(t, later[*kmsg.FetchResponse](dial(), 12, longPoll(600)))
	if rows := answer.Topics[0].Partitions; len(rows) != 601 || rows[0].ErrorCode != 0 || len(rows[0].RecordBatches) != 0 {
		t.Errorf("%d rows, the first is %+v", len(rows), rows[0])
	}
	if got := time.Duration(answer.ThrottleMillis) * time.Millisecond; got != hastyWait {
		t.Errorf("the client is to wait for %v", got)
	}
	wait(1)
	dial().mustProduce("t", 0, "v")
	for i, answer := range waiting {
		got := soon(t, answer)
		if row := got.Topics[0].Partitions[0]; len(row.RecordBatches) == 0 || got.ThrottleMillis != 0 {
			t.Errorf("%d: answered without the record, or with a throttle of %d ms", i, got.ThrottleMillis)
		}
	}
}

// TestFetchNamesAPartitionTwice is answered as by Kafka: the partition has one row, in
// the place of the first, with what the last asks.
func TestFetchNamesAPartitionTwice(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 2, nil)
	c := d.dial("client")
	c.mustProduce("t", 0, "a", "b")
	c.mustProduce("t", 1, "c")
	r := fetchRequest("t", metadata.TopicID{}, 0, 99)
	second := fetchRequest("t", metadata.TopicID{}, 1, 0).Topics[0]
	last := fetchRequest("t", metadata.TopicID{}, 0, 0).Topics[0]
	r.Topics = append(r.Topics, second, last)
	var rows []kmsg.FetchResponseTopicPartition
	for _, topic := range c.fetch(r).Topics {
		rows = append(rows, topic.Partitions...)
	}
	if len(rows) != 2 || rows[0].Partition != 0 || rows[0].ErrorCode != 0 || len(rows[0].RecordBatches) == 0 || rows[1].Partition != 1 {
		t.Fatalf("%+v", rows)
	}
}
