package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// idlePoll is how long --exit-at-end waits for records before it looks whether
// any are left to come.
const idlePoll = 500 * time.Millisecond

// unread is what --exit-at-end has still to read of a partition.
type unread struct{ next, end int64 }

// endOffsets are the partitions whose end --exit-at-end has still to reach, by
// topic and partition; nil without it.
type endOffsets map[string]map[int32]unread

func (e endOffsets) add(topic string, partition int32, next, end int64) {
	if e[topic] == nil {
		e[topic] = map[int32]unread{}
	}
	e[topic][partition] = unread{next, end}
}

// reached says that everything below next is read or gone.
func (e endOffsets) reached(topic string, partition int32, next int64) {
	at, ok := e[topic][partition]
	if !ok {
		return
	}
	if next < at.end {
		e[topic][partition] = unread{max(at.next, next), at.end}
		return
	}
	delete(e[topic], partition)
	if len(e[topic]) == 0 {
		delete(e, topic)
	}
}

// endsNow are the ends of the partitions that hold something at or after from, as
// a reader with this isolation sees them, of all or of the one of this number, unless
// that is below 0; held is a line on what it does not see yet,
// "" when there is nothing.
func endsNow(ctx context.Context, client *kgo.Client, topics []string, only int32, from, isolation string) (out endOffsets, held string, err error) {
	adm := kadm.NewClient(client)
	begin, err := beginnings(ctx, adm, topics, from)
	if err != nil {
		return nil, "", fmt.Errorf("consume: list start offsets: %w", err)
	}
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, "", fmt.Errorf("consume: list end offsets: %w", err)
	}
	keepPartition(ends, only)
	if isolation == readCommitted {
		stable, err := adm.ListCommittedOffsets(ctx, topics...)
		if err != nil {
			return nil, "", fmt.Errorf("consume: list last stable offsets: %w", err)
		}
		keepPartition(stable, only)
		if first, text := notYetStable(stable, ends); text != "" {
			held = text + whoseTransaction(ctx, client, first)
		}
		ends = stable
	}
	out = endOffsets{}
	ends.Each(func(o kadm.ListedOffset) {
		first, ok := begin.Lookup(o.Topic, o.Partition)
		if o.Err == nil && first.Err == nil && ok && first.Offset < o.Offset {
			out.add(o.Topic, o.Partition, first.Offset, o.Offset)
		}
	})
	return out, held, nil
}

// keepPartition takes out all partitions but this one, none when it is below 0.
func keepPartition(offsets kadm.ListedOffsets, only int32) {
	for _, partitions := range offsets {
		maps.DeleteFunc(partitions, func(p int32, _ kadm.ListedOffset) bool { return only >= 0 && p != only })
	}
}

// notYetStable says of the first partition that holds more than readers with
// read_committed see what holds them up; "" when none does.
func notYetStable(stable, ends kadm.ListedOffsets) (first kadm.Offset, text string) {
	var held, offsets int64
	for _, lso := range stable.Offsets().Sorted() {
		end, ok := ends.Lookup(lso.Topic, lso.Partition)
		if !ok || end.Err != nil || end.Offset <= lso.At {
			continue
		}
		if held++; held == 1 {
			first, offsets = lso, end.Offset-lso.At
		}
	}
	if held == 0 {
		return first, ""
	}
	text = fmt.Sprintf("%s partition %d is read up to offset %d only: an open transaction begins there and holds up %s", first.Topic, first.Partition, first.At, plural(int(offsets), "offset"))
	if held > 1 {
		text += fmt.Sprintf(", and %s more", plural(int(held-1), "partition"))
	}
	return first, text
}

// whoseTransaction says how to find out about the transaction that is open at an offset.
// Its coordinator may know nothing of it, as after an import or when it hangs.
func whoseTransaction(ctx context.Context, client *kgo.Client, at kadm.Offset) string {
	name := fmt.Sprintf("%s:%d", at.Topic, at.Partition)
	open, err := uncoordinated(ctx, client, []string{name})
	if err == nil && slices.ContainsFunc(open, func(v producerView) bool { return v.StartOffset == at.At }) {
		return fmt.Sprintf(".\nNo coordinator knows it: `barnabas txn producers %s` shows its producer, `barnabas txn find-hanging --max-timeout 0 %s` whether it hangs, "+
			"and `barnabas txn abort --partition %s --start-offset %d` aborts it.", name, name, name, at.At)
	}
	return fmt.Sprintf("; `barnabas txn producers %s` shows whose, `barnabas txn list` the ids.", name)
}

// beginnings is where each partition is read from.
func beginnings(ctx context.Context, adm *kadm.Client, topics []string, from string) (kadm.ListedOffsets, error) {
	switch {
	case from == "end":
		return adm.ListEndOffsets(ctx, topics...)
	case from[0] == '@':
		ms, err := parseTimeMs(from[1:])
		if err != nil {
			return nil, err
		}
		return adm.ListOffsetsAfterMilli(ctx, ms, topics...)
	}
	starts, err := adm.ListStartOffsets(ctx, topics...)
	if n, isOffset := strconv.ParseInt(from, 10, 64); isOffset == nil {
		for _, partitions := range starts {
			for p, o := range partitions {
				o.Offset = max(o.Offset, n)
				partitions[p] = o
			}
		}
	}
	return starts, err
}

// poll waits for records. When none come and an end is still to be reached, the
// records before it may have been deleted, compacted away or aborted: then nothing
// is left to wait for, and the client library tells nobody how far it is.
func poll(ctx context.Context, client *kgo.Client, p *printer) (kgo.Fetches, error) {
	if p.ends == nil {
		return client.PollFetches(ctx), nil
	}
	short, cancel := context.WithTimeout(ctx, idlePoll)
	defer cancel()
	fetches := client.PollFetches(short)
	if !errors.Is(short.Err(), context.DeadlineExceeded) || ctx.Err() != nil || fetches.NumRecords() > 0 {
		return fetches, nil
	}
	starts, err := kadm.NewClient(client).ListStartOffsets(ctx, sortedKeys(p.ends)...)
	if err != nil && passes(err) {
		return fetches, nil // the next round asks again
	}
	if err != nil {
		return nil, fmt.Errorf("consume: list start offsets: %w", err)
	}
	starts.Each(func(o kadm.ListedOffset) {
		if o.Err == nil {
			p.ends.reached(o.Topic, o.Partition, o.Offset)
		}
	})
	p.ends.skipInvisible(ctx, client, p.isolation)
	return fetches, nil
}
