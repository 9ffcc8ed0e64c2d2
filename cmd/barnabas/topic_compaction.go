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

// compactionCells are a partition's cells under COMPACTED and DIRTY: how far it was
// compacted, and which part of what may be compacted now has not been.
func compactionCells(p partitionView) (compacted, dirty string) {
	c := p.Compaction
	switch {
	case c == nil:
		return "-", "-"
	case c.Error != "":
		return fmt.Sprintf("up to %d", c.CompactedTo), "gave up"
	}
	return fmt.Sprintf("up to %d", c.CompactedTo), fmt.Sprintf("%.0f %%", c.DirtyPercent)
}

// printCompactionErrors says which partitions are not compacted any more, and why.
func printCompactionErrors(w io.Writer, v topicView) {
	for _, p := range v.Partitions {
		if p.Compaction != nil && p.Compaction.Error != "" {
			fmt.Fprintf(w, "  partition %d is not compacted until the next start of its broker: %s\n", p.Partition, p.Compaction.Error)
		}
	}
}
