package group

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

// brokenLog is a memLog whose appends fail on demand.
type brokenLog struct {
	memLog
	broken bool
}

func (l *brokenLog) Append(epoch int32, b []byte, committed func(error)) (int64, error) {
	if l.broken {
		return 0, errors.New("the disk said no")
	}
	return l.memLog.Append(epoch, b, committed)
}

// wantMetrics holds lines of the metrics page against those that are there.
func wantMetrics(t *testing.T, r *telemetry.Registry, when string, want ...string) {
	t.Helper()
	rec := httptest.NewRecorder()
	r.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	page := "\n" + rec.Body.String()
	for _, line := range want {
		if !strings.Contains(page, "\n"+line+"\n") {
			name, _, _ := strings.Cut(line, " ")
			_, have, _ := strings.Cut(page, "\n"+name+" ")
			have, _, _ = strings.Cut(have, "\n")
			t.Errorf("%s: want %s, have %q", when, line, have)
		}
	}
}

func TestMetrics(t *testing.T) {
	r, clk, log := telemetry.NewRegistry(), clock.NewManual(time.UnixMilli(0)), &brokenLog{}
	c := NewCoordinator(Options{
		Config: DefaultConfig(), Clock: clk, Log: slog.New(slog.DiscardHandler), Metrics: r,
		NewID:      func() string { return "id" },
		Partitions: func() int32 { return 1 },
		Open:       func(int32) (runtime.Log, error) { return log, nil },
		Go:         func(work func()) { work() },
	})
	wantMetrics(t, r, "at first", `barnabas_groups{state="Stable"} 0`, `barnabas_group_members 0`)
	c.OnElected(0, 1)
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group, commit.Generation = "a", -1
	commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{}, {Partition: 1}}}}
	c.CommitOffsets(Client{}, commit, func(*kmsg.OffsetCommitResponse) {})
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis = "b", "consumer", 10_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	var member string
	c.JoinGroup(Client{ID: "c"}, join, func(r *kmsg.JoinGroupResponse) { member = r.MemberID })
	wantMetrics(t, r, "joined", `barnabas_groups{state="Empty"} 1`, `barnabas_groups{state="CompletingRebalance"} 1`,
		`barnabas_group_members 1`, `barnabas_group_rebalances_total 0`, `barnabas_group_offset_commits_total 2`,
		`barnabas_coordinator_partitions{topic="__consumer_offsets"} 1`, `barnabas_coordinator_load_seconds_count{topic="__consumer_offsets"} 1`)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID = "b", 1, member
	c.SyncGroup(Client{ID: "c"}, sync, func(*kmsg.SyncGroupResponse) {})
	wantMetrics(t, r, "synced", `barnabas_groups{state="Stable"} 1`, `barnabas_groups{state="CompletingRebalance"} 0`, `barnabas_group_rebalances_total 1`)

	log.broken = true
	c.CommitOffsets(Client{}, commit, func(*kmsg.OffsetCommitResponse) {})
	wantMetrics(t, r, "after a failed append", `barnabas_groups{state="Stable"} 0`, `barnabas_group_members 0`,
		`barnabas_coordinator_append_failures_total{topic="__consumer_offsets"} 1`, `barnabas_coordinator_partitions{topic="__consumer_offsets"} 0`)
	log.broken = false
	clk.Advance(time.Second)
	wantMetrics(t, r, "loaded again", `barnabas_groups{state="Stable"} 1`, `barnabas_groups{state="Empty"} 1`,
		`barnabas_group_members 1`, `barnabas_coordinator_load_seconds_count{topic="__consumer_offsets"} 2`)
	c.OnResigned(0, 1)
	wantMetrics(t, r, "resigned", `barnabas_groups{state="Stable"} 0`, `barnabas_groups{state="Empty"} 0`, `barnabas_group_members 0`)
	c.Close()
}
