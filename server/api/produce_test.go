package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

func TestProduceAndFetchInEveryVersion(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, nil)
	c := d.dial("client")
	for version := int16(3); version <= 13; version++ {
		for _, acks := range []int16{1, -1} {
			resp := askAs[*kmsg.ProduceResponse](c, version, produceRequest("t", id, 0, acks, values(1_700_000_000_000, "a", "b")))
			row := resp.Topics[0].Partitions[0]
			want := int64(version-3)*4 + map[int16]int64{1: 0, -1: 2}[acks]
			if row.ErrorCode != 0 || row.BaseOffset != want || row.LogAppendTime != -1 {
				t.Fatalf("v%d acks %d: %+v, want base offset %d", version, acks, row, want)
			}
			if version >= 13 && resp.Topics[0].TopicID != id || version < 13 && resp.Topics[0].Topic != "t" {
				t.Fatalf("v%d: topic %+v", version, resp.Topics[0])
			}
		}
	}
	for version := int16(4); version <= 18; version++ {
		resp := askAs[*kmsg.FetchResponse](c, version, fetchRequest("t", id, 0, 40))
		row := resp.Topics[0].Partitions[0]
		if got := contents(t, row.RecordBatches); row.ErrorCode != 0 || !slices.Equal(got, []string{"a", "b", "a", "b"}) {
			t.Fatalf("v%d: error %d, %v", version, row.ErrorCode, got)
		}
		if row.HighWatermark != 44 || row.LastStableOffset != 44 || version >= 5 && row.LogStartOffset != 0 {
			t.Fatalf("v%d: %+v", version, row)
		}
	}
}

