package api

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
)

func (c *testClient) fetch(r *kmsg.FetchRequest) *kmsg.FetchResponse {
	c.t.Helper()
	return askAs[*kmsg.FetchResponse](c, 12, r)
}

func TestFetchErrors(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, nil)
	c := d.dial("client")
	c.mustProduce("t", 0, "a", "b")
	for _, tc := range []struct {
		name    string
		topic   string
		part    int32
		offset  int64
		version int16
		change  func(*kmsg.FetchRequestTopicPartition)
		want    *kerr.Error
	}{
		{"unknown topic", "nope", 0, 0, 12, nil, kerr.UnknownTopicOrPartition},
		{"unknown partition", "t", 5, 0, 12, nil, kerr.UnknownTopicOrPartition},
		{"unknown id", "nope", 0, 0, 13, nil, kerr.UnknownTopicID},
		{"unknown partition of an id", "t", 5, 0, 13, nil, kerr.UnknownTopicOrPartition},
		{"beyond the end", "t", 0, 3, 12, nil, kerr.OffsetOutOfRange},
		{"negative offset", "t", 0, -1, 12, nil, kerr.OffsetOutOfRange},
		{"old epoch", "t", 0, 0, 12, func(p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = -1 }, nil},
		{"newer epoch", "t", 0, 0, 12, func(p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 4 }, kerr.UnknownLeaderEpoch},
		{"epoch in force", "t", 0, 0, 12, func(p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 0 }, nil},
	} {
		topicID := id
		if tc.topic != "t" {
			topicID = metadata.TopicID{0xee}
		}
		r := fetchRequest(tc.topic, topicID, tc.part, tc.offset)
		if tc.change != nil {
			tc.change(&r.Topics[0].Partitions[0])
		}
		row := askAs[*kmsg.FetchResponse](c, tc.version, r).Topics[0].Partitions[0]
		if tc.want == nil {
			if row.ErrorCode != 0 || len(row.RecordBatches) == 0 {
				t.Errorf("%s: %v", tc.name, kerr.ErrorForCode(row.ErrorCode))
			}
			continue
		}
		if row.ErrorCode != tc.want.Code || row.HighWatermark != -1 || row.LastStableOffset != -1 || row.LogStartOffset != -1 || row.RecordBatches == nil || len(row.RecordBatches) != 0 {
			t.Errorf("%s: %v, %+v; want %v", tc.name, kerr.ErrorForCode(row.ErrorCode), row, tc.want)
		}
	}
}

func TestFetchFencesOldEpochs(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, func(_ *replica.TopicConfig, p *metadata.Partition) { p.LeaderEpoch = 5 })
	r := fetchRequest("t", metadata.TopicID{}, 0, 0)
	r.Topics[0].Partitions[0].CurrentLeaderEpoch = 4
	if row := d.dial("client").fetch(r).Topics[0].Partitions[0]; row.ErrorCode != kerr.FencedLeaderEpoch.Code {
		t.Fatal(kerr.ErrorForCode(row.ErrorCode))
	}
}

func TestAbortedListByIsolation(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, nil)
	c := d.dial("client")
	c.mustProduce("t", 0, "a")
	for _, isolation := range []int8{0, 1} {
		r := fetchRequest("t", metadata.TopicID{}, 0, 0)
		r.IsolationLevel = isolation
		row := c.fetch(r).Topics[0].Partitions[0]
		if (row.AbortedTransactions != nil) != (isolation == 1) || len(row.AbortedTransactions) != 0 || len(row.RecordBatches) == 0 {
			t.Errorf("isolation %d: aborted list %#v", isolation, row.AbortedTransactions)
		}
	}
}

