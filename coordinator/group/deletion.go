package group

import (
	"cmp"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/machine"
)

// deletion is how far the offsets of deleted topics are removed.
type deletion struct {
	// topics are those whose offsets are being removed, left the groups that were not
	// looked at yet, waiting the topics that were deleted since this began.
	topics, waiting map[string][]goneTopic
	left            []string
}

// goneTopic is a topic that is gone.
type goneTopic struct {
	DeletedTopic
	// logEnd is where the log of the groups ended then: what was committed later was
	// for another topic.
	logEnd int64
}

// owns tells whether an offset is of this topic; one without a topic id may be of
// any that had the name.
func (t goneTopic) owns(c committed) bool {
	return c.recordOffset < t.logEnd && (c.value.TopicID == [16]byte{} || c.value.TopicID == t.ID)
}

// topicsDeleted takes note of topics that are gone. Their offsets are removed in
// rounds: there may be very many, and the log may take none just now.
func (s *step) topicsDeleted(topics []DeletedTopic) {
	d := &s.soft.deletion
	if len(s.groups) == 0 {
		return
	}
	if len(d.topics)+len(d.waiting) == 0 {
		s.nextDeletion()
	}
	if d.waiting == nil {
		d.waiting = make(map[string][]goneTopic, len(topics))
	}
	for _, t := range topics {
		d.waiting[t.Name] = append(d.waiting[t.Name], goneTopic{t, s.logEnd})
	}
}

func (s *step) nextDeletion() {
	s.out.Timers = append(s.out.Timers, machine.Timer{Key: timerDeletion, At: s.now})
}

// removeDeleted does the next round: it removes the offsets of topics that are gone
// from some groups, pending ones too. Offsets that were committed for another topic
// of the same name stay.
func (s *step) removeDeleted() {
	d := &s.soft.deletion
	if len(d.left) == 0 {
		d.topics, d.waiting, d.left = d.waiting, nil, s.storedIDs()
	}
	s.someGroups(&d.left, func(id string, st *stored) {
		for _, tp := range st.offsetsOf(d.topics) {
			s.record(offsetTombstone(id, tp.topic, tp.partition))
		}
	})
	if len(d.left) == 0 {
		d.topics = nil
	}
	if len(d.topics)+len(d.waiting) > 0 {
		s.nextDeletion()
	}
}

// offsetsOf are the partitions with offsets of deleted topics, in order.
func (g *stored) offsetsOf(deleted map[string][]goneTopic) []topicPartition {
	gone := map[topicPartition]struct{}{}
	note := func(tp topicPartition, c committed) {
		if slices.ContainsFunc(deleted[tp.topic], func(t goneTopic) bool { return t.owns(c) }) {
			gone[tp] = struct{}{}
		}
	}
	noteAll := func(topic string) {
		for p, c := range g.offsets[topic] {
			note(topicPartition{topic, p}, c)
		}
	}
	// The shorter of both lists is gone through: there are groups with many topics,
	// and deletions of many.
	if len(deleted) < len(g.offsets) {
		for topic := range deleted {
			noteAll(topic)
		}
	} else {
		for topic := range g.offsets {
			noteAll(topic)
		}
	}
	for tp, byProducer := range g.pending {
		for _, c := range byProducer {
			note(tp, c)
		}
	}
	return slices.SortedFunc(maps.Keys(gone), func(a, b topicPartition) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
}
