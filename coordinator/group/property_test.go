package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// TestReloadEqualsRunning puts random events to a machine and holds it against
// one that has only seen its log, and its waiting calls against its members.
func TestReloadEqualsRunning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.InitialRebalanceDelayMs = rapid.SampledFrom([]int32{0, 3000}).Draw(t, "delay")
		cfg.MaxSize = rapid.SampledFrom([]int{2, 100}).Draw(t, "size")
		h := newHarness(cfg)
		h.quiet = true
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			randomEvent(t, h)
			checkWaiting(t, h)
			checkCounts(t, h.m)
			if got, want := stateOf(reloaded(h)), stateOf(h.m); got != want {
				t.Fatalf("reloaded:\n%s\nrunning:\n%s", got, want)
			}
			if got, want := offsetsOf(h.m), offsetsInLog(h); got != want {
				t.Fatalf("the machine's offsets:\n%s\nthe log's:\n%s", got, want)
			}
		}
		// Whatever happened: with time every call is answered.
		h.tick(2 * time.Hour)
		if len(h.calls) != 0 {
			t.Fatalf("calls %v were never answered", sortedCalls(h.calls))
		}
	})
}

func randomEvent(t *rapid.T, h *harness) {
	group := rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group")
	memberID, generation := "", int32(-1)
	g := h.m.view(group)
	if g != nil {
		generation = g.generation
		if len(g.members) > 0 && rapid.IntRange(0, 4).Draw(t, "known") > 0 {
			memberID = rapid.SampledFrom(g.members).Draw(t, "member").id
		} else if len(g.pendingJoin) > 0 {
			memberID = rapid.SampledFrom(slices.Sorted(maps.Keys(g.pendingJoin))).Draw(t, "pending")
		}
	}
	instance := instanceOf(t, g, memberID)
	switch rapid.IntRange(0, 11).Draw(t, "kind") {
	case 0, 1, 2:
		r := kmsg.NewPtrJoinGroupRequest()
		r.Version = rapid.SampledFrom([]int16{0, 3, 4, 8, 9}).Draw(t, "version")
		r.Group, r.MemberID, r.InstanceID, r.ProtocolType = group, memberID, instance, "consumer"
		r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 10_000, 20_000
		for _, p := range rapid.SampledFrom([][]string{{"range"}, {"range", "sticky"}, {"sticky", "range"}}).Draw(t, "protocols") {
			metadata := subscription(rapid.SampledFrom([]string{"t", "u", "!"}).Draw(t, "topics"))
			r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: metadata})
		}
		h.call("c", r)
	case 3, 4:
		r := kmsg.NewPtrSyncGroupRequest()
		r.Group, r.MemberID, r.InstanceID, r.Generation = group, memberID, instance, generation
		r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: memberID, MemberAssignment: []byte("x")}}
		h.call("c", r)
	case 5:
		r := kmsg.NewPtrLeaveGroupRequest()
		r.Version, r.Group = 3, group
		r.Members = []kmsg.LeaveGroupRequestMember{{MemberID: memberID, InstanceID: instance}}
		h.call("c", r)
	case 6:
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Version = rapid.SampledFrom([]int16{1, 2, 9}).Draw(t, "version")
		r.Group, r.MemberID, r.Generation = group, memberID, generation
		r.RetentionTimeMillis = rapid.SampledFrom([]int64{-1, 1000}).Draw(t, "retention")
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = rapid.Int32Range(0, 2).Draw(t, "partition"), rapid.Int64Range(0, 100).Draw(t, "offset")
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: rapid.SampledFrom([]string{"t", "u"}).Draw(t, "topic"), Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		h.call("c", r)
	case 7:
		h.tick(time.Duration(rapid.Int64Range(0, 30_000).Draw(t, "ms")) * time.Millisecond)
	case 8:
		otherEvent(t, h, group)
	case 9:
		r := kmsg.NewPtrTxnOffsetCommitRequest()
		r.ProducerID, r.Group, r.MemberID, r.Generation = rapid.Int64Range(1, 2).Draw(t, "producer"), group, memberID, generation
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = rapid.Int32Range(0, 2).Draw(t, "partition"), rapid.Int64Range(0, 100).Draw(t, "offset")
		topic := rapid.SampledFrom([]string{"t", "u"}).Draw(t, "topic")
		r.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
		h.call("c", CommitPending{Request: r})
	case 10:
		h.mark(rapid.Int64Range(1, 2).Draw(t, "producer"), rapid.Bool().Draw(t, "commit"))
	default:
		r := kmsg.NewPtrHeartbeatRequest()
		r.Group, r.MemberID, r.InstanceID, r.Generation = group, memberID, instance, generation
		h.call("c", r)
	}
}

// instanceOf is the member's own instance id, or one of its own for some new
// members.
func instanceOf(t *rapid.T, g *classic, memberID string) *string {
	if memberID != "" {
		if m := g.member(memberID); m != nil {
			return m.instanceID
		}
		return nil
	}
	if !rapid.Bool().Draw(t, "static") {
		return nil
	}
	id := rapid.SampledFrom([]string{"i", "j"}).Draw(t, "instance")
	return &id
}

