package api

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func listOffsetsRequest(topic string, timestamps ...int64) *kmsg.ListOffsetsRequest {
	r := kmsg.NewPtrListOffsetsRequest()
	r.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for i, ts := range timestamps {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.MaxNumOffsets = int32(i), ts, 10
		t.Partitions = append(t.Partitions, p)
	}
	r.Topics = append(r.Topics, t)
	return r
}

// newOffsetsBroker has a topic whose only partition holds two batches of three
// records each, at 1000-1002 and 500-502 milliseconds after a start.
func newOffsetsBroker(t *testing.T) (*dataBroker, *testClient) {
	d := newDataBroker(t)
	d.make("t", 1, nil)
	c := d.dial("client")
	for _, at := range []int64{1000, 500} {
		if row := c.produceTo("t", 0, values(1_600_000_000_000+at, "a", "b", "c")); row.ErrorCode != 0 {
			t.Fatal(kerr.ErrorForCode(row.ErrorCode))
		}
	}
	return d, c
}

func TestListOffsets(t *testing.T) {
	_, c := newOffsetsBroker(t)
	const start = 1_600_000_000_000
	for version := int16(1); version <= 11; version++ {
		for _, tc := range []struct {
			timestamp, offset, at int64
			epoch                 int32
			since                 int16
		}{
			{-1, 6, -1, 0, 1},
			{-2, 0, -1, 0, 1},
			{-3, 2, start + 1002, 0, 7}, // the record itself, not the end of its batch
			{-4, 0, -1, 0, 8},
			{-5, -1, -1, -1, 9},
			{-6, -1, -1, -1, 11},
			{-7, -1, -1, -1, 99},
			{0, 0, start + 1000, 0, 1},
			{start + 501, 0, start + 1000, 0, 1},
			{start + 1001, 1, start + 1001, 0, 1},
			{start + 1003, -1, -1, -1, 1},
		} {
			row := askAs[*kmsg.ListOffsetsResponse](c, version, listOffsetsRequest("t", tc.timestamp)).Topics[0].Partitions[0]
			if version < tc.since {
				if row.ErrorCode != kerr.UnsupportedVersion.Code || row.Offset != -1 {
					t.Errorf("v%d timestamp %d: %v, want UNSUPPORTED_VERSION", version, tc.timestamp, kerr.ErrorForCode(row.ErrorCode))
				}
				continue
			}
			if row.ErrorCode != 0 || row.Offset != tc.offset || row.Timestamp != tc.at || version >= 4 && row.LeaderEpoch != tc.epoch {
				t.Errorf("v%d timestamp %d: %+v, want offset %d at %d in epoch %d", version, tc.timestamp, row, tc.offset, tc.at, tc.epoch)
			}
		}
	}
}

// TestListOffsetsV0AnswersAnArray has the answers of Apache Kafka 3.9: offsets at
// which segments begin, by when their files were written.
func TestListOffsetsV0AnswersAnArray(t *testing.T) {
	disk := vfs.NewMem()
	var written atomic.Int64
	disk.SetNow(func() time.Time { return time.UnixMilli(written.Load()) })
	d := newDataBrokerOn(t, disk)
	d.make("t", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Log.SegmentBytes = 100 })
	d.make("empty", 1, nil)
	c := d.dial("client")
	const start = 1_650_000_000_000
	for i := range int64(3) {
		written.Store(start + 1000*i)
		c.mustProduce("t", 0, "a", "b")
	}
	for _, tc := range []struct {
		topic     string
		timestamp int64
		max       int32
		want      []int64
	}{
		{"t", -1, 10, []int64{6, 4, 2, 0}}, {"t", -1, 1, []int64{6}}, {"t", -1, 2, []int64{6, 4}}, {"t", -1, 0, nil}, {"t", -1, -5, nil},
		{"t", -2, 10, []int64{0}}, {"t", -2, 0, nil},
		{"t", start - 1, 10, nil}, {"t", start, 10, []int64{0}}, {"t", start + 1500, 10, []int64{2, 0}}, {"t", start + 1500, 1, []int64{2}},
		{"t", start + 5000, 10, []int64{4, 2, 0}}, {"t", 1_800_000_000_000, 2, []int64{6, 4}},
		{"empty", -1, 10, []int64{0}}, {"empty", -2, 10, []int64{0}},
	} {
		r := listOffsetsRequest(tc.topic, tc.timestamp)
		r.Topics[0].Partitions[0].MaxNumOffsets = tc.max
		row := askAs[*kmsg.ListOffsetsResponse](c, 0, r).Topics[0].Partitions[0]
		if row.ErrorCode != 0 || !slices.Equal(row.OldStyleOffsets, tc.want) {
			t.Errorf("%s timestamp %d, at most %d: %+v, want %v", tc.topic, tc.timestamp, tc.max, row, tc.want)
		}
	}
}

