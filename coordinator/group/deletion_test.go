package group

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Many topics are deleted at once where there are many groups: each group costs
// the shorter of both lists.
func TestManyTopicsAreDeleted(t *testing.T) {
	value := committed{value: &kmsg.OffsetCommitValue{}}
	gone := map[string][]goneTopic{}
	for i := 1000; i < 4000; i++ {
		gone[fmt.Sprint("t", i)] = []goneTopic{{logEnd: 1}}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	removed := 0
	for i := range 2000 {
		g := &stored{offsets: map[string]map[int32]committed{"kept": {0: value}, fmt.Sprint("t", i): {0: value}}}
		removed += len(g.offsetsOf(gone))
	}
	runtime.ReadMemStats(&after)
	if removed != 1000 {
		t.Errorf("%d offsets are removed", removed)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("%d MiB for 2000 groups and 3000 topics", took>>20)
	}
}

// commitOne commits an offset of one partition, without a topic id, in a new group
// for each number.
func commitOne(h *harness, topic string, group int) {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Group, r.Generation = fmt.Sprint("g", group), -1
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}}}
	h.call("c", r)
}

// round lets the deletion go on until it writes; it returns how many records.
func round(h *harness) int {
	before := len(h.log)
	delete(h.timers, timerDeletion)
	h.event(Event{Request: TimerFired{Key: timerDeletion}})
	return len(h.log) - before
}

// Deletions go through many groups in short rounds. What is deleted meanwhile has
// its turn, and what is committed meanwhile is of a later topic and stays.
func TestDeletionInRounds(t *testing.T) {
	const many = 5 * roundGroups
	h := newHarness(DefaultConfig())
	h.quiet, h.onAnswer = true, func(uint64, any) {}
	for i := range many {
		commitOne(h, "t", i)
		commitOne(h, "u", i)
	}
	written := len(h.log)
	h.event(Event{Request: TopicsDeleted{Topics: []DeletedTopic{{Name: "t"}}}})
	if len(h.log) != written {
		t.Fatal("the event itself writes: it would be lost while the log takes no appends")
	}
	total, rounds := 0, 0
	for ; !h.timers[timerDeletion].IsZero(); rounds++ {
		switch rounds {
		case 1:
			h.event(Event{Request: TopicsDeleted{Topics: []DeletedTopic{{Name: "u"}}}})
		case 2:
			commitOne(h, "t", many-1)
			commitOne(h, "u", 0)
		}
		n := round(h)
		if n > roundRecords {
			t.Fatalf("%d records in one event", n)
		}
		total += n
	}
	if total != 2*many-2 || rounds != 2*many/roundGroups {
		t.Errorf("%d records in %d rounds", total, rounds)
	}
	for i := range many {
		st, want := h.m.groups[fmt.Sprint("g", i)], 0
		if i == 0 || i == many-1 {
			want = 1
		}
		if len(st.offsets) != want {
			t.Fatalf("group %d has offsets of %d topics", i, len(st.offsets))
		}
	}
	if d := h.m.soft.deletion; d.topics != nil || d.waiting != nil || len(d.left) > 0 {
		t.Errorf("left: %v", d)
	}
}
