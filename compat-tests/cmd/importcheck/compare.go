package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// compare starts both brokers and holds everything that a client can see of one against the other.
func compare(ctx context.Context, theirs harness.Options, target string, f *filler) (said string, err error) {
	// Nothing is compacted any more while both are read.
	theirs.Properties["log.cleaner.enable"] = "false"
	k, err := harness.Start(ctx, theirs)
	if err != nil {
		return "", err
	}
	defer k.Kill()
	b, err := harness.Start(ctx, harness.Options{Kind: harness.Barnabas, Dir: filepath.Dir(target), Properties: map[string]string{"log.cleaner.enable": "false"}})
	if err != nil {
		return "", err
	}
	defer b.Kill()
	got, err := look(ctx, b.Addr())
	if err != nil {
		return "", fmt.Errorf("read Barnabas: %w", err)
	}
	want, err := look(ctx, k.Addr())
	if err != nil {
		return "", fmt.Errorf("read Kafka: %w", err)
	}
	// Kafka's coordinator knows of the transaction that was open and may end it; here its offsets were never there.
	if err := equal(got, want); err != nil {
		return "", err
	}
	if err := goesOn(ctx, b.Addr(), f); err != nil {
		return "", fmt.Errorf("Barnabas after the import: %w", err)
	}
	if err := b.Stop(ctx); err != nil {
		return "", err
	}
	if trace := b.Panics(); trace != "" {
		return "", fmt.Errorf("a panic: %s", trace)
	}
	return fmt.Sprintf("%d topics, %d partitions, %d records, %d groups with %d offsets are equal", got.topics, got.partitions, got.records, got.groups, got.offsets), nil
}

// view is what a broker shows, line by line.
type view struct {
	lines                                        map[string]string
	topics, partitions, records, groups, offsets int
}

func equal(got, want *view) error {
	var diffs []string
	keys := slices.Sorted(maps.Keys(want.lines))
	for _, key := range slices.Sorted(maps.Keys(got.lines)) {
		if _, ok := want.lines[key]; !ok {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if g, w := got.lines[key], want.lines[key]; g != w {
			diffs = append(diffs, fmt.Sprintf("%s: Barnabas has %q, Kafka %q", key, g, w))
		}
	}
	if len(diffs) > 20 {
		diffs = append(diffs[:20], fmt.Sprintf("and %d more", len(diffs)-20))
	}
	if len(diffs) > 0 {
		return errors.New("differences:\n" + strings.Join(diffs, "\n"))
	}
	if got.records == 0 || got.offsets == 0 {
		return errors.New("there was nothing to compare")
	}
	return nil
}

func look(ctx context.Context, addr string) (*view, error) {
	cl, err := client(addr)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	v := &view{lines: map[string]string{}}
	list, err := adm.ListTopics(ctx) // without internal ones
	if err != nil {
		return nil, err
	}
	names := list.Names()
	for _, name := range names {
		t := list[name]
		v.topics++
		v.partitions += len(t.Partitions)
		v.lines["topic "+name] = fmt.Sprintf("id %s, %d partitions", t.ID, len(t.Partitions))
	}
	if err := v.configs(ctx, adm, names); err != nil {
		return nil, err
	}
	if err := v.ends(ctx, adm, names); err != nil {
		return nil, err
	}
	for _, committed := range []bool{false, true} {
		if err := v.read(ctx, addr, list, committed); err != nil {
			return nil, err
		}
	}
	return v, v.groupOffsets(ctx, adm)
}

func (v *view) configs(ctx context.Context, adm *kadm.Client, names []string) error {
	all, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return err
	}
	for _, rc := range all {
		for _, c := range rc.Configs {
			if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
				v.lines["config "+rc.Name+" "+c.Key] = c.MaybeValue()
			}
		}
	}
	return nil
}

func (v *view) ends(ctx context.Context, adm *kadm.Client, names []string) error {
	for what, list := range map[string]func(context.Context, ...string) (kadm.ListedOffsets, error){
		"start": adm.ListStartOffsets, "end": adm.ListEndOffsets, "stable end": adm.ListCommittedOffsets,
		"max timestamp": adm.ListMaxTimestampOffsets,
		"an hour ago": func(ctx context.Context, names ...string) (kadm.ListedOffsets, error) {
			return adm.ListOffsetsAfterMilli(ctx, hourAgo, names...)
		},
	} {
		offsets, err := list(ctx, names...)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		offsets.Each(func(o kadm.ListedOffset) {
			v.lines[fmt.Sprintf("%s of %s-%d", what, o.Topic, o.Partition)] = fmt.Sprintf("%d at %d (%v)", o.Offset, o.Timestamp, o.Err)
		})
	}
	return nil
}

// hourAgo is one time for both brokers.
var hourAgo = time.Now().Add(-10 * time.Minute).UnixMilli()

