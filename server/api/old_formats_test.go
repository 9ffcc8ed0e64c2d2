package api

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// oldMessages are values as messages of a format before record batches.
func oldMessages(magic int8, vs ...string) []byte {
	var out []byte
	for _, v := range vs {
		start := len(out)
		if magic == 0 {
			m := kmsg.MessageV0{Value: []byte(v)}
			out = m.AppendTo(out)
		} else {
			m := kmsg.MessageV1{Magic: 1, Timestamp: 1_700_000_000_000, Value: []byte(v)}
			out = m.AppendTo(out)
		}
		b := out[start:]
		binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
		binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	}
	return out
}

// oldContents are the values of messages of one format, and their offsets, which
// follow each other.
func oldContents(t *testing.T, magic int8, set []byte) (first int64, vs []string) {
	t.Helper()
	first = -1
	add := func(offset int64, is int8, value []byte) {
		if first < 0 {
			first = offset
		}
		if offset != first+int64(len(vs)) || is != magic {
			t.Fatalf("message %d has offset %d and format v%d", len(vs), offset, is)
		}
		vs = append(vs, string(value))
	}
	for len(set) > 0 {
		size := 12 + int(binary.BigEndian.Uint32(set[8:]))
		if size > len(set) {
			t.Fatalf("a message of %d bytes in %d", size, len(set))
		}
		if magic == 0 {
			var m kmsg.MessageV0
			if err := m.ReadFrom(set[:size]); err != nil {
				t.Fatal(err)
			}
			add(m.Offset, m.Magic, m.Value)
		} else {
			var m kmsg.MessageV1
			if err := m.ReadFrom(set[:size]); err != nil {
				t.Fatal(err)
			}
			add(m.Offset, m.Magic, m.Value)
		}
		set = set[size:]
	}
	return first, vs
}

// magicOf is the format that a version of Fetch answers.
func magicOf(fetchVersion int16) int8 {
	if fetchVersion < firstV1Fetch {
		return 0
	}
	return 1
}

func TestOldProduceAndFetchInEveryVersion(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, nil)
	c := d.dial("client")
	var want []string
	for version := int16(0); version < firstBatchProduce; version++ {
		for magic := range int8(3) {
			vs := []string{fmt.Sprintf("v%d of magic %d", version, magic), "b"}
			set := values(1_700_000_000_000, vs...)
			if magic < 2 {
				set = oldMessages(magic, vs...)
			}
			row := askAs[*kmsg.ProduceResponse](c, version, produceRequest("t", id, 0, -1, set)).Topics[0].Partitions[0]
			if row.ErrorCode != 0 || row.BaseOffset != int64(len(want)) || row.LogAppendTime != -1 {
				t.Fatalf("v%d magic %d: %+v", version, magic, row)
			}
			want = append(want, vs...)
		}
	}
	for version := int16(0); version <= 18; version++ {
		row := askAs[*kmsg.FetchResponse](c, version, fetchRequest("t", id, 0, 0)).Topics[0].Partitions[0]
		if row.ErrorCode != 0 || row.HighWatermark != int64(len(want)) {
			t.Fatalf("v%d: %+v", version, row)
		}
		got := contents(t, row.RecordBatches)
		if version < firstBatchFetch {
			_, got = oldContents(t, magicOf(version), row.RecordBatches)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("v%d: %q, want %q", version, got, want)
		}
	}
}

func TestOldProduceErrors(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Batch.MaxMessageBytes = 200 })
	d.make("compacted", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Batch.Compacted = true })
	c := d.dial("client")
	flipped := oldMessages(1, "v")
	flipped[len(flipped)-1]++
	twice := append(values(1_700_000_000_000, "a"), values(1_700_000_000_000, "b")...)
	for _, tc := range []struct {
		name, topic string
		set         []byte
		want        *kerr.Error
	}{
		{"damaged", "t", flipped, kerr.CorruptMessage},
		{"no key", "compacted", oldMessages(0, "v"), kerr.InvalidRecord},
		{"too large as one batch", "t", oldMessages(1, slices.Repeat([]string{"fifty bytes, fifty bytes, fifty bytes, fifty bytes."}, 5)...), kerr.MessageTooLarge},
		{"two batches", "t", twice, kerr.InvalidRecord},
		{"unknown topic", "nope", oldMessages(0, "v"), kerr.UnknownTopicOrPartition},
	} {
		row := askAs[*kmsg.ProduceResponse](c, 2, produceRequest(tc.topic, id, 0, 1, tc.set)).Topics[0].Partitions[0]
		if row.ErrorCode != tc.want.Code || row.BaseOffset != -1 {
			t.Errorf("%s: %+v, want %v", tc.name, row, tc.want)
		}
	}
	// What holds no whole message appends nothing and is no error.
	for _, set := range [][]byte{nil, oldMessages(0, "v")[:20], values(1_700_000_000_000, "v")[:65]} {
		row := askAs[*kmsg.ProduceResponse](c, 2, produceRequest("t", id, 0, 1, set)).Topics[0].Partitions[0]
		if row.ErrorCode != 0 || row.BaseOffset != -1 {
			t.Errorf("%d bytes: %+v", len(set), row)
		}
	}
}

