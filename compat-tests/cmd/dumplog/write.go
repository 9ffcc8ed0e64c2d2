package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

const groups = 5

// write fills a data folder over three lives of a broker, of which the second ends by SIGKILL, and returns it.
func write(ctx context.Context, dir string, kind harness.Kind) (string, error) {
	settings := harness.Options{Kind: kind, Dir: dir, Properties: map[string]string{
		"log.segment.bytes": "1048576", "log.cleaner.backoff.ms": "200",
	}}
	for life := range 3 {
		b, err := harness.Start(ctx, settings)
		if err != nil {
			return "", err
		}
		settings = b.Options
		err = live(ctx, b, life)
		b.Kill() // of the second life and of one that failed; the others are over
		if err != nil {
			return "", fmt.Errorf("life %d: %w; the broker's log ends:\n%s", life, err, b.LogTail(3000))
		}
	}
	return settings.DataDir(), nil
}

// live is what happens in a life of the broker, up to its stop or its kill.
func live(ctx context.Context, b *harness.Broker, life int) error {
	if err := fill(ctx, b.Addr(), life); err != nil {
		return err
	}
	switch life {
	case 1:
		return nil
	case 2:
		if _, err := b.AwaitCleaned(ctx, compactedTopic); err != nil {
			return err
		}
	}
	return b.Stop(ctx)
}

func client(addr string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.DisableClientMetrics(), kgo.MetadataMinAge(50 * time.Millisecond)}, opts...)...)
}

func topicOf(codec string) string { return "dump-" + codec }

func fill(ctx context.Context, addr string, life int) error {
	for codec, compression := range codecs {
		for _, plain := range []bool{false, true} {
			opts := []kgo.Opt{kgo.ProducerBatchCompression(compression), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topicOf(codec))}
			if plain {
				opts = append(opts, kgo.DisableIdempotentWrite())
			}
			if err := fillTopic(ctx, addr, life, topicOf(codec), opts); err != nil {
				return fmt.Errorf("codec %s: %w", codec, err)
			}
		}
	}
	if err := errors.Join(trim(ctx, addr, life), transact(ctx, addr, life)); err != nil {
		return err
	}
	if err := fillCompacted(ctx, addr, life); err != nil {
		return fmt.Errorf("%s: %w", compactedTopic, err)
	}
	return consumeInGroups(ctx, addr)
}

func fillTopic(ctx context.Context, addr string, life int, topic string, opts []kgo.Opt) error {
	cl, err := client(addr, opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	const partitions = 2
	resp, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, nil, topic)
	if err != nil && life == 0 && resp.ErrMessage == "" {
		return err
	}
	rnd := rand.New(rand.NewPCG(uint64(life), 3))
	base := time.Now().Add(-time.Hour)
	var failed error
	for i := range 1200 {
		r := &kgo.Record{Partition: int32(i % partitions), Timestamp: base.Add(time.Duration(rnd.IntN(3_600_000)) * time.Millisecond)}
		r.Value = make([]byte, rnd.IntN(3000))
		for j := range r.Value[:len(r.Value)/2] { // the other half is zeros, so that every codec finds something to do
			r.Value[j] = byte(rnd.Uint32())
		}
		switch i % 4 {
		case 0:
			r.Key = fmt.Appendf(nil, "key-%d", i%50)
		case 1:
			r.Key, r.Value = []byte("gone"), nil
		case 2:
			r.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte("v")}, {Key: "null"}}
		}
		if i == 600 {
			r.Value = bytes.Repeat([]byte("large"), 150_000)
		}
		cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
		if i%37 == 0 {
			if err := cl.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return errors.Join(cl.Flush(ctx), failed)
}

// trim moves a log start into the middle of a segment.
func trim(ctx context.Context, addr string, life int) error {
	cl, err := client(addr)
	if err != nil {
		return err
	}
	defer cl.Close()
	to := kadm.Offsets{}
	to.Add(kadm.Offset{Topic: topicOf("none"), Partition: 0, At: int64(500 * (life + 1))})
	deleted, err := kadm.NewClient(cl).DeleteRecords(ctx, to)
	return errors.Join(err, deleted.Error())
}

func consumeInGroups(ctx context.Context, addr string) error {
	for g := range groups {
		cl, err := client(addr, kgo.ConsumerGroup(fmt.Sprintf("dump-group-%d", g)), kgo.ConsumeTopics(topicOf("zstd"), topicOf("gzip")),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
		if err != nil {
			return err
		}
		for range 3 {
			fetches := cl.PollRecords(ctx, 100)
			if err := errors.Join(fetches.Err(), cl.CommitRecords(ctx, fetches.Records()...)); err != nil {
				cl.Close()
				return fmt.Errorf("group %d: %w", g, err)
			}
		}
		cl.Close()
	}
	return nil
}