func TestProduceErrors(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Batch.MaxMessageBytes = 200 })
	d.make("compacted", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Batch.Compacted = true })
	d.make("tiny", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Log.SegmentBytes = 100 })
	d.make("__consumer_offsets", 1, nil)
	d.make("elsewhere", 1, func(_ *replica.TopicConfig, p *metadata.Partition) {
		p.Replicas, p.ISR, p.Leader = []int32{2}, []int32{2}, 2
	})
	d.make("short", 1, func(c *replica.TopicConfig, p *metadata.Partition) {
		c.MinInSyncReplicas, p.Replicas = 2, []int32{1, 2}
	})
	good := func() []byte { return values(1_700_000_000_000, "v") }
	stamped := func(o batch.BuilderOptions) []byte {
		b := batch.NewBuilder(o)
		b.Add(1_700_000_000_000, []byte("k"), []byte("v"))
		return b.Build()
	}
	broken := good()
	broken[len(broken)-1] ^= 1
	for _, tc := range []struct {
		name    string
		topic   string
		part    int32
		acks    int16
		version int16
		records []byte
		want    *kerr.Error
	}{
		{"unknown topic", "nope", 0, 1, 9, good(), kerr.UnknownTopicOrPartition},
		{"unknown partition", "t", 7, 1, 9, good(), kerr.UnknownTopicOrPartition},
		{"negative partition", "t", -1, 1, 9, good(), kerr.UnknownTopicOrPartition},
		{"acks 2", "t", 0, 2, 9, good(), kerr.InvalidRequiredAcks},
		{"acks -2", "t", 0, -2, 9, good(), kerr.InvalidRequiredAcks},
		{"null records", "t", 0, 1, 9, nil, kerr.InvalidRecord},
		{"empty records", "t", 0, 1, 9, []byte{}, kerr.InvalidRecord},
		{"two batches", "t", 0, 1, 9, append(good(), good()...), kerr.InvalidRecord},
		{"bad checksum", "t", 0, 1, 9, broken, kerr.CorruptMessage},
		{"cut batch", "t", 0, 1, 9, good()[:40], kerr.InvalidRecord},
		{"no batch", "t", 0, 1, 9, make([]byte, 80), kerr.CorruptMessage},
		{"too large", "t", 0, 1, 9, values(1_700_000_000_000, strings.Repeat("x", 300)), kerr.MessageTooLarge},
		{"larger than a segment", "tiny", 0, 1, 9, values(1_700_000_000_000, strings.Repeat("x", 150)), kerr.RecordListTooLarge},
		{"too new", "t", 0, 1, 9, values(1_700_009_999_999, "v"), kerr.InvalidTimestamp},
		{"no key on a compacted topic", "compacted", 0, 1, 9, good(), kerr.InvalidRecord},
		{"transactional", "t", 0, 1, 9, stamped(batch.BuilderOptions{Transactional: true, Producer: &batch.ProducerStamp{ID: 1}}), kerr.TransactionalIDAuthorizationFailed},
		{"control", "t", 0, 1, 9, stamped(batch.BuilderOptions{Control: true}), kerr.InvalidRecord},
		{"zstd in v6", "t", 0, 1, 6, stamped(batch.BuilderOptions{Codec: batch.Zstd}), kerr.UnsupportedCompressionType},
		{"base offset", "t", 0, 1, 9, stamped(batch.BuilderOptions{BaseOffset: 5}), kerr.InvalidRecord},
		{"internal topic", "__consumer_offsets", 0, 1, 9, good(), kerr.InvalidTopicException},
		{"led elsewhere", "elsewhere", 0, 1, 9, good(), kerr.NotLeaderForPartition},
		{"too few in sync", "short", 0, -1, 9, good(), kerr.NotEnoughReplicas},
		{"unknown id", "t", 0, 1, 13, good(), kerr.UnknownTopicID},
	} {
		reqID := id
		if tc.want == kerr.UnknownTopicID {
			reqID = metadata.TopicID{0xff}
		}
		resp := askAs[*kmsg.ProduceResponse](d.dial("client"), tc.version, produceRequest(tc.topic, reqID, tc.part, tc.acks, tc.records))
		row := resp.Topics[0].Partitions[0]
		if row.ErrorCode != tc.want.Code || row.BaseOffset != -1 || row.LogAppendTime != -1 {
			t.Errorf("%s: %v, base offset %d, append time %d; want %v, -1, -1", tc.name, kerr.ErrorForCode(row.ErrorCode), row.BaseOffset, row.LogAppendTime, tc.want)
		}
		if tc.version >= 8 && (row.ErrorMessage == nil || *row.ErrorMessage == "") {
			t.Errorf("%s: no error message", tc.name)
		}
		tells := slices.Contains([]string{"too new", "control", "base offset", "no key on a compacted topic", "too few in sync"}, tc.name)
		if (row.LogStartOffset == 0) != tells {
			t.Errorf("%s: log start offset %d", tc.name, row.LogStartOffset)
		}
		if row.ErrorCode == kerr.InvalidTimestamp.Code && (len(row.ErrorRecords) != 1 || row.ErrorRecords[0].RelativeOffset != 0) {
			t.Errorf("%s: record errors %+v", tc.name, row.ErrorRecords)
		}
	}
	if high := partitionOf(t, d, "t").HighWatermark(); high != 0 {
		t.Fatalf("refused records were stored: high watermark %d", high)
	}
}

func partitionOf(t *testing.T, d *dataBroker, topic string) *replica.Partition {
	t.Helper()
	p, ok := d.m.Partition(topic, 0)
	if !ok {
		t.Fatalf("no partition %s-0", topic)
	}
	return p
}