// read sums up every record of every partition.
func (v *view) read(ctx context.Context, addr string, list kadm.TopicDetails, committed bool) error {
	level := kgo.ReadUncommitted()
	if committed {
		level = kgo.ReadCommitted()
	}
	cl, err := client(addr)
	if err != nil {
		return err
	}
	adm := kadm.NewClient(cl)
	starts, err := adm.ListStartOffsets(ctx, list.Names()...)
	if err != nil {
		return err
	}
	ends := adm.ListEndOffsets
	if committed {
		ends = adm.ListCommittedOffsets
	}
	until, err := ends(ctx, list.Names()...)
	cl.Close()
	if err != nil {
		return err
	}
	for topic, partitions := range until {
		for p, end := range partitions {
			start, _ := starts.Lookup(topic, p)
			n, sum, err := readPartition(ctx, addr, topic, p, start.Offset, end.Offset, level)
			if err != nil {
				return fmt.Errorf("%s-%d: %w", topic, p, err)
			}
			v.records += n
			v.lines[fmt.Sprintf("records of %s-%d, committed %v", topic, p, committed)] = fmt.Sprintf("%d, sum %s", n, sum)
		}
	}
	return nil
}

func readPartition(ctx context.Context, addr, topic string, p int32, start, end int64, level kgo.IsolationLevel) (n int, sum string, err error) {
	if start >= end {
		return 0, "", nil
	}
	cl, err := client(addr, kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {p: kgo.NewOffset().At(start)}}))
	if err != nil {
		return 0, "", err
	}
	defer cl.Close()
	h := sha256.New()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for next := start; next < end; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return 0, "", fmt.Errorf("at offset %d of %d: %w", next, end, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset >= end {
				return
			}
			n++
			next = r.Offset + 1
			at := fmt.Sprint(r.Timestamp.UnixMilli(), r.Attrs.TimestampType())
			if r.Timestamp.UnixMilli() < 0 {
				at = "none" // as records of format v0 have none, and those that were made of them
			}
			fmt.Fprintf(h, "%d %s %q %v %q %v %d %d %v\n", r.Offset, at, r.Key, r.Key == nil, r.Value, r.Value == nil,
				r.ProducerID, r.ProducerEpoch, r.Headers)
		})
	}
	return n, fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// count is how many records a topic has.
func count(ctx context.Context, addr, topic string) (n int, err error) {
	cl, err := client(addr)
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	for p, end := range ends[topic] {
		start, _ := starts.Lookup(topic, p)
		m, _, err := readPartition(ctx, addr, topic, p, start.Offset, end.Offset, kgo.ReadUncommitted())
		if err != nil {
			return 0, err
		}
		n += m
	}
	return n, nil
}

// groupOffsets are what groups have committed, and how far behind they are.
func (v *view) groupOffsets(ctx context.Context, adm *kadm.Client) error {
	list, err := adm.ListGroups(ctx)
	if err != nil {
		return err
	}
	ends, err := adm.ListEndOffsets(ctx)
	if err != nil {
		return err
	}
	for _, group := range list.Groups() {
		offsets, err := adm.FetchOffsets(ctx, group)
		if err != nil {
			return fmt.Errorf("group %s: %w", group, err)
		}
		v.groups++
		offsets.Each(func(o kadm.OffsetResponse) {
			v.offsets++
			v.lines[fmt.Sprintf("group %s at %s-%d", group, o.Topic, o.Partition)] = fmt.Sprintf("%d, epoch %d, %q, lag %d (%v)",
				o.At, o.LeaderEpoch, o.Metadata, lag(ends, o), o.Err)
		})
	}
	return nil
}

func lag(ends kadm.ListedOffsets, o kadm.OffsetResponse) int64 {
	end, _ := ends.Lookup(o.Topic, o.Partition)
	return end.Offset - o.At
}

// goesOn writes on in what was taken over, plainly and in transactions, and ends the transaction that was open.
func goesOn(ctx context.Context, addr string, f *filler) error {
	out, err := barnabas("txn", "abort", "-b", addr, "--partition", "open-transaction:0", "--start-offset", fmt.Sprint(f.openOffset))
	if err != nil {
		return fmt.Errorf("txn abort: %w: %s", err, out)
	}
	cl, err := client(addr)
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	ends, err := adm.ListEndOffsets(ctx, "open-transaction")
	if err != nil {
		return err
	}
	stable, err := adm.ListCommittedOffsets(ctx, "open-transaction")
	if err != nil {
		return err
	}
	e, _ := ends.Lookup("open-transaction", 0)
	if s, _ := stable.Lookup("open-transaction", 0); s.Offset != e.Offset {
		return fmt.Errorf("after the abort the stable end is %d, the end %d", s.Offset, e.Offset)
	}
	mine := &filler{addr: addr, rng: f.rng}
	for _, topic := range []string{"codec-none", "codec-zstd", "compacted", "trimmed", "grown"} {
		list := mine.records(topic, 0, 50, 100)
		for i, r := range list {
			r.Key = []byte(fmt.Sprint("new ", i))
		}
		if err := mine.write(ctx, nil, list...); err != nil {
			return fmt.Errorf("write to %s: %w", topic, err)
		}
	}
	return mine.transactions(ctx)
}