func TestListOffsetsErrors(t *testing.T) {
	_, c := newOffsetsBroker(t)
	rows := askAs[*kmsg.ListOffsetsResponse](c, 9, listOffsetsRequest("t", -1, -1)).Topics[0].Partitions
	if rows[0].ErrorCode != 0 || rows[1].ErrorCode != kerr.UnknownTopicOrPartition.Code || rows[1].Offset != -1 {
		t.Errorf("%+v", rows)
	}
	twice := listOffsetsRequest("t", -1, -2)
	twice.Topics[0].Partitions[1].Partition = 0
	if rows := askAs[*kmsg.ListOffsetsResponse](c, 9, twice).Topics[0].Partitions; len(rows) != 1 || rows[0].ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("asked twice: %+v", rows)
	}
	epoch := listOffsetsRequest("t", -1)
	epoch.Topics[0].Partitions[0].CurrentLeaderEpoch = 3
	if row := askAs[*kmsg.ListOffsetsResponse](c, 9, epoch).Topics[0].Partitions[0]; row.ErrorCode != kerr.UnknownLeaderEpoch.Code {
		t.Errorf("epoch ahead: %v", kerr.ErrorForCode(row.ErrorCode))
	}
}

func TestListOffsetsAfterAnElection(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, func(_ *replica.TopicConfig, p *metadata.Partition) { p.Replicas = []int32{1, 2} })
	c := d.dial("client")
	c.mustProduce("t", 0, "a")
	one := int32(1)
	d.publish(&metadata.PartitionChangeRecord{TopicID: id, ISR: []int32{1, 2}})
	// Written with two in sync, so not below the high watermark; then elected anew.
	if row := askAs[*kmsg.ProduceResponse](c, 9, produceRequest("t", id, 0, 1, values(0, "b"))).Topics[0].Partitions[0]; row.ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(row.ErrorCode))
	}
	d.publish(&metadata.PartitionChangeRecord{TopicID: id, Leader: &one})
	for version, want := range map[int16]*kerr.Error{4: kerr.LeaderNotAvailable, 5: kerr.OffsetNotAvailable} {
		if row := askAs[*kmsg.ListOffsetsResponse](c, version, listOffsetsRequest("t", -1)).Topics[0].Partitions[0]; row.ErrorCode != want.Code {
			t.Errorf("v%d: %+v, want %v", version, row, want)
		}
	}
}

func TestOffsetForLeaderEpoch(t *testing.T) {
	d, c := newOffsetsBroker(t)
	img := d.image.Load()
	topic, _ := img.Topic("t")
	one := int32(1)
	for range 2 { // epochs 1 and 2, of which only the second writes
		d.publish(&metadata.PartitionChangeRecord{TopicID: topic.ID, Leader: &one})
	}
	c.mustProduce("t", 0, "d")
	for version := int16(0); version <= 4; version++ {
		for _, tc := range []struct {
			partition, current, epoch, wantEpoch int32
			end                                  int64
			want                                 *kerr.Error
		}{
			{0, -1, 0, 0, 6, nil},
			{0, -1, 2, 2, 7, nil},
			{0, -1, 3, -1, -1, nil},
			{0, -1, -1, -1, -1, nil},
			{0, 2, 2, 2, 7, nil},
			{0, 1, 0, -1, -1, kerr.FencedLeaderEpoch},
			{0, 3, 0, -1, -1, kerr.UnknownLeaderEpoch},
			{4, -1, 0, -1, -1, kerr.UnknownTopicOrPartition},
		} {
			if version < 2 && tc.current >= 0 {
				continue
			}
			r := kmsg.NewPtrOffsetForLeaderEpochRequest()
			rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
			rt.Topic = "t"
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = tc.partition, tc.current, tc.epoch
			rt.Partitions = append(rt.Partitions, p)
			r.Topics = append(r.Topics, rt)
			row := askAs[*kmsg.OffsetForLeaderEpochResponse](c, version, r).Topics[0].Partitions[0]
			code := int16(0)
			if tc.want != nil {
				code = tc.want.Code
			}
			if row.ErrorCode != code || row.EndOffset != tc.end || version >= 1 && row.LeaderEpoch != tc.wantEpoch {
				t.Errorf("v%d %+v: %+v", version, tc, row)
			}
		}
	}
}

