package importer

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/storage"
)

// TestDoomed has segments of 100 bytes, the oldest newest at 0 ms and each later one
// 10 ms younger, at the time 100.
func TestDoomed(t *testing.T) {
	segments := func(sizes ...int64) *Contents {
		c := &Contents{}
		for i, size := range sizes {
			c.Segments = append(c.Segments, SegmentAge{MaxTimestampMs: int64(10 * i), SizeBytes: size, EndOffset: int64(i + 1)})
			c.SizeBytes += size
		}
		return c
	}
	undated := segments(100, 100)
	undated.Segments[0].MaxTimestampMs = -1
	started := segments(100, 100, 100)
	started.LogStartOffset = 1
	for name, tc := range map[string]struct {
		c             *Contents
		ms, bytes     int64
		byAge, bySize int64
	}{
		"one segment, the active one":          {segments(100), 50, -1, 100, 0},
		"every segment":                        {segments(100, 100, 100), 50, -1, 300, 0},
		"up to the first that is young enough": {segments(100, 100, 100), 85, -1, 200, 0},
		"as old as it may be":                  {segments(100), 100, -1, 0, 0},
		"for ever":                             {segments(100, 100), -1, -1, 0, 0},
		"by size":                              {segments(100, 100, 100), -1, 150, 0, 100},
		"as large as it may be":                {segments(100, 100, 100), -1, 300, 0, 0},
		"no bytes at all":                      {segments(100, 100, 100), -1, 0, 0, 300},
		"by size, then by age":                 {segments(100, 100, 100), 85, 250, 200, 0},
		"an empty active segment":              {segments(100, 0), 50, -1, 100, 0},
		"without a timestamp":                  {undated, 50, -1, 0, 0},
		"below the log's start":                {started, 85, -1, 100, 0},
	} {
		cfg := storage.LogConfig{Delete: true, RetentionMs: tc.ms, RetentionBytes: tc.bytes}
		if got := tc.c.doomed(cfg, 100); got != (doomed{tc.byAge, tc.bySize}) {
			t.Errorf("%s: %+v", name, got)
		}
		cfg.Delete = false
		if got := tc.c.doomed(cfg, 100); got != (doomed{}) {
			t.Errorf("%s, not deleted: %+v", name, got)
		}
	}
}

// TestLossIsTold has a dry run say what retention would delete, and why.
func TestLossIsTold(t *testing.T) {
	fs := vfs.NewMem()
	k := newKafkaFolder(t, fs, sourceDir)
	k.topic("follows", storage.TopicID{1}, 1)
	k.topic("own", storage.TopicID{2}, 1, "retention.ms", "60000")
	k.topic("large", storage.TopicID{3}, 1, "retention.ms", "-1", "retention.bytes", "10")
	for _, topic := range []string{"follows", "own", "large"} {
		k.segment(topic, 0, 0, batches(0, 1, -1, false))
		k.segment(topic, 0, 3, batches(3, 1, -1, false))
	}
	k.stop(true)
	s, err := Open(fs, []string{sourceDir}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := env(fs)
	e.Clock = clock.NewManual(time.UnixMilli(1_700_000_000_000).Add(17 * time.Minute))
	rules := loaded(t, config.Setting{Key: "log.retention.ms", Value: "600000", Where: "test"})
	view, err := server.Look(e, rules)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(context.Background(), view, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(t.Context(), view, quiet{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"follows": "older than its retention.ms of 600000 here allows, and the broker will delete them soon after its start: start it with `barnabas serve --set log.retention.ms=-1`",
		"own":     "older than its retention.ms of 60000 here allows, and the broker will delete them soon after its start: to keep them, start it with `barnabas serve --set log.retention.check.interval.ms=86400000` and then do `barnabas config set -t own retention.ms=-1`",
		"large":   "more than its retention.bytes of 10 here allows",
	}
	for _, topic := range p.Topics {
		if notes := strings.Join(topic.Notes, "\n"); len(topic.Notes) != 1 || !strings.Contains(notes, want[topic.Name]) {
			t.Errorf("topic %s: %s", topic.Name, notes)
		}
	}
	if !slices.ContainsFunc(s.Notes, func(n string) bool {
		return strings.Contains(n, "log.retention.ms=600000: follows. If Kafka's server.properties")
	}) {
		t.Errorf("nothing is said of topics that follow the broker: %q", s.Notes)
	}
}