func TestProduceTellsTheLeader(t *testing.T) {
	d := newDataBroker(t)
	d.publish(&metadata.RegisterBrokerRecord{BrokerID: 2, Rack: "r2", Endpoints: []metadata.Endpoint{{Listener: testListener, Host: "two", Port: 9093}}})
	id := d.make("t", 1, func(_ *replica.TopicConfig, p *metadata.Partition) {
		p.Replicas, p.ISR, p.Leader, p.LeaderEpoch = []int32{2, 1}, []int32{2, 1}, 2, 6
	})
	c := d.dial("client")
	for version := int16(9); version <= 13; version++ {
		resp := askAs[*kmsg.ProduceResponse](c, version, produceRequest("t", id, 0, 1, values(0, "v")))
		row := resp.Topics[0].Partitions[0]
		if row.ErrorCode != kerr.NotLeaderForPartition.Code {
			t.Fatalf("v%d: %v", version, kerr.ErrorForCode(row.ErrorCode))
		}
		if version < 10 {
			continue
		}
		if row.CurrentLeader.LeaderID != 2 || row.CurrentLeader.LeaderEpoch != 6 || len(resp.Brokers) != 1 ||
			resp.Brokers[0].Host != "two" || resp.Brokers[0].Port != 9093 || resp.Brokers[0].Rack == nil || *resp.Brokers[0].Rack != "r2" {
			t.Errorf("v%d: leader %+v, nodes %+v", version, row.CurrentLeader, resp.Brokers)
		}
	}
	for version := int16(12); version <= 18; version++ {
		resp := askAs[*kmsg.FetchResponse](c, version, fetchRequest("t", id, 0, 0))
		row := resp.Topics[0].Partitions[0]
		if row.ErrorCode != kerr.NotLeaderForPartition.Code {
			t.Fatalf("Fetch v%d: %v", version, kerr.ErrorForCode(row.ErrorCode))
		}
		if told := row.CurrentLeader.LeaderID == 2 && len(resp.Brokers) == 1; told != (version >= 16) {
			t.Errorf("Fetch v%d: leader %+v, nodes %+v", version, row.CurrentLeader, resp.Brokers)
		}
	}
}

func TestAcksZero(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, nil)
	c := d.dial("client")
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test"))
	send := func(c *testClient, topic string) {
		req := produceRequest(topic, metadata.TopicID{}, 0, 0, values(1_700_000_000_000, "v"))
		req.SetVersion(9)
		c.send(f.AppendRequest(nil, req, 99)[4:])
	}
	send(c, "t")
	send(c, "t")
	// The next answer on the connection is that of the next request.
	if off := c.mustProduce("t", 0, "v"); off != 2 {
		t.Fatalf("offset %d after two produces without acknowledgement, want 2", off)
	}
	bad := d.dial("client")
	send(bad, "nope")
	if frame := bad.receive(); frame != nil {
		t.Fatalf("answered %x; an error with acks=0 closes the connection", frame)
	}
}

func TestOneBadPartitionDoesNotFailTheOthers(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 2, nil)
	req := produceRequest("t", metadata.TopicID{}, 0, -1, values(1_700_000_000_000, "a"))
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = 9, values(1_700_000_000_000, "b")
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, p, p)
	req.Topics[0].Partitions[2].Partition = 1
	rows := askAs[*kmsg.ProduceResponse](d.dial("client"), 9, req).Topics[0].Partitions
	if rows[0].ErrorCode != 0 || rows[1].ErrorCode != kerr.UnknownTopicOrPartition.Code || rows[2].ErrorCode != 0 || rows[2].Partition != 1 {
		t.Fatalf("%+v", rows)
	}
}

func TestLogAppendTime(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, func(c *replica.TopicConfig, _ *metadata.Partition) {
		c.Batch.LogAppendTime, c.Log.LogAppendTime = true, true
	})
	d.clk.Advance(7 * time.Millisecond)
	row := d.dial("client").produceTo("t", 0, values(5, "v"))
	if row.ErrorCode != 0 || row.LogAppendTime != 1_700_000_000_007 {
		t.Fatalf("%+v", row)
	}
}

func TestIdempotentProducer(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, nil)
	c := d.dial("client")
	send := func(epoch int16, sequence int32) kmsg.ProduceResponseTopicPartition {
		b := batch.NewBuilder(batch.BuilderOptions{Producer: &batch.ProducerStamp{ID: 7, Epoch: epoch, BaseSequence: sequence}})
		b.Add(1_700_000_000_000, nil, []byte("v"))
		return c.produceTo("t", 0, b.Build())
	}
	for _, tc := range []struct {
		name     string
		epoch    int16
		sequence int32
		offset   int64
		want     *kerr.Error
	}{
		{"the first may start anywhere", 1, 5, 0, nil},
		{"the next", 1, 6, 1, nil},
		{"a repeat has its first offset", 1, 5, 0, nil},
		{"and the other", 1, 6, 1, nil},
		{"a gap", 1, 9, -1, kerr.OutOfOrderSequenceNumber},
		{"the next still", 1, 7, 2, nil},
		{"a new epoch", 2, 0, 3, nil},
		{"the old epoch", 1, 8, -1, kerr.InvalidProducerEpoch},
	} {
		row := send(tc.epoch, tc.sequence)
		if tc.want == nil && row.ErrorCode != 0 || tc.want != nil && row.ErrorCode != tc.want.Code || row.BaseOffset != tc.offset {
			t.Fatalf("%s: %v at %d, want %v at %d", tc.name, kerr.ErrorForCode(row.ErrorCode), row.BaseOffset, tc.want, tc.offset)
		}
		if row.LogStartOffset != 0 {
			t.Errorf("%s: log start offset %d", tc.name, row.LogStartOffset)
		}
	}
}

func TestAcksAllWaitsForFollowers(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, func(_ *replica.TopicConfig, p *metadata.Partition) { p.Replicas, p.ISR = []int32{1, 2}, []int32{1, 2} })
	c, follower := d.dial("client"), d.dial("two")
	req := func() *kmsg.ProduceRequest {
		return produceRequest("t", id, 0, -1, values(1_700_000_000_000, "v"))
	}
	got := later[*kmsg.ProduceResponse](c, 9, req())
	d.parked(1)
	fetch := func(offset int64) *kmsg.FetchResponse {
		r := fetchRequest("t", id, 0, offset)
		r.ReplicaState.ID, r.MaxWaitMillis = 2, 0
		return askAs[*kmsg.FetchResponse](follower, 17, r)
	}
	if row := fetch(0).Topics[0].Partitions[0]; row.HighWatermark != 0 || len(row.RecordBatches) == 0 {
		t.Fatalf("a follower is told %+v", row)
	}
	r := fetchRequest("t", id, 0, 0)
	r.MaxWaitMillis = 0
	if row := askAs[*kmsg.FetchResponse](d.dial("reader"), 17, r).Topics[0].Partitions[0]; len(row.RecordBatches) != 0 {
		t.Fatal("a consumer sees what is above the high watermark")
	}
	fetch(1)
	if row := soon(t, got).Topics[0].Partitions[0]; row.ErrorCode != 0 || row.BaseOffset != 0 {
		t.Fatalf("%+v", row)
	}
	got = later[*kmsg.ProduceResponse](c, 9, req())
	d.parked(1)
	d.clk.Advance(time.Second)
	if row := soon(t, got).Topics[0].Partitions[0]; row.ErrorCode != kerr.RequestTimedOut.Code || row.BaseOffset != -1 {
		t.Fatalf("%+v, want REQUEST_TIMED_OUT", row)
	}
}

func TestFlushMessagesDelaysTheAnswer(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Log.FlushMessages = 1 })
	c := d.dial("client")
	for i, acks := range []int16{1, -1} {
		row := askAs[*kmsg.ProduceResponse](c, 9, produceRequest("t", metadata.TopicID{}, 0, acks, values(1_700_000_000_000, "v"))).Topics[0].Partitions[0]
		if row.ErrorCode != 0 || row.BaseOffset != int64(i) {
			t.Fatalf("acks %d: %+v", acks, row)
		}
	}
	if p := partitionOf(t, d, "t"); p.HighWatermark() != 2 {
		t.Fatalf("high watermark %d, want 2", p.HighWatermark())
	}
}
