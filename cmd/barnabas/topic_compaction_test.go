package main

import (
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/server/api"
)

func TestCompactionIsShown(t *testing.T) {
	v := topicView{Topic: "orders", ID: "x", compacted: true, Partitions: []partitionView{
		{Partition: 0, Compaction: &api.Compaction{CompactedTo: 1200, CleanBytes: 63, DirtyBytes: 37, ActiveBytes: 5, DirtyPercent: 37.4}},
		{Partition: 1},
		{Partition: 2, Compaction: &api.Compaction{CompactedTo: 7, Error: "a batch is damaged"}},
		{Partition: 3, Compaction: &api.Compaction{ActiveBytes: 142}},
	}}
	var out strings.Builder
	if err := printTopics(&out, []topicView{v}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"orders", "SIZE  COMPACTED   DIRTY    ACTIVE", "up to 1200  37 %     5 B", "-           -        -", "up to 7     gave up  0 B", "up to 0     -        142 B",
		"  active segment: 142 B, not compacted yet; it rolls with the first record after segment.ms",
		"partition 2 is not compacted until the next start of its broker: a batch is damaged"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, without %q", i, lines[i], want)
		}
	}
	v.compacted = false
	out.Reset()
	if err := printTopics(&out, []topicView{v}); err != nil || strings.Contains(out.String(), "DIRTY") {
		t.Errorf("a topic that is not compacted: %s", out.String())
	}
}
