package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/server/api"
)

// addCompaction asks the leaders of compacted topics how far they are. A broker
// that can't tell, such as Apache Kafka, leaves the views as they are.
func addCompaction(ctx context.Context, client *kgo.Client, configs kadm.ResourceConfigs, views []topicView) {
	leaders := map[int32]*kmsg.DescribeLogDirsRequest{}
	for i := range views {
		if !isCompacted(configs, views[i].Topic) {
			continue
		}
		for _, p := range views[i].Partitions {
			req := leaders[p.Leader]
			if req == nil {
				req = kmsg.NewPtrDescribeLogDirsRequest()
				req.UnknownTags.Set(api.CompactionTag, nil)
				leaders[p.Leader] = req
			}
			t := kmsg.NewDescribeLogDirsRequestTopic()
			t.Topic, t.Partitions = views[i].Topic, []int32{p.Partition}
			req.Topics = append(req.Topics, t)
		}
	}
	states := map[string]api.Compaction{}
	for leader, req := range leaders {
		resp, err := client.Broker(int(leader)).Request(ctx, req)
		if err != nil {
			continue // the sizes were asked for as well, and that error is shown
		}
		for _, dir := range resp.(*kmsg.DescribeLogDirsResponse).Dirs {
			for _, t := range dir.Topics {
				for _, p := range t.Partitions {
					if c, ok := api.CompactionIn(p.UnknownTags); ok {
						states[fmt.Sprint(t.Topic, "/", p.Partition)] = c
					}
				}
			}
		}
	}
	for i := range views {
		for j := range views[i].Partitions {
			p := &views[i].Partitions[j]
			if c, ok := states[fmt.Sprint(views[i].Topic, "/", p.Partition)]; ok {
				p.Compaction = &c
				views[i].compacted = true
			}
		}
	}
}

func isCompacted(configs kadm.ResourceConfigs, topic string) bool {
	rc, err := configs.On(topic, nil)
	if err != nil {
		return false
	}
	for _, cfg := range rc.Configs {
		if cfg.Key == "cleanup.policy" {
			return strings.Contains(cfg.MaybeValue(), "compact")
		}
	}
	return false
}

// compactionColumns head the cells of compactionCells.
var compactionColumns = []string{"COMPACTED", "DIRTY", "ACTIVE"}

// compactionCells are how far a partition was compacted, which part of what may be
// compacted now has not been, and what is in the active segment, which may not.
func compactionCells(p partitionView) []any {
	c := p.Compaction
	if c == nil {
		return []any{"-", "-", "-"}
	}
	dirty := fmt.Sprintf("%.0f %%", c.DirtyPercent)
	switch {
	case c.Error != "":
		dirty = "gave up"
	case c.CleanBytes+c.DirtyBytes == 0:
		dirty = "-" // of nothing
	}
	return []any{fmt.Sprintf("up to %d", c.CompactedTo), dirty, sizeText(c.ActiveBytes)}
}

// printCompactionNotes says what is not compacted yet, and which partitions are not
// compacted any more, and why.
func printCompactionNotes(w io.Writer, v topicView) {
	var waits int64
	for _, p := range v.Partitions {
		if c := p.Compaction; c != nil && c.CleanBytes+c.DirtyBytes == 0 {
			waits += c.ActiveBytes
		}
	}
	if waits > 0 {
		fmt.Fprintf(w, "  active segment: %s, not compacted yet; it rolls with the first record after segment.ms, or at segment.bytes\n", sizeText(waits))
	}
	for _, p := range v.Partitions {
		if p.Compaction != nil && p.Compaction.Error != "" {
			fmt.Fprintf(w, "  partition %d is not compacted until the next start of its broker: %s\n", p.Partition, p.Compaction.Error)
		}
	}
}
