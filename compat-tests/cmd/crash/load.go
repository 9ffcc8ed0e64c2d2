package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func client(addr string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.DisableClientMetrics(), kgo.AlwaysRetryEOF(),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		// A coordinator may load for longer than a client's usual number of tries lasts when they follow so closely.
		kgo.RequestRetries(math.MaxInt32), kgo.RetryTimeout(patience),
	}, opts...)...)
}

// producerOptions say what kind of producer a load is.
func producerOptions(kind byte) []kgo.Opt {
	opts := []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(2000)}
	switch kind {
	case plainAll:
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks()))
	case plainOne:
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
	}
	return opts
}

// prepare makes the topic and fills it.
func prepare(ctx context.Context, addr string, o options, s *state) error {
	cl, err := client(addr, append(producerOptions(fill), kgo.ProducerBatchCompression(kgo.NoCompression()))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	resp, err := kadm.NewClient(cl).CreateTopic(ctx, int32(o.partitions), 1, nil, topic)
	if err = errors.Join(err, resp.Err); err != nil {
		return fmt.Errorf("create the topic: %w", err)
	}
	rnd := rand.New(rand.NewPCG(o.seed, 2))
	junk := randomBytes(rnd, 8192)
	var failed firstError
	start := time.Now()
	for written := 0; written < o.preloadMiB<<20; written += len(junk) {
		sr := series{fill, int32(written / len(junk) % o.partitions)}
		v := s.value(sr, junk)
		cl.Produce(ctx, &kgo.Record{Partition: sr.partition, Value: v}, func(r *kgo.Record, err error) {
			failed.set(err)
			if err == nil {
				s.ack(sr, v, r.Offset)
			}
		})
	}
	if err := errors.Join(cl.Flush(ctx), failed.get()); err != nil {
		return fmt.Errorf("fill the topic: %w", err)
	}
	fmt.Printf("filled with %d MiB in %v\n", o.preloadMiB, time.Since(start).Round(time.Millisecond))
	return nil
}

// loads are the producers, which live through all kills as an application's would.
type loads struct {
	clients []*kgo.Client
	state   *state
	failed  firstError
	stop    context.CancelFunc
	done    sync.WaitGroup
}

func startLoads(ctx context.Context, addr string, o options, s *state) (*loads, error) {
	ctx, stop := context.WithCancel(ctx)
	l := &loads{state: s, stop: stop}
	for i, kind := range []byte{idempotent, plainAll, plainOne} {
		cl, err := client(addr, producerOptions(kind)...)
		if err != nil {
			stop()
			return nil, err
		}
		l.clients = append(l.clients, cl)
		rnd := rand.New(rand.NewPCG(o.seed, uint64(10+i)))
		l.done.Go(func() { l.produce(ctx, cl, kind, rnd) })
	}
	return l, nil
}

// produce writes bursts to partitions at random, about 5 MiB a second, so that a hundred rounds fit the disk.
func (l *loads) produce(ctx context.Context, cl *kgo.Client, kind byte, rnd *rand.Rand) {
	junk := randomBytes(rnd, 1000)
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		for range 100 {
			sr := series{kind, int32(rnd.IntN(l.state.partitions))}
			v := l.state.value(sr, junk[:rnd.IntN(len(junk))])
			cl.Produce(context.Background(), &kgo.Record{Partition: sr.partition, Value: v}, func(r *kgo.Record, err error) {
				if err != nil {
					l.failed.set(fmt.Errorf("producer %c gave up: %w", kind, err))
					return
				}
				l.state.ack(sr, v, r.Offset)
			})
		}
	}
}

// awaitProgress waits until each producer has been acknowledged something anew.
func (l *loads) awaitProgress(ctx context.Context, limit time.Duration) error {
	counts := func() (c [3]int64) {
		l.state.mu.Lock()
		defer l.state.mu.Unlock()
		for i, kind := range []byte{idempotent, plainAll, plainOne} {
			c[i] = l.state.ackedCount[kind]
		}
		return c
	}
	before := counts()
	deadline := time.Now().Add(limit)
	for {
		now := counts()
		if now[0] > before[0] && now[1] > before[1] && now[2] > before[2] {
			return nil
		}
		if err := l.err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a producer had nothing acknowledged for %v: %v, then %v", limit, before, now)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (l *loads) err() error { return l.failed.get() }

// finish stops sending and waits for every record's acknowledgement.
func (l *loads) finish(ctx context.Context) error {
	l.stop()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, cl := range l.clients {
		if err := cl.Flush(ctx); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	return l.err()
}

func (l *loads) close() {
	l.stop()
	for _, cl := range l.clients {
		cl.Close()
	}
	l.done.Wait()
}

type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func randomBytes(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}