func TestFetchLimits(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 2, nil)
	c := d.dial("client")
	long := strings.Repeat("x", 1000)
	for p := range int32(2) {
		for range 5 {
			c.mustProduce("t", p, long)
		}
	}
	ask := func(maxBytes, partitionMax int32) (first, second int) {
		r := fetchRequest("t", metadata.TopicID{}, 0, 0)
		addFetch(r, "t", metadata.TopicID{}, 1, 0)
		r.MaxBytes = maxBytes
		for i := range r.Topics[0].Partitions {
			r.Topics[0].Partitions[i].PartitionMaxBytes = partitionMax
		}
		rows := c.fetch(r).Topics[0].Partitions
		return len(contents(t, rows[0].RecordBatches)), len(contents(t, rows[1].RecordBatches))
	}
	for _, tc := range []struct {
		max, partition int32
		first, second  int
	}{
		{1 << 20, 1 << 20, 5, 5},
		{1, 1 << 20, 1, 0}, // the first batch is whole, whatever the limits (KIP-74)
		{1 << 20, 1, 1, 0}, // only the first partition's
		{1 << 20, 2500, 2, 2},
		{2500, 1 << 20, 2, 0},
		{0, 0, 1, 0},
	} {
		if first, second := ask(tc.max, tc.partition); first != tc.first || second != tc.second {
			t.Errorf("max.bytes %d, partition %d: %d and %d records, want %d and %d", tc.max, tc.partition, first, second, tc.first, tc.second)
		}
	}
}

func TestLongPoll(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 2, nil)
	c, p := d.dial("consumer"), d.dial("producer")
	both := func() *kmsg.FetchRequest {
		r := fetchRequest("t", metadata.TopicID{}, 0, 0)
		addFetch(r, "t", metadata.TopicID{}, 1, 0)
		return r
	}
	got := later[*kmsg.FetchResponse](c, 12, both())
	d.parked(1)
	d.clk.Advance(499 * time.Millisecond)
	d.parked(1)
	d.clk.Advance(time.Millisecond)
	if rows := soon(t, got).Topics[0].Partitions; len(rows) != 2 || len(rows[0].RecordBatches)+len(rows[1].RecordBatches) != 0 {
		t.Fatalf("at the deadline: %+v", rows)
	}
	got = later[*kmsg.FetchResponse](c, 12, both())
	d.parked(1)
	p.mustProduce("t", 1, "news")
	rows := soon(t, got).Topics[0].Partitions
	if got := contents(t, rows[1].RecordBatches); !slices.Equal(got, []string{"news"}) || rows[1].HighWatermark != 1 {
		t.Fatalf("woken by a produce: %v", got)
	}
	d.parked(0)
}

func TestMinBytesCountsOverPartitions(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 2, nil)
	c, p := d.dial("consumer"), d.dial("producer")
	size := int32(len(values(0, "v")))
	r := fetchRequest("t", metadata.TopicID{}, 0, 0)
	addFetch(r, "t", metadata.TopicID{}, 1, 0)
	r.MinBytes = 3 * size
	got := later[*kmsg.FetchResponse](c, 12, r)
	d.parked(1)
	p.mustProduce("t", 0, "v")
	p.mustProduce("t", 1, "v")
	d.parked(1)
	p.mustProduce("t", 0, "v")
	rows := soon(t, got).Topics[0].Partitions
	if n := len(contents(t, rows[0].RecordBatches)) + len(contents(t, rows[1].RecordBatches)); n != 3 {
		t.Fatalf("%d records, want 3", n)
	}
}

func TestDeletedTopicEndsTheLongPoll(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, nil)
	d.make("other", 1, nil)
	c := d.dial("consumer")
	r := fetchRequest("other", metadata.TopicID{}, 0, 0)
	addFetch(r, "t", metadata.TopicID{}, 0, 0)
	got := later[*kmsg.FetchResponse](c, 12, r)
	d.parked(1)
	d.publish(&metadata.RemoveTopicRecord{ID: id})
	resp := soon(t, got)
	if row := resp.Topics[1].Partitions[0]; row.ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Fatalf("%+v", row)
	}
	if row := c.produceTo("t", 0, values(0, "v")); row.ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Fatalf("produce to a deleted topic: %v", kerr.ErrorForCode(row.ErrorCode))
	}
	d.make("t", 1, nil)
	if off := c.mustProduce("t", 0, "v"); off != 0 {
		t.Fatalf("a topic that was made again starts at %d", off)
	}
}

