package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

// counts is what a machine's groups add up to.
type counts struct {
	// groups is by state, Dead left out.
	groups  [Dead]int
	members int
	// rebalances and commits only grow: the generations that became stable, and
	// the offsets that were committed.
	rebalances, commits int64
}

// tally keeps a machine's counts without counting all of its groups at each
// event.
type tally struct {
	counts
	// by is what each group counts for.
	by map[string]counted
	// changed are the groups to be counted again.
	changed map[string]struct{}
}

// counted is what one group counts for.
type counted struct {
	state   State
	members int
}

func newTally() tally {
	return tally{by: map[string]counted{}, changed: map[string]struct{}{}}
}

// mayChange is the group whose state or members an event may change. Others change by
// their records, which Replay notes.
func mayChange(e Event) (group string, ok bool) {
	switch r := e.Request.(type) {
	case *kmsg.JoinGroupRequest:
		return r.Group, true
	case *kmsg.SyncGroupRequest:
		return r.Group, true
	case *kmsg.LeaveGroupRequest:
		return r.Group, true
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return r.Group, true
	case TimerFired:
		_, group, _ = splitTimerKey(r.Key)
		return group, true
	}
	return "", false
}

// count brings the counts up to date. It is called after each event, when its
// records are replayed.
func (m *Machine) count() counts {
	t := &m.tally
	for id := range t.changed {
		if old, ok := t.by[id]; ok {
			t.groups[old.state]--
			t.members -= old.members
			delete(t.by, id)
		}
		if now, ok := m.countOf(id); ok {
			t.groups[now.state]++
			t.members += now.members
			t.by[id] = now
		}
	}
	clear(t.changed)
	return t.counts
}

// countOf is what a group counts for; ok is false when it does not exist.
func (m *Machine) countOf(id string) (c counted, ok bool) {
	if g := m.soft.groups[id]; g != nil {
		return counted{state: g.state, members: len(g.members)}, true
	}
	st := m.groups[id]
	if st != nil && st.consumer != nil {
		return counted{state: st.consumer.state(), members: len(st.consumer.members)}, true
	}
	if st != nil && st.metadata != nil && len(st.metadata.Members) > 0 {
		return counted{state: Stable, members: len(st.metadata.Members)}, true
	}
	return counted{}, st != nil
}

// metrics are the groups' instruments; all of them do nothing without a
// registry.
type metrics struct {
	groups              [Dead]*telemetry.Gauge
	members             *telemetry.Gauge
	rebalances, commits *telemetry.Counter
}

func newMetrics(r *telemetry.Registry) *metrics {
	m := &metrics{
		members:    r.Gauge("barnabas_group_members", "Members of the consumer groups that this broker coordinates."),
		rebalances: r.Counter("barnabas_group_rebalances_total", "Rebalances that were completed."),
		commits:    r.Counter("barnabas_group_offset_commits_total", "Offsets that were committed, one for each partition."),
	}
	groups := r.Gauge("barnabas_groups", "Consumer groups that this broker coordinates, by state.", "state")
	for state := range m.groups {
		m.groups[state] = groups.With(State(state).String())
		m.groups[state].Set(0)
	}
	return m
}

// observer carries one machine's counts over to the metrics.
type observer struct {
	*Machine
	metrics *metrics
	told    counts
}

// observe tells of what has changed; with gone, the machine's groups are no
// longer this broker's.
func (o *observer) observe(gone bool) {
	now := o.count()
	if gone {
		now.groups, now.members = [Dead]int{}, 0
	}
	for state, n := range now.groups {
		if d := n - o.told.groups[state]; d != 0 {
			o.metrics.groups[state].Add(float64(d))
		}
	}
	if d := now.members - o.told.members; d != 0 {
		o.metrics.members.Add(float64(d))
	}
	if d := now.rebalances - o.told.rebalances; d != 0 {
		o.metrics.rebalances.Add(float64(d))
	}
	if d := now.commits - o.told.commits; d != 0 {
		o.metrics.commits.Add(float64(d))
	}
	o.told = now
}
