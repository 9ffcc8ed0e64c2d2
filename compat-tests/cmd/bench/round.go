package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const mib = 1 << 20

// oneRound starts a broker on an empty folder, takes every row of it and removes it.
func oneRound(ctx context.Context, o options, kind harness.Kind, r *report) error {
	dir, err := os.MkdirTemp(o.dir, "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	const kafkasOwnHeapMB = 1024 // what kafka-server-start.sh gives it
	settings := harness.Options{Kind: kind, Dir: dir, HeapMB: kafkasOwnHeapMB}
	b, took, err := startTimed(settings)
	if err != nil {
		return err
	}
	defer func() { b.Kill() }()
	r.add(kind, "start to the first acknowledged record", "ms", false, took.Seconds()*1000)
	size, err := installed(kind)
	if err != nil {
		return err
	}
	r.add(kind, "size on disk", "MiB", false, size)
	if rss, anon, err := harness.Memory(b.PID()); err == nil {
		r.add(kind, "memory after the start, VmRSS", "MiB", false, float64(rss)/mib)
		r.add(kind, "memory after the start, RssAnon", "MiB", false, float64(anon)/mib)
	}
	for _, recordSize := range []int{100, 1024} {
		for _, partitions := range []int32{1, 6} {
			for _, acks := range []string{"1", "all"} {
				name := fmt.Sprintf("%d B, %d partitions, acks=%s", recordSize, partitions, acks)
				if !strings.Contains(name, o.only) {
					continue
				}
				if err := throughput(ctx, o, b, r, name, recordSize, partitions, acks); err != nil {
					return fmt.Errorf("%s: %w; the log ends:\n%s", name, err, b.LogTail(2000))
				}
			}
		}
	}
	if err := latency(ctx, o, b, r); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	if err := transactionRows(ctx, o, b, r); err != nil {
		return err
	}
	if rss, anon, err := harness.Memory(b.PID()); err == nil {
		r.add(kind, "memory after the load, VmRSS", "MiB", false, float64(rss)/mib)
		r.add(kind, "memory after the load, RssAnon", "MiB", false, float64(anon)/mib)
	}
	stop, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return b.Stop(stop)
}

// startTimed launches a broker and times it until a record of a topic that nobody created is acknowledged. Apache Kafka's
// folder is formatted before, outside the time.
func startTimed(o harness.Options) (*harness.Broker, time.Duration, error) {
	if o.Kind == harness.Kafka {
		b, err := harness.Launch(o)
		if err != nil {
			return nil, 0, err
		}
		b.Kill()
		o = b.Options
	}
	begin := time.Now()
	b, err := harness.Launch(o)
	if err != nil {
		return nil, 0, err
	}
	if _, err := harness.FirstAck(b.Addr(), "first", 0, []byte("hello"), time.Minute); err != nil {
		b.Kill()
		return nil, 0, err
	}
	return b, time.Since(begin), nil
}

func installed(kind harness.Kind) (float64, error) {
	if kind == harness.Barnabas {
		bin, err := harness.Binary()
		if err != nil {
			return 0, err
		}
		info, err := os.Stat(bin)
		if err != nil {
			return 0, err
		}
		return float64(info.Size()) / mib, nil
	}
	libs, err := harness.JavaLibs()
	if err != nil {
		return 0, err
	}
	jars, err := filepath.Glob(filepath.Join(libs, "*.jar"))
	total := int64(0)
	for _, jar := range jars {
		if info, err := os.Stat(jar); err == nil {
			total += info.Size()
		}
	}
	return float64(total) / mib, err
}

func client(addr string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.DisableClientMetrics(), kgo.MetadataMinAge(50 * time.Millisecond)}, opts...)...)
}

func producer(addr, topic, acks string) (*kgo.Client, error) {
	opts := []kgo.Opt{kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(100_000)}
	if acks == "1" {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
	}
	return client(addr, opts...)
}

