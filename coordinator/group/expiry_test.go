package group

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A check of many groups is many short events, one at once after the other, between
// which other requests have their turn; the next check begins an interval later.
func TestExpiryInRounds(t *testing.T) {
	const many = 5 * roundGroups
	cfg := DefaultConfig()
	m := New(cfg, nil)
	now := time.UnixMilli(1_000_000)
	for i := range many {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group, r.Generation = fmt.Sprint("g", i), -1
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}}}
		for _, rec := range m.Handle(now, Event{Call: 1, Request: r}).Records {
			m.Replay(int64(i), rec)
		}
	}
	for _, c := range []struct {
		at   time.Time
		left int
	}{{now, many}, {now.Add(time.Duration(cfg.OffsetsRetentionMs) * time.Millisecond), 0}} {
		rounds := 0
		for at := c.at; at.Equal(c.at); rounds++ {
			out := m.Handle(c.at, Event{Request: TimerFired{Key: timerExpiry}})
			if n := len(out.Records); n > roundRecords+1 {
				t.Fatalf("%d records in one event", n)
			}
			for _, rec := range out.Records {
				m.Replay(many, rec)
			}
			at = c.at.Add(time.Duration(cfg.RetentionCheckIntervalMs) * time.Millisecond)
			for _, timer := range out.Timers {
				at = timer.At
			}
		}
		if rounds != many/roundGroups || len(m.groups) != c.left {
			t.Errorf("%d rounds, and %d groups are left, want %d", rounds, len(m.groups), c.left)
		}
	}
}

// Times that end beyond all timestamps last, and do not begin in the past.
func TestExpiryIsFarAway(t *testing.T) {
	cfg := DefaultConfig()
	cfg.RetentionCheckIntervalMs = math.MaxInt64
	m := New(cfg, nil)
	now := time.UnixMilli(1_000_000)
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation, r.RetentionTimeMillis = 3, "g", -1, math.MaxInt64
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}}}
	out := m.Handle(now, Event{Call: 1, Request: r})
	for i, rec := range out.Records {
		m.Replay(int64(i), rec)
	}
	if len(out.Timers) != 1 || out.Timers[0].At.Before(now.AddDate(200, 0, 0)) {
		t.Errorf("the check is due at %v", out.Timers)
	}
	now = now.AddDate(100, 0, 0)
	if out := m.Handle(now, Event{Request: TimerFired{Key: timerExpiry}}); len(out.Records) > 0 {
		t.Errorf("expired: %v", out.Records)
	}
}
