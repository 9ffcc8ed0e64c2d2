package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// brokers are the one under test and its judges.
type brokers struct {
	ours, newest, older *side
	started             []*harness.Broker
}

// properties make the brokers alike where their defaults differ or where a default would make a run slow.
var properties = map[string]string{
	"node.id":                          "1",
	"group.initial.rebalance.delay.ms": "0",
	"auto.create.topics.enable":        "true",
	// Kafka's default makes members of a new group wait for their partitions or not, as the moment has it.
	"group.consumer.assignment.interval.ms": "0",
	"group.max.session.timeout.ms":          "1800000",
}

// startAll starts whatever runs not already. They start side by side, since a JVM takes its time.
func startAll(o options, dir string) (*brokers, error) {
	b := &brokers{}
	var mu sync.Mutex
	start := func(addr string, opts harness.Options) (*side, error) {
		if addr == "" {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			broker, err := harness.Start(ctx, opts)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			b.started = append(b.started, broker)
			mu.Unlock()
			addr = broker.Addr()
		}
		return newSide(addr, opts)
	}
	wanted := []struct {
		at   **side
		addr string
		opts harness.Options
	}{
		{&b.ours, o.ours, harness.Options{Kind: harness.Barnabas, Dir: filepath.Join(dir, "ours")}},
		{&b.newest, o.newest, harness.Options{Kind: harness.Kafka, Dir: filepath.Join(dir, "newest")}},
		{&b.older, o.older, harness.Options{Kind: harness.KafkaOlder, Dir: filepath.Join(dir, "older")}},
	}
	errs := make([]error, len(wanted))
	var wait sync.WaitGroup
	for i, w := range wanted {
		wait.Go(func() {
			w.opts.Properties = properties
			*w.at, errs[i] = start(w.addr, w.opts)
		})
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			b.stop()
			return nil, fmt.Errorf("start %s: %w", wanted[i].opts.Kind, err)
		}
	}
	return b, nil
}

func (b *brokers) stop() {
	for _, broker := range b.started {
		broker.Kill()
	}
}