func TestDeleteRecords(t *testing.T) {
	d, c := newOffsetsBroker(t)
	d.make("__consumer_offsets", 1, nil)
	d.make("compacted", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Log.Delete, c.Log.Compact = false, true })
	for _, tc := range []struct {
		topic       string
		offset, low int64
		want        *kerr.Error
	}{
		{"t", 7, -1, kerr.OffsetOutOfRange},
		{"t", -2, -1, kerr.OffsetOutOfRange},
		{"t", 2, 2, nil},
		{"t", 1, 2, nil},
		{"t", -1, 6, nil},
		{"nope", 0, -1, kerr.UnknownTopicOrPartition},
		{"__consumer_offsets", 0, -1, kerr.InvalidTopicException},
		{"compacted", 0, -1, kerr.PolicyViolation},
	} {
		r := kmsg.NewPtrDeleteRecordsRequest()
		rt := kmsg.NewDeleteRecordsRequestTopic()
		rt.Topic = tc.topic
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Offset = tc.offset
		rt.Partitions = append(rt.Partitions, p)
		r.Topics = append(r.Topics, rt)
		row := askAs[*kmsg.DeleteRecordsResponse](c, 2, r).Topics[0].Partitions[0]
		code := int16(0)
		if tc.want != nil {
			code = tc.want.Code
		}
		if row.ErrorCode != code || row.LowWatermark != tc.low {
			t.Errorf("%s to %d: %v, low watermark %d; want %v, %d", tc.topic, tc.offset, kerr.ErrorForCode(row.ErrorCode), row.LowWatermark, tc.want, tc.low)
		}
	}
	if row := c.fetch(fetchRequest("t", metadata.TopicID{}, 0, 5)).Topics[0].Partitions[0]; row.ErrorCode != kerr.OffsetOutOfRange.Code {
		t.Errorf("a deleted record: %v", kerr.ErrorForCode(row.ErrorCode))
	}
	if row := askAs[*kmsg.ListOffsetsResponse](c, 9, listOffsetsRequest("t", -2)).Topics[0].Partitions[0]; row.Offset != 6 {
		t.Errorf("earliest %d after the deletion, want 6", row.Offset)
	}
}

func TestInitProducerID(t *testing.T) {
	d := newDataBroker(t)
	c := d.dial("client")
	last := int64(-1)
	for version := int16(0); version <= 5; version++ {
		r := kmsg.NewPtrInitProducerIDRequest()
		if version >= 3 && last >= 0 {
			r.ProducerID, r.ProducerEpoch = last, 0 // KIP-360
		}
		resp := askAs[*kmsg.InitProducerIDResponse](c, version, r)
		if resp.ErrorCode != 0 || resp.ProducerID <= last || resp.ProducerEpoch != 0 {
			t.Fatalf("v%d: %+v after id %d", version, resp, last)
		}
		last = resp.ProducerID
	}
	for _, tc := range []struct {
		name   string
		change func(*kmsg.InitProducerIDRequest)
		want   *kerr.Error
	}{
		{"id without epoch", func(r *kmsg.InitProducerIDRequest) { r.ProducerID = 3 }, kerr.InvalidRequest},
		{"epoch without id", func(r *kmsg.InitProducerIDRequest) { r.ProducerEpoch = 3 }, kerr.InvalidRequest},
		{"empty transactional id", func(r *kmsg.InitProducerIDRequest) { r.TransactionalID = kmsg.StringPtr("") }, kerr.InvalidRequest},
	} {
		r := kmsg.NewPtrInitProducerIDRequest()
		r.TransactionTimeoutMillis = 1000
		tc.change(r)
		resp := askAs[*kmsg.InitProducerIDResponse](c, 5, r)
		if resp.ErrorCode != tc.want.Code || resp.ProducerID != -1 || resp.ProducerEpoch != -1 {
			t.Errorf("%s: %+v, want %v", tc.name, resp, tc.want)
		}
		if kerr.IsRetriable(kerr.ErrorForCode(resp.ErrorCode)) {
			t.Errorf("%s: clients retry %v for ever", tc.name, tc.want)
		}
	}
}

