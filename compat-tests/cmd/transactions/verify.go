package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// verify wants each number exactly once in the input and, as read_committed shows it, in the output. Aborted copies
// must be there too, or the run has shown nothing.
func verify(ctx context.Context, addr string, sent int) error {
	in, err := count(ctx, addr, input, kgo.ReadUncommitted())
	if err != nil {
		return err
	}
	if err := exactlyOnce("the input", in, sent); err != nil {
		return err
	}
	out, err := count(ctx, addr, output, kgo.ReadCommitted())
	if err != nil {
		return err
	}
	if err := exactlyOnce("the output", out, sent); err != nil {
		return err
	}
	all, err := count(ctx, addr, output, kgo.ReadUncommitted())
	if err != nil {
		return err
	}
	copies := 0
	for _, n := range all {
		copies += n
	}
	fmt.Printf("transactions: %d messages read with read_committed, each once; %d more copies were aborted\n", len(out), copies-sent)
	if copies == sent {
		return fmt.Errorf("no transaction with a message was aborted: the run was too gentle")
	}
	return nil
}

func exactlyOnce(what string, counts map[int]int, sent int) error {
	missing, doubled := 0, 0
	example := -1
	for n := range sent {
		switch counts[n] {
		case 1:
			continue
		case 0:
			missing++
		default:
			doubled++
		}
		if example < 0 {
			example = n
		}
	}
	if missing+doubled > 0 || len(counts) != sent {
		return fmt.Errorf("%s: of %d numbers %d are missing and %d are there more than once (%d: %d times)", what, sent, missing, doubled, example, counts[example])
	}
	return nil
}

// count reads a topic from its start to its end, and says how often each number is in it.
func count(ctx context.Context, addr, topic string, isolation kgo.IsolationLevel) (map[int]int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(isolation),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := settledEnds(ctx, kadm.NewClient(client), topic)
	if err != nil {
		return nil, err
	}
	counts := map[int]int{}
	for left := len(ends); left > 0; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, fmt.Errorf("read %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				n, err := strconv.Atoi(string(r.Value))
				if err != nil {
					n = -1
				}
				counts[n]++
			}
			if end, ok := ends[r.Partition]; ok && r.Offset >= end-1 {
				delete(ends, r.Partition)
				left--
			}
		})
	}
	return counts, nil
}

// settledEnds waits until no transaction is open any more, and returns the partitions' ends but the empty ones.
func settledEnds(ctx context.Context, admin *kadm.Client, topic string) (map[int32]int64, error) {
	for {
		stable, err := admin.ListCommittedOffsets(ctx, topic)
		if err != nil {
			return nil, err
		}
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return nil, err
		}
		open, out := 0, map[int32]int64{}
		ends.Each(func(e kadm.ListedOffset) {
			if s, ok := stable.Lookup(topic, e.Partition); !ok || s.Offset < e.Offset {
				open++
			}
			if e.Offset > 0 {
				out[e.Partition] = e.Offset
			}
		})
		if open == 0 {
			return out, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d partitions of %s have transactions that do not end: %w", open, topic, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
