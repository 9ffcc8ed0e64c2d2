package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/server/api"
)

// topicView is what `topic describe` shows of one topic.
type topicView struct {
	Topic      string            `json:"topic"`
	ID         string            `json:"id"`
	Internal   bool              `json:"internal"`
	SizeBytes  int64             `json:"size_bytes"`
	Settings   map[string]string `json:"settings"` // those that differ from the broker's
	Partitions []partitionView   `json:"partitions"`
	compacted  bool
}

type partitionView struct {
	Partition   int32   `json:"partition"`
	Leader      int32   `json:"leader"`
	LeaderEpoch int32   `json:"leader_epoch"`
	Replicas    []int32 `json:"replicas"`
	ISR         []int32 `json:"isr"`
	StartOffset int64   `json:"start_offset"`
	EndOffset   int64   `json:"end_offset"`
	// LastStableOffset is where read_committed ends: the start of the first open
	// transaction, or the end.
	LastStableOffset int64 `json:"last_stable_offset"`
	SizeBytes        int64 `json:"size_bytes"`
	// Compaction is nil for a topic that is not compacted.
	Compaction *api.Compaction `json:"compaction,omitempty"`
}

// hasOpenTransaction says whether readers with read_committed end before the end.
func (p partitionView) hasOpenTransaction() bool {
	return p.LastStableOffset >= 0 && p.LastStableOffset < p.EndOffset
}

func topicDescribe(c *cli.Context) error {
	topics, err := names(c, "topic")
	if err != nil {
		return err
	}
	return withClient(c, func(ctx context.Context, client *kgo.Client) error {
		views, failed, err := describeTopics(ctx, client, topics)
		if err != nil {
			return err
		}
		if len(views) > 0 {
			if err := show(c, views, func(w io.Writer) error { return printTopics(w, views) }); err != nil {
				return err
			}
		}
		return failures("describe", failed)
	})
}

// describeTopics are the topics that can be described, and a line on each that can't.
func describeTopics(ctx context.Context, client *kgo.Client, topics []string) (views []topicView, failed []string, err error) {
	adm := kadm.NewClient(client)
	details, err := adm.ListTopicsWithInternal(ctx, topics...)
	if err != nil {
		return nil, nil, fmt.Errorf("describe: %w", err)
	}
	topics = slices.DeleteFunc(slices.Clone(topics), func(name string) bool {
		d, ok := details[name]
		if ok && d.Err != nil {
			failed = append(failed, describeFailure(d.Topic, d.Err, ""))
			delete(details, name)
		}
		return !ok || d.Err != nil
	})
	if len(topics) == 0 {
		return nil, failed, nil
	}
	starts, err := adm.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, nil, fmt.Errorf("describe: list start offsets: %w", err)
	}
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, nil, fmt.Errorf("describe: list end offsets: %w", err)
	}
	stable, err := adm.ListCommittedOffsets(ctx, topics...)
	if err != nil {
		return nil, nil, fmt.Errorf("describe: list last stable offsets: %w", err)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return nil, nil, fmt.Errorf("describe: settings: %w", err)
	}
	dirs, err := adm.DescribeAllLogDirs(ctx, details.TopicsSet())
	if err != nil {
		return nil, nil, fmt.Errorf("describe: log dirs: %w", err)
	}
	for _, name := range topics {
		d := details[name]
		v := topicView{Topic: d.Topic, ID: topicID(d.ID), Internal: d.IsInternal, Settings: ownSettings(configs, d.Topic)}
		for _, p := range d.Partitions.Sorted() {
			pv := partitionView{Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, Replicas: append([]int32{}, p.Replicas...), ISR: append([]int32{}, p.ISR...), StartOffset: -1, EndOffset: -1, LastStableOffset: -1}
			if o, ok := starts.Lookup(d.Topic, p.Partition); ok && o.Err == nil {
				pv.StartOffset = o.Offset
			}
			if o, ok := ends.Lookup(d.Topic, p.Partition); ok && o.Err == nil {
				pv.EndOffset = o.Offset
			}
			if o, ok := stable.Lookup(d.Topic, p.Partition); ok && o.Err == nil {
				pv.LastStableOffset = o.Offset
			}
			pv.SizeBytes = sizeOf(dirs, d.Topic, p.Partition)
			v.SizeBytes += pv.SizeBytes
			v.Partitions = append(v.Partitions, pv)
		}
		views = append(views, v)
	}
	addCompaction(ctx, client, configs, views)
	return views, failed, nil
}

// ownSettings are the settings that were set on the topic itself.
func ownSettings(all kadm.ResourceConfigs, topic string) map[string]string {
	own := map[string]string{}
	rc, err := all.On(topic, nil)
	if err != nil {
		return own
	}
	for _, cfg := range rc.Configs {
		if cfg.Source == kmsg.ConfigSourceDynamicTopicConfig {
			own[cfg.Key] = cfg.MaybeValue()
		}
	}
	return own
}

func printTopics(w io.Writer, views []topicView) error {
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s  id %s, %s, %s\n", v.Topic, v.ID, plural(len(v.Partitions), "partition"), sizeText(v.SizeBytes))
		for _, k := range sortedKeys(v.Settings) {
			fmt.Fprintf(w, "  %s=%s\n", k, v.Settings[k])
		}
		columns := []string{"PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END", "SIZE"}
		open := slices.ContainsFunc(v.Partitions, partitionView.hasOpenTransaction)
		if open {
			columns = append(columns, "LAST STABLE")
		}
		if v.compacted {
			columns = append(columns, compactionColumns...)
		}
		t := newTable(columns...)
		for _, p := range v.Partitions {
			cells := []any{p.Partition, p.Leader, p.LeaderEpoch, ids(p.Replicas), ids(p.ISR), p.StartOffset, p.EndOffset, sizeText(p.SizeBytes)}
			if open {
				cells = append(cells, p.LastStableOffset)
			}
			if v.compacted {
				cells = append(cells, compactionCells(p)...)
			}
			t.add(cells...)
		}
		if err := t.print(w); err != nil {
			return err
		}
		if open {
			fmt.Fprintf(w, "Open transactions hold up readers with read_committed; `barnabas txn producers %s` shows whose.\n", v.Topic)
		}
		printCompactionNotes(w, v)
	}
	return nil
}

// sizeOf adds up a partition's bytes over all replicas.
func sizeOf(all kadm.DescribedAllLogDirs, topic string, partition int32) int64 {
	var sum int64
	for _, dirs := range all {
		for _, dir := range dirs {
			if p, ok := dir.Topics.Lookup(topic, partition); ok {
				sum += p.Size
			}
		}
	}
	return sum
}

// topicID is a topic's id as Kafka's tools print it.
func topicID(id kadm.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }
