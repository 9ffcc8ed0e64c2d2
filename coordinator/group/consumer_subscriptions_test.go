package group

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// checkSubscriptions holds what is counted against what the members say.
func checkSubscriptions(t *rapid.T, g *consumerGroup) {
	topics, regexes, same := map[string]topicCount{}, map[string]int{}, true
	var first *consumerMember
	for _, m := range g.members {
		for _, name := range m.topics {
			n := topics[name]
			n.byName++
			topics[name] = n
		}
		if m.regex != "" {
			regexes[m.regex]++
		}
		if first == nil {
			first = m
		}
		same = same && m.regex == first.regex && slices.Equal(m.topics, first.topics) && (m.regex == "" || len(m.topics) == 0)
	}
	for regex := range regexes {
		if r := g.regexes[regex]; r != nil {
			for _, name := range r.topics {
				n := topics[name]
				n.byRegex++
				topics[name] = n
			}
		}
	}
	if g.subscribed.topics.over != nil || !maps.Equal(topics, g.subscribed.topics.base) || !maps.Equal(regexes, g.subscribed.regexes) {
		t.Fatalf("counted %v, from the members %v and %v", g.subscribed, topics, regexes)
	}
	if g.homogeneous() != same {
		t.Fatalf("homogeneous: %v, from the members %v", g.homogeneous(), same)
	}
}

// checkHash: what an event has decided, on its clone of the group, is what follows
// from the group afterwards.
func (w *groupWorld) checkHash(g *consumerGroup) {
	soft := w.h.m.soft.consumers[simGroup]
	if soft == nil || !soft.checked || soft.checkedAt != w.h.world.Image.Offset {
		return
	}
	c := &change{step: &step{Machine: w.h.m, world: w.h.world}, id: simGroup, g: g}
	if hash := c.metadataHash(); hash != g.metadataHash {
		w.t.Fatalf("the topics' hash is %x, from the members %x", g.metadataHash, hash)
	}
}

// TestCountsOfAClone changes a group and its clone at random: the clone counts what
// it was told, and the original does not notice.
func TestCountsOfAClone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		g := newConsumerGroup()
		change := func(g *consumerGroup) {
			id := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "member")
			regex := rapid.SampledFrom([]string{"r", "s"}).Draw(t, "regex")
			topics := sortedNames(rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "topics"))
			m := newConsumerMember(id)
			m.topics, m.regex = topics, rapid.SampledFrom([]string{"", regex}).Draw(t, "uses")
			g.replay(rapid.SampledFrom([]*ConsumerRecord{
				m.metadataRecord(), {kind: kindMember, name: id}, m.currentRecord(),
				{kind: kindRegex, name: regex, value: &regexValue{topics: topics}}, {kind: kindRegex, name: regex},
			}).Draw(t, "record"))
		}
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			change(g)
			checkSubscriptions(t, g)
		}
		clone := g.clone()
		for range rapid.IntRange(0, 10).Draw(t, "after") {
			change(clone)
		}
		checkSubscriptions(t, g)
		clone.subscribed.topics = topicCounts{base: maps.Collect(clone.subscribed.topics.all())}
		checkSubscriptions(t, clone)
	})
}