func TestProducerIDsAreNeverHandedOutTwice(t *testing.T) {
	var mu sync.Mutex
	block := int64(0)
	ids := &ProducerIDs{allocate: func(done func(int64, int32, error)) {
		go func() {
			mu.Lock()
			start := block
			block += 3
			mu.Unlock()
			done(start, 3, nil)
		}()
	}}
	const n = 200
	got := make(chan int64, n)
	for range n {
		go ids.Next(func(id int64, err error) {
			if err != nil {
				t.Error(err)
			}
			got <- id
		})
	}
	seen := map[int64]bool{}
	for range n {
		id := soon(t, got)
		if seen[id] {
			t.Fatalf("id %d was handed out twice", id)
		}
		seen[id] = true
	}
}

func TestProducerIDsWithoutAController(t *testing.T) {
	ids := &ProducerIDs{allocate: func(done func(int64, int32, error)) { done(0, 0, errors.New("no leader")) }}
	for range 2 { // the second asks again
		ids.Next(func(_ int64, err error) {
			if !errors.Is(err, kerr.CoordinatorLoadInProgress) {
				t.Fatal(err)
			}
		})
	}
}

// TestDescribeLogDirsTellsCompaction is about a field of our own, which nobody sees
// who does not ask for it.
func TestDescribeLogDirsTellsCompaction(t *testing.T) {
	d, c := newOffsetsBroker(t)
	d.make("compacted", 1, func(cfg *replica.TopicConfig, _ *metadata.Partition) { cfg.Log.Compact = true })
	for _, asked := range []bool{false, true} {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		if asked {
			req.UnknownTags.Set(CompactionTag, nil)
		}
		for _, topic := range askAs[*kmsg.DescribeLogDirsResponse](c, 4, req).Dirs[0].Topics {
			got, ok := CompactionIn(topic.Partitions[0].UnknownTags)
			if ok != (asked && topic.Topic == "compacted") || got != (Compaction{}) {
				t.Errorf("asked %v, topic %s: %+v, %v", asked, topic.Topic, got, ok)
			}
		}
	}
}

func TestDescribeLogDirs(t *testing.T) {
	d, c := newOffsetsBroker(t)
	d.make("u", 2, nil)
	for version := int16(0); version <= 5; version++ {
		all := askAs[*kmsg.DescribeLogDirsResponse](c, version, kmsg.NewPtrDescribeLogDirsRequest())
		if len(all.Dirs) != 1 || all.Dirs[0].Dir != d.store.Dir() || len(all.Dirs[0].Topics) != 2 || len(all.Dirs[0].Topics[1].Partitions) != 2 {
			t.Fatalf("v%d: %+v", version, all.Dirs)
		}
		row := all.Dirs[0].Topics[0].Partitions[0]
		if row.Size != 2*int64(len(values(0, "a", "b", "c"))) || row.OffsetLag != 0 || row.IsFuture {
			t.Errorf("v%d: %+v", version, row)
		}
		if dir := all.Dirs[0]; version >= 4 && (dir.TotalBytes <= 0 || dir.UsableBytes <= 0 || dir.UsableBytes > dir.TotalBytes) {
			t.Errorf("v%d: %d bytes of %d", version, dir.UsableBytes, dir.TotalBytes)
		}
	}
	some := kmsg.NewPtrDescribeLogDirsRequest()
	for _, name := range []string{"u", "nope"} {
		rt := kmsg.NewDescribeLogDirsRequestTopic()
		rt.Topic, rt.Partitions = name, []int32{1, 1, 9}
		some.Topics = append(some.Topics, rt)
	}
	dirs := askAs[*kmsg.DescribeLogDirsResponse](c, 4, some).Dirs
	if len(dirs) != 1 || len(dirs[0].Topics) != 1 || len(dirs[0].Topics[0].Partitions) != 1 || dirs[0].Topics[0].Partitions[0].Partition != 1 {
		t.Fatalf("%+v", dirs)
	}
	none := kmsg.NewPtrDescribeLogDirsRequest()
	none.Topics = []kmsg.DescribeLogDirsRequestTopic{}
	if dirs := askAs[*kmsg.DescribeLogDirsResponse](c, 4, none).Dirs; len(dirs) != 1 || len(dirs[0].Topics) != 0 {
		t.Fatalf("asked for no topic: %+v", dirs)
	}
}