func TestClosedConnectionLeavesNothingParked(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, nil)
	c := d.dial("consumer")
	idle := d.clk.Pending()
	r := fetchRequest("t", metadata.TopicID{}, 0, 0)
	r.MaxWaitMillis = 1<<31 - 1
	r.SetVersion(12)
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test"))
	c.send(f.AppendRequest(nil, r, 1)[4:])
	d.parked(1)
	c.conn.Close()
	d.parked(0)
	if n := d.clk.Pending(); n != idle {
		t.Fatalf("%d timers are left, there were %d", n, idle)
	}
}

func TestSessionsOverTheWire(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 2, nil)
	c, p := d.dial("consumer"), d.dial("producer")
	full := fetchRequest("t", id, 0, 0)
	addFetch(full, "t", id, 1, 0)
	full.SessionEpoch, full.MaxWaitMillis = 0, 0
	resp := askAs[*kmsg.FetchResponse](c, 17, full)
	if resp.SessionID == 0 || len(resp.Topics[0].Partitions) != 2 {
		t.Fatalf("%+v", resp)
	}
	next := kmsg.NewPtrFetchRequest()
	next.SessionID, next.SessionEpoch, next.MinBytes, next.MaxBytes, next.MaxWaitMillis = resp.SessionID, 1, 1, 1<<20, 500
	got := later[*kmsg.FetchResponse](c, 17, next)
	d.parked(1)
	p.mustProduce("t", 1, "v")
	inc := soon(t, got)
	if len(inc.Topics) != 1 || len(inc.Topics[0].Partitions) != 1 || inc.Topics[0].Partitions[0].Partition != 1 || inc.Topics[0].TopicID != id || inc.SessionID != resp.SessionID {
		t.Fatalf("%+v, want partition 1 alone", inc.Topics)
	}
	next.SessionEpoch = 1
	if again := askAs[*kmsg.FetchResponse](c, 17, next); again.ErrorCode != kerr.InvalidFetchSessionEpoch.Code || len(again.Topics) != 0 {
		t.Fatalf("%+v", again)
	}
	next.SessionID++
	if none := askAs[*kmsg.FetchResponse](c, 17, next); none.ErrorCode != kerr.FetchSessionIDNotFound.Code || none.SessionID != 0 {
		t.Fatalf("%+v", none)
	}
}

// TestNoLostWakeUps lets consumers with an endless wait follow producers. The
// clock stands still, so a wake-up that gets lost between a read and the parking
// is never made up for.
func TestNoLostWakeUps(t *testing.T) {
	const records, partitions, consumers = 300, 3, 4
	d := newDataBroker(t)
	d.make("t", partitions, nil)
	var wg sync.WaitGroup
	for range consumers {
		c := d.dial("consumer")
		wg.Go(func() {
			var next [partitions]int64
			for left := records * partitions; left > 0; {
				r := fetchRequest("t", metadata.TopicID{}, 0, next[0])
				for p := 1; p < partitions; p++ {
					addFetch(r, "t", metadata.TopicID{}, int32(p), next[p])
				}
				r.MinBytes = int32(left%2) * 100
				r.MinBytes = max(r.MinBytes, 1)
				if left <= partitions {
					r.MinBytes = 1
				}
				for _, row := range c.fetch(r).Topics[0].Partitions {
					got := contents(t, row.RecordBatches)
					for _, v := range got {
						if want := fmt.Sprint(next[row.Partition]); v != want {
							t.Errorf("partition %d: read %s, want %s", row.Partition, v, want)
							return
						}
						next[row.Partition]++
						left--
					}
				}
			}
		})
	}
	for p := range int32(partitions) {
		c := d.dial("producer")
		wg.Go(func() {
			for i := range records {
				c.mustProduce("t", p, fmt.Sprint(i))
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	soon(t, done)
}
