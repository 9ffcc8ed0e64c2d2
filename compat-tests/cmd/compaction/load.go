package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var codecs = []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(), kgo.GzipCompression(), kgo.SnappyCompression()}

// fate is what became of a record.
type fate int8

const (
	stays fate = iota
	aborted
	unsure // its transaction ended with an error, which a kill may cause
)

// record is one that was acknowledged.
type record struct {
	offset    int64
	number    int32 // in its value
	tombstone bool
	fate      fate
}

// load writes, and remembers what it wrote by topic, partition and key.
type load struct {
	o      options
	addr   string          // the broker's, over its restarts
	broker *harness.Broker // of the goroutine that starts and kills it

	mu      sync.Mutex
	records []map[int32][]record // by topic, then by key
	written int
	aborted int
	left    int
	kills   chan struct{} // one for each kill that is due; the load goes on when it is taken
}

func (l *load) names() []string {
	var names []string
	for t := range l.o.topics {
		names = append(names, fmt.Sprintf("compaction-%d", t))
	}
	return names
}

func (l *load) client(topic int, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(l.addr), kgo.DisableClientMetrics(), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[topic%len(codecs)]),
		kgo.ProducerLinger(2 * time.Millisecond), kgo.RetryTimeout(time.Minute),
	}, opts...)...)
}

func (l *load) run(ctx context.Context) error {
	if err := l.makeTopics(ctx); err != nil {
		return err
	}
	done := make(chan error, l.o.topics)
	l.kills = make(chan struct{})
	for t := range l.o.topics {
		l.records = append(l.records, map[int32][]record{})
		go func() { done <- l.writeTopic(ctx, t) }()
	}
	kills := 0
	var errs []error
	for left := l.o.topics; left > 0; {
		select {
		case err := <-done:
			errs = append(errs, err)
			left--
		case <-l.kills:
			kills++
			errs = append(errs, l.restart(ctx, true))
		}
	}
	if kills < l.o.kills {
		errs = append(errs, fmt.Errorf("the load was over after %d of %d kills", kills, l.o.kills))
	}
	return errors.Join(errs...)
}

// wrote counts a record. The kills are spread evenly over the load, however fast it is, and none comes after its end.
func (l *load) wrote() {
	l.written++
	if due := l.o.messages / (l.o.kills + 1); l.written%due == 0 && l.written/due <= l.o.kills {
		l.kills <- struct{}{}
	}
}

// restart stops the broker, or kills it, and starts it again.
func (l *load) restart(ctx context.Context, kill bool) error {
	if kill {
		l.broker.Kill()
	} else if err := l.broker.Stop(ctx); err != nil {
		return err
	}
	b, err := harness.Start(ctx, l.broker.Options)
	if err == nil {
		l.broker = b
	}
	return err
}

func (l *load) makeTopics(ctx context.Context) error {
	cl, err := l.client(0)
	if err != nil {
		return err
	}
	defer cl.Close()
	set := map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "2000", "segment.bytes": "1048576"}
	configs := map[string]*string{}
	for k, v := range set {
		configs[k] = &v
	}
	resps, err := kadm.NewClient(cl).CreateTopics(ctx, int32(l.o.partitions), 1, configs, l.names()...)
	if err != nil {
		return err
	}
	return resps.Error()
}

// writeTopic writes rounds of records, some of them transactions.
func (l *load) writeTopic(ctx context.Context, topic int) error {
	plain, err := l.client(topic)
	if err != nil {
		return err
	}
	defer plain.Close()
	txn, err := l.client(topic, kgo.TransactionalID(fmt.Sprintf("compaction-%d", topic)))
	if err != nil {
		return err
	}
	defer txn.Close()
	rnd := rand.New(rand.NewPCG(l.o.seed, uint64(topic)))
	number := int32(0)
	for left := l.o.messages / l.o.topics; left > 0; {
		n := min(left, 1+rnd.IntN(400))
		left -= n
		if rnd.IntN(100) < l.o.transacted {
			err = l.transaction(ctx, txn, rnd, topic, &number, n)
		} else {
			_, err = l.produce(ctx, plain, rnd, topic, &number, n)
		}
		if err != nil {
			return fmt.Errorf("topic %d: %w", topic, err)
		}
	}
	return l.roll(ctx, plain, topic, &number)
}

func (l *load) transaction(ctx context.Context, cl *kgo.Client, rnd *rand.Rand, topic int, number *int32, n int) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	written, err := l.produce(ctx, cl, rnd, topic, number, n)
	end, became := kgo.TryCommit, stays
	if err != nil || rnd.IntN(3) == 0 {
		end, became = kgo.TryAbort, aborted
	}
	if err := cl.EndTransaction(ctx, end); err != nil {
		if l.o.kills == 0 {
			return err
		}
		became = unsure
		_ = cl.EndTransaction(ctx, kgo.TryAbort)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range written {
		list := l.records[topic][w.key]
		list[w.at].fate = became
	}
	if became == aborted {
		l.aborted += len(written)
	}
	if err != nil && l.o.kills == 0 {
		return err
	}
	return nil
}

// place is where a record is remembered.
type place struct {
	key int32
	at  int
}

// produce writes n records and waits for them.
func (l *load) produce(ctx context.Context, cl *kgo.Client, rnd *rand.Rand, topic int, number *int32, n int) (written []place, err error) {
	var wait sync.WaitGroup
	var failed error
	for range n {
		key := int32(rnd.IntN(l.o.keys))
		*number++
		rec := record{number: *number, tombstone: rnd.IntN(100) < l.o.deletes}
		r := &kgo.Record{Topic: l.names()[topic], Partition: key % int32(l.o.partitions), Key: fmt.Appendf(nil, "key-%d", key)}
		if !rec.tombstone {
			r.Value = fmt.Appendf(nil, "value-%d-%*d", rec.number, rnd.IntN(60), 0)
		}
		wait.Add(1)
		cl.Produce(ctx, r, func(r *kgo.Record, err error) {
			defer wait.Done()
			l.mu.Lock()
			defer l.mu.Unlock()
			if err != nil {
				failed = err
				return
			}
			rec.offset = r.Offset
			l.records[topic][key] = append(l.records[topic][key], rec)
			written = append(written, place{key, len(l.records[topic][key]) - 1})
			l.wrote()
		})
	}
	wait.Wait()
	return written, failed
}

// roll writes records of one key until every partition has a new segment, so that all that matters can be cleaned.
func (l *load) roll(ctx context.Context, cl *kgo.Client, topic int, number *int32) error {
	for p := range int32(l.o.partitions) {
		for range 12 {
			*number++
			key := -1 - p // not one of the others
			rec := record{number: *number}
			r := &kgo.Record{Topic: l.names()[topic], Partition: p, Key: fmt.Appendf(nil, "key-%d", key), Value: make([]byte, 100_000)}
			for i := range r.Value { // incompressible
				r.Value[i] = byte(rand.Uint32())
			}
			copy(r.Value, fmt.Sprintf("value-%d-", rec.number))
			if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
				return err
			}
			rec.offset = r.Offset
			l.mu.Lock()
			l.records[topic][key] = append(l.records[topic][key], rec)
			l.wrote()
			l.mu.Unlock()
		}
	}
	return nil
}