func createTopic(ctx context.Context, addr, topic string, partitions int32) error {
	cl, err := client(addr)
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	resp, err := adm.CreateTopic(ctx, partitions, 1, nil, topic)
	if err = errors.Join(err, resp.Err); err != nil {
		return err
	}
	for { // Apache Kafka answers before its partitions serve
		ends, err := adm.ListEndOffsets(ctx, topic)
		if err == nil && ends.Error() == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// throughput produces o.mib MiB and then consumes them.
func throughput(ctx context.Context, o options, b *harness.Broker, r *report, name string, size int, partitions int32, acks string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	topic := fmt.Sprintf("bench-%d-%d-%s", size, partitions, acks)
	if err := createTopic(ctx, b.Addr(), topic, partitions); err != nil {
		return err
	}
	count := o.mib * mib / size
	rate, perGiB, err := measured(b, count*size, func() error { return produceAll(ctx, b.Addr(), topic, acks, size, count) })
	if err != nil {
		return err
	}
	r.add(b.Kind, "produce "+name, "MiB/s", true, rate)
	r.add(b.Kind, "produce "+name+", broker CPU", "s/GiB", false, perGiB)
	rate, perGiB, err = measured(b, count*size, func() error { return consumeAll(ctx, b.Addr(), topic, count) })
	if err != nil {
		return err
	}
	r.add(b.Kind, "consume "+name, "MiB/s", true, rate)
	r.add(b.Kind, "consume "+name+", broker CPU", "s/GiB", false, perGiB)
	return nil
}

func measured(b *harness.Broker, bytes int, work func() error) (rate, cpuPerGiB float64, err error) {
	before, err := harness.CPU(b.PID())
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if err := work(); err != nil {
		return 0, 0, err
	}
	took := time.Since(begin)
	after, err := harness.CPU(b.PID())
	return float64(bytes) / mib / took.Seconds(), (after - before).Seconds() / (float64(bytes) / (1 << 30)), err
}

func produceAll(ctx context.Context, addr, topic, acks string, size, count int) error {
	cl, err := producer(addr, topic, acks)
	if err != nil {
		return err
	}
	defer cl.Close()
	values := randomValues(size)
	var failed atomic.Pointer[error]
	for i := range count {
		cl.Produce(ctx, &kgo.Record{Value: values[i%len(values)]}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	err = cl.Flush(ctx)
	if f := failed.Load(); f != nil {
		return *f
	}
	return err
}

func randomValues(size int) [][]byte {
	rnd := rand.New(rand.NewPCG(1, uint64(size)))
	values := make([][]byte, 64)
	for i := range values {
		values[i] = make([]byte, size)
		for j := range values[i] {
			values[i][j] = byte(rnd.Uint32())
		}
	}
	return values
}

func consumeAll(ctx context.Context, addr, topic string, count int) error {
	cl, err := client(addr, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	for n := 0; n < count; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %d of %d records: %w", n, count, err)
		}
		n += fetches.NumRecords()
	}
	return nil
}

// latency sends at a fixed rate and notes when each record is in the consumer's hands, counted from when it was due.
func latency(ctx context.Context, o options, b *harness.Broker, r *report) error {
	ctx, cancel := context.WithTimeout(ctx, o.latency+time.Minute)
	defer cancel()
	const topic = "bench-latency"
	if err := createTopic(ctx, b.Addr(), topic, 1); err != nil {
		return err
	}
	prod, err := client(b.Addr(), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer prod.Close()
	cons, err := client(b.Addr(), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cons.Close()
	warm, count := o.rate, o.rate*int(o.latency/time.Second)
	total := warm + count
	begin := time.Now()
	due := func(i int) time.Time { return begin.Add(time.Duration(i) * time.Second / time.Duration(o.rate)) }
	go func() {
		for i := range total {
			time.Sleep(time.Until(due(i)))
			prod.Produce(ctx, &kgo.Record{Value: binary.BigEndian.AppendUint64(make([]byte, 92), uint64(i))}, nil)
		}
	}()
	took := make([]time.Duration, 0, count)
	for n := 0; n < total; {
		fetches := cons.PollFetches(ctx)
		now := time.Now()
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %d of %d records: %w", n, total, err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			n++
			if i := int(binary.BigEndian.Uint64(rec.Value[92:])); i >= warm {
				took = append(took, now.Sub(due(i)))
			}
		})
	}
	slices.Sort(took)
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} {
		v := took[int(q.at*float64(len(took)-1))]
		r.add(b.Kind, fmt.Sprintf("produce to consume at %d records/s, %s", o.rate, q.name), "ms", false, v.Seconds()*1000)
	}
	return nil
}