func TestOldFetchLimits(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 2, nil)
	c := d.dial("client")
	for p := range int32(2) {
		c.mustProduce("t", p, "zero", "one", "two", "three")
	}
	for version := int16(0); version < firstBatchFetch; version++ {
		for _, tc := range []struct {
			maxBytes int32
			offset   int64
			want     []string
		}{
			{1 << 20, 2, []string{"two", "three"}},
			{1, 1, []string{"one"}}, // less than a message: it is given all the same
			{80, 0, []string{"zero", "one"}},
		} {
			req := fetchRequest("t", id, 0, tc.offset)
			req.Topics[0].Partitions[0].PartitionMaxBytes = tc.maxBytes
			row := askAs[*kmsg.FetchResponse](c, version, req).Topics[0].Partitions[0]
			if _, got := oldContents(t, magicOf(version), row.RecordBatches); !slices.Equal(got, tc.want) {
				t.Errorf("v%d from %d, at most %d bytes: %q, want %q", version, tc.offset, tc.maxBytes, got, tc.want)
			}
		}
		// Clients from v3 on put first what is next; the others would starve a
		// partition that only gets what fits.
		req := fetchRequest("t", id, 0, 0)
		addFetch(req, "t", id, 1, 0)
		req.Topics[0].Partitions[0].PartitionMaxBytes = 1
		req.Topics[0].Partitions[1].PartitionMaxBytes = 1
		rows := askAs[*kmsg.FetchResponse](c, version, req).Topics[0].Partitions
		if got := len(rows[1].RecordBatches) > 0; len(rows[0].RecordBatches) == 0 || got != (version < firstFairFetch) {
			t.Errorf("v%d: the second partition has %d bytes", version, len(rows[1].RecordBatches))
		}
	}
}

// appendMarkers puts control batches into a log.
func (d *dataBroker) appendMarkers(topic string, n int) {
	d.t.Helper()
	p, err := d.h.partition(d.image.Load(), topic, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	for range n {
		b := batch.NewBuilder(batch.BuilderOptions{Control: true, Transactional: true, Producer: &batch.ProducerStamp{ID: 7, BaseSequence: batch.NoSequence}})
		b.Add(1_700_000_000_000, []byte{0, 0, 0, 1}, []byte{0, 0, 0, 0, 0, 0})
		if _, err := p.Append(b.Build(), replica.AppendOptions{Acks: 1, LeaderEpoch: -1, Internal: true}); err != nil {
			d.t.Fatal(err)
		}
	}
}

func TestOldFetchPassesMarkersOver(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, nil)
	c := d.dial("client")
	d.appendMarkers("t", 300)
	c.mustProduce("t", 0, "a")
	req := fetchRequest("t", id, 0, 0)
	req.Topics[0].Partitions[0].PartitionMaxBytes = 60
	for version := int16(0); version < firstBatchFetch; version++ {
		row := askAs[*kmsg.FetchResponse](c, version, req).Topics[0].Partitions[0]
		if first, got := oldContents(t, magicOf(version), row.RecordBatches); first != 300 || !slices.Equal(got, []string{"a"}) {
			t.Fatalf("v%d: %q from %d, error %d", version, got, first, row.ErrorCode)
		}
	}
}

func TestOldLongPollIsNotEndedByMarkers(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("t", 1, nil)
	got := later[*kmsg.FetchResponse](d.dial("consumer"), 2, fetchRequest("t", id, 0, 0))
	d.parked(1)
	d.appendMarkers("t", 1)
	d.parked(1)
	c := d.dial("producer")
	c.mustProduce("t", 0, "a")
	row := soon(t, got).Topics[0].Partitions[0]
	if first, got := oldContents(t, 1, row.RecordBatches); first != 1 || !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q from %d", got, first)
	}
}

func TestZstdNeedsANewFetch(t *testing.T) {
	d := newDataBroker(t)
	byTopic := d.make("zstd", 1, func(c *replica.TopicConfig, _ *metadata.Partition) {
		c.Batch.Recompress, c.Batch.Codec = true, batch.Zstd
	})
	byProducer := d.make("t", 1, nil)
	c := d.dial("client")
	c.mustProduce("zstd", 0, "a")
	b := batch.NewBuilder(batch.BuilderOptions{Codec: batch.Zstd})
	b.Add(1_700_000_000_000, nil, []byte("a"))
	c.produceTo("t", 0, b.Build())
	for version := int16(0); version <= 18; version++ {
		for topic, tc := range map[string]struct {
			id   metadata.TopicID
			from int16
		}{"zstd": {byTopic, firstZstdFetch}, "t": {byProducer, firstBatchFetch}} {
			row := askAs[*kmsg.FetchResponse](c, version, fetchRequest(topic, tc.id, 0, 0)).Topics[0].Partitions[0]
			want := kerr.UnsupportedCompressionType.Code
			if version >= tc.from {
				want = 0
			}
			if row.ErrorCode != want || (len(row.RecordBatches) > 0) != (want == 0) {
				t.Errorf("%s v%d: error %d with %d bytes", topic, version, row.ErrorCode, len(row.RecordBatches))
			}
		}
	}
}

func TestCodesThatOldClientsKnow(t *testing.T) {
	for version := int16(0); version < 8; version++ {
		code := knownCode(protocol.Code(kerr.KafkaStorageError), version, firstStorageErrorProduce)
		if want := map[bool]int16{true: kerr.NotLeaderForPartition.Code, false: kerr.KafkaStorageError.Code}[version < 4]; code != want {
			t.Errorf("v%d: %d, want %d", version, code, want)
		}
	}
}