func otherEvent(t *rapid.T, h *harness, group string) {
	switch rapid.IntRange(0, 4).Draw(t, "other") {
	case 0:
		h.event(Event{Request: TopicsDeleted{Topics: []DeletedTopic{{Name: "t"}}}})
	case 1:
		h.call("c", DeleteGroup{Group: group})
	case 2:
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group = group
		r.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "u", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 1}}}}
		h.call("c", r)
	case 3:
		h.call("c", DescribeGroup{Group: group, Version: 6})
		h.call("c", ListGroups{})
	default:
		h.tick(10 * 24 * time.Hour)
	}
}

// reloaded is a machine that knows the log only.
func reloaded(h *harness) *Machine {
	m := New(h.cfg, func() string { return "" })
	for i, l := range h.log {
		l.replay(m, int64(i))
	}
	return m
}

// stateOf is all that a machine knows of the log.
func stateOf(m *Machine) string {
	var b strings.Builder
	for _, id := range m.storedIDs() {
		st := m.groups[id]
		if st.metadata != nil {
			fmt.Fprintf(&b, "%s %x\n", id, st.metadata.AppendTo(nil))
		}
		if st.consumer != nil {
			fmt.Fprintf(&b, "%s is a consumer group\n%s", id, consumerState(st.consumer))
		}
		for _, topic := range slices.Sorted(maps.Keys(st.offsets)) {
			for _, p := range sortedPartitions(st.offsets[topic]) {
				c := st.offsets[topic][p]
				fmt.Fprintf(&b, "%s %s-%d %x @%d\n", id, topic, p, c.value.AppendTo(nil), c.recordOffset)
			}
		}
	}
	fmt.Fprintln(&b, m.open)
	return b.String()
}

// offsetsOf is what a machine knows of offsets, that count and that are pending.
func offsetsOf(m *Machine) string {
	var lines []string
	for id, st := range m.groups {
		for topic, ps := range st.offsets {
			for p, c := range ps {
				lines = append(lines, fmt.Sprintf("%s %s-%d %d", id, topic, p, c.value.Offset))
			}
		}
		for tp, byProducer := range st.pending {
			for producerID, c := range byProducer {
				lines = append(lines, fmt.Sprintf("%s %s-%d %d pending of %d", id, tp.topic, tp.partition, c.value.Offset, producerID))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// offsetsInLog is the same by definition: of the records after a partition's last
// tombstone the newest counts that is plain or whose transaction was committed
// later, and pending is the newest of each transaction without a later marker.
func offsetsInLog(h *harness) string {
	records := map[string][]int{}
	value := map[int]int64{}
	for i, l := range h.log {
		if l.marker != nil {
			continue
		}
		r, _, _ := Codec{}.Decode(l.key, l.value)
		key := fmt.Sprintf("%s %s-%d", r.Group, r.Topic, r.Partition)
		switch {
		case !r.IsOffset:
		case r.Offset == nil:
			records[key] = nil
		default:
			records[key] = append(records[key], i)
			value[i] = r.Offset.Offset
		}
	}
	var lines []string
	for key, at := range records {
		counts := -1
		pending := map[int64]int{}
		for _, i := range at {
			switch outcome(h, i) {
			case committedLater:
				counts = i
			case undecided:
				pending[h.log[i].producer.ID] = i
			}
		}
		if counts >= 0 {
			lines = append(lines, fmt.Sprintf("%s %d", key, value[counts]))
		}
		for producerID, i := range pending {
			lines = append(lines, fmt.Sprintf("%s %d pending of %d", key, value[i], producerID))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

const (
	undecided = iota
	committedLater
	abortedLater
)

// outcome is what became of record i.
func outcome(h *harness, i int) int {
	if h.log[i].producer == nil {
		return committedLater
	}
	for _, l := range h.log[i:] {
		if l.marker != nil && l.marker.ProducerID == h.log[i].producer.ID {
			if l.marker.Commit {
				return committedLater
			}
			return abortedLater
		}
	}
	return undecided
}

// checkCounts holds what is counted event by event against a count of all.
func checkCounts(t *rapid.T, m *Machine) {
	got, want := m.count(), counts{}
	for _, id := range m.storedIDs() {
		if g := m.consumer(id); g != nil {
			want.groups[g.state()]++
			want.members += len(g.members)
			continue
		}
		g := m.view(id)
		want.groups[g.state]++
		want.members += len(g.members)
	}
	if got.groups != want.groups || got.members != want.members {
		t.Fatalf("counted %v with %d members, want %v with %d", got.groups, got.members, want.groups, want.members)
	}
}

// checkWaiting holds the calls without an answer against the members that wait,
// and every group in memory against the log.
func checkWaiting(t *rapid.T, h *harness) {
	waiting := map[uint64]bool{}
	for id, g := range h.m.soft.groups {
		if h.m.groups[id] == nil {
			t.Fatalf("group %s is in memory and not in the log", id)
		}
		if g.state == Empty && len(g.members) > 0 {
			t.Fatalf("empty group %s has %d members", id, len(g.members))
		}
		for _, m := range g.members {
			for _, call := range []uint64{m.join, m.sync} {
				if call != 0 && waiting[call] {
					t.Fatalf("call %d waits twice", call)
				}
				if call != 0 {
					waiting[call] = true
				}
			}
			if m.join != 0 && g.state != PreparingRebalance || m.sync != 0 && g.state != CompletingRebalance {
				t.Fatalf("member %s waits in state %v", m.id, g.state)
			}
		}
	}
	if !maps.Equal(waiting, h.calls) {
		t.Fatalf("members wait for %v, calls wait %v", sortedCalls(waiting), sortedCalls(h.calls))
	}
}
