package group

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A check of many groups is many short events, one at once after the other, between
// which other requests have their turn; the next check begins an interval later.
func TestExpiryInRounds(t *testing.T) {
	const many = 5 * expiryGroups
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
			if n := len(out.Records); n > expiryRecords+1 {
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
		if rounds != many/expiryGroups || len(m.groups) != c.left {
			t.Errorf("%d rounds, and %d groups are left, want %d", rounds, len(m.groups), c.left)
		}
	}
}

// Many topics are deleted at once where there are many groups: each group costs
// the shorter of both lists.
func TestManyTopicsAreDeleted(t *testing.T) {
	s := &step{Machine: New(Config{}, nil), now: time.Unix(0, 0)}
	value := committed{value: &kmsg.OffsetCommitValue{}}
	for i := range 2000 {
		s.groups[fmt.Sprint("g", i)] = &stored{offsets: map[string]map[int32]committed{"kept": {0: value}, fmt.Sprint("t", i): {0: value}}}
	}
	var topics []DeletedTopic
	for i := 1000; i < 4000; i++ {
		topics = append(topics, DeletedTopic{Name: fmt.Sprint("t", i)})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.topicsDeleted(topics)
	runtime.ReadMemStats(&after)
	if len(s.out.Records) != 1000 {
		t.Fatalf("%d offsets are removed", len(s.out.Records))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Fatalf("%d MiB for 2000 groups and 3000 topics", took>>20)
	}
}
