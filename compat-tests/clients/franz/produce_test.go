//go:build !old

package franz

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// TestProduceConsume sends records of every shape through each codec and each kind of producer, and reads them back
// equal, in order, without a gap in the offsets.
func TestProduceConsume(t *testing.T) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	producers := map[string][]kgo.Opt{
		"idempotent": {kgo.RequiredAcks(kgo.AllISRAcks())},
		"acks=all":   {kgo.RequiredAcks(kgo.AllISRAcks()), kgo.DisableIdempotentWrite()},
		"acks=1":     {kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()},
		"acks=0":     {kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()},
	}
	for codec, compression := range codecs {
		for producer, opts := range producers {
			t.Run(codec+"/"+producer, func(t *testing.T) {
				roundTrip(t, append(opts, kgo.ProducerBatchCompression(compression)))
			})
		}
	}
}

func roundTrip(t *testing.T, opts []kgo.Opt) {
	const partitions, count = 3, 600
	name := topic(t, partitions, nil)
	ctx := harness.Context(t, time.Minute)
	cl := client(t, append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	sent := make([][]*kgo.Record, partitions)
	for i := range count {
		r := shape(i)
		r.Topic, r.Partition = name, int32(i%partitions)
		sent[r.Partition] = append(sent[r.Partition], r)
		cl.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
		if i%97 == 0 { // several batches a partition
			if err := cl.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, ctx, name, partitions, count)
	for p := range sent {
		if len(sent[p]) != len(got[p]) {
			t.Fatalf("partition %d: sent %d, read %d", p, len(sent[p]), len(got[p]))
		}
		for i, r := range got[p] {
			if r.Offset != int64(i) {
				t.Fatalf("partition %d: record %d has offset %d", p, i, r.Offset)
			}
			if err := same(sent[p][i], r); err != nil {
				t.Fatalf("partition %d, record %d: %v", p, i, err)
			}
		}
	}
}

// shape makes the i-th record: nulls, empties, headers, sizes from nothing to 100 kB.
func shape(i int) *kgo.Record {
	rnd := rand.New(rand.NewPCG(uint64(i), 7))
	r := &kgo.Record{Timestamp: time.UnixMilli(time.Now().UnixMilli() - int64(i))}
	switch i % 5 {
	case 0:
		r.Key, r.Value = fmt.Appendf(nil, "key-%d", i), bytes.Repeat([]byte{byte(i)}, rnd.IntN(2000))
	case 1:
		r.Value = []byte{}
	case 2:
		r.Key = []byte{}
	case 3:
		r.Key, r.Value = []byte("tombstone"), nil
	default:
		r.Value = make([]byte, rnd.IntN(300))
		for j := range r.Value {
			r.Value[j] = byte(rnd.Uint32())
		}
		r.Headers = []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: nil}, {Key: "", Value: []byte{}}}
	}
	if i%151 == 150 {
		r.Value = bytes.Repeat([]byte("0123456789"), 10_000)
	}
	return r
}

func readAll(t *testing.T, ctx context.Context, topic string, partitions, count int) [][]*kgo.Record {
	t.Helper()
	cl := client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	got := make([][]*kgo.Record, partitions)
	for n := 0; n < count; {
		fetches := cl.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			t.Fatalf("after %d of %d records: %v", n, count, errs[0].Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got[r.Partition] = append(got[r.Partition], r)
			n++
		})
	}
	return got
}

func TestAutoCreatedTopic(t *testing.T) {
	ctx := harness.Context(t, 30*time.Second)
	name := harness.Name(t, "franz-auto")
	// The client gives an unknown topic up after it has asked four times, which take it less than a busy disk's sync does.
	cl := client(t, kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(name), kgo.UnknownTopicRetries(-1))
	r, err := cl.ProduceSync(ctx, kgo.StringRecord("x")).First()
	if err != nil {
		t.Fatal(err)
	}
	if r.Offset != 0 || r.Partition != 0 {
		t.Fatalf("the first record is at %d of partition %d", r.Offset, r.Partition)
	}
}

func TestRecordTooLarge(t *testing.T) {
	ctx := harness.Context(t, 30*time.Second)
	limit := "10000"
	name := topic(t, 1, map[string]*string{"max.message.bytes": &limit})
	cl := client(t, kgo.DefaultProduceTopic(name), kgo.ProducerBatchCompression(kgo.NoCompression()))
	err := cl.ProduceSync(ctx, kgo.SliceRecord(make([]byte, 20_000))).FirstErr()
	if !errors.Is(err, kerr.MessageTooLarge) {
		t.Fatalf("a batch over max.message.bytes: %v", err)
	}
	if err := cl.ProduceSync(ctx, kgo.SliceRecord(make([]byte, 5_000))).FirstErr(); err != nil {
		t.Fatalf("the producer does not go on after it: %v", err)
	}
}

// TestLongPoll holds a fetch open on an empty partition: it is answered by a produce, long before its time is up.
func TestLongPoll(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	name := topic(t, 1, nil)
	cons := client(t, kgo.ConsumeTopics(name), kgo.FetchMaxWait(30*time.Second))
	prod := client(t, kgo.DefaultProduceTopic(name))
	for i := range 20 {
		if err := prod.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(i))).FirstErr(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		fetches := cons.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Fatalf("record %d came after %v", i, took)
		}
		if got := string(fetches.Records()[0].Value); got != fmt.Sprint(i) {
			t.Fatalf("record %d reads %q", i, got)
		}
	}
}
