package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func makeTopics(ctx context.Context, addr string, partitions int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, topic := range []string{input, output} {
		resp, err := kadm.NewClient(client).CreateTopic(ctx, int32(partitions), 1, nil, topic)
		if err != nil || resp.Err != nil {
			return fmt.Errorf("create %s: %w %w", topic, err, resp.Err)
		}
	}
	return nil
}

// source numbers messages and writes them, idempotently and for as long as it takes.
type source struct {
	client *kgo.Client
	stop   chan struct{}
	done   sync.WaitGroup
	sent   atomic.Int64
	failed atomic.Pointer[error]
}

func startSource(ctx context.Context, addr string, rate int) (*source, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(input),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(50000))
	if err != nil {
		return nil, err
	}
	s := &source{client: client, stop: make(chan struct{})}
	s.done.Go(func() { s.write(ctx, rate) })
	return s, nil
}

// write sends a hundredth of a second's messages each hundredth of a second.
func (s *source) write(ctx context.Context, rate int) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		for range max(1, rate/100) {
			s.client.Produce(ctx, &kgo.Record{Value: []byte(strconv.Itoa(n))}, func(_ *kgo.Record, err error) {
				if err != nil {
					s.failed.Store(&err)
				}
			})
			n++
		}
		s.sent.Store(int64(n))
	}
}

// finish stops and returns how many messages are in the topic, numbered from 0.
func (s *source) finish(ctx context.Context) (int, error) {
	close(s.stop)
	s.done.Wait()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.client.Flush(ctx); err != nil {
		return 0, fmt.Errorf("write the input: %w", err)
	}
	if err := s.failed.Load(); err != nil {
		return 0, fmt.Errorf("write the input: %w", *err)
	}
	return int(s.sent.Load()), nil
}

func (s *source) close() { s.client.Close() }
