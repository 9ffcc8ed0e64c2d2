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

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// world is a group with clients that keep to the protocol, over a machine whose
// answers may be lost and that may start over at any time.
type groupWorld struct {
	t       *rapid.T
	h       *harness
	clients []*simClient
	joined  int
	// answers are those of the calls, by number.
	answers map[uint64]any
	// epoch is the highest epoch or generation of the group that was seen.
	epoch int32
}

const simGroup = "g"

func newGroupWorld(t *rapid.T) *groupWorld {
	cfg := DefaultConfig()
	cfg.Consumer.SessionTimeoutMs.MinMs = 1
	w := &groupWorld{t: t, h: newHarness(cfg), answers: map[uint64]any{}}
	w.h.quiet = true
	w.h.onAnswer = func(call uint64, resp any) { w.answers[call] = resp }
	w.h.world.AssignmentIntervalMs = rapid.SampledFrom([]int32{0, 1000}).Draw(t, "interval")
	w.h.topic("a", 3)
	w.h.topic("b", 2)
	w.h.tick(time.Second)
	return w
}

// call puts a request and returns its answer, nil while it waits.
func (w *groupWorld) call(c *simClient, req any) any {
	n := w.h.call(c.name, req)
	w.check()
	return w.answers[n]
}

func (w *groupWorld) tick(d time.Duration) {
	w.h.tick(d)
	w.check()
}

// TestConsumerGroups puts random consumers, topics, losses and crashes to a group.
// At every moment no partition has two owners and epochs only rise; left alone
// the group comes to rest with every partition consumed.
func TestConsumerGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newGroupWorld(t)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.random()
		}
		w.rest()
	})
}

func (w *groupWorld) random() {
	t := w.t
	switch rapid.IntRange(0, 11).Draw(t, "kind") {
	case 0, 1:
		if len(w.clients) < 6 {
			w.addClient()
		}
	case 2:
		if c := w.pick(); c != nil {
			w.leave(c, rapid.Bool().Draw(t, "for a while"))
		}
	case 3:
		name := rapid.SampledFrom([]string{"a", "b", "c", "ab"}).Draw(t, "topic")
		topic, ok := w.h.world.Image.Topic(name)
		n := 1
		if ok {
			n = min(len(topic.Partitions)+1, 6)
		}
		w.h.topic(name, n)
	case 4:
		if rapid.IntRange(0, 3).Draw(t, "crash") == 0 {
			w.crash()
		}
	case 5:
		w.tick(time.Duration(rapid.Int64Range(0, 20_000).Draw(t, "ms")) * time.Millisecond)
	case 6:
		if c := w.pick(); c != nil && !c.classic {
			w.subscribe(c)
		}
	default:
		if c := w.pick(); c != nil {
			c.turn(w, rapid.IntRange(0, 9).Draw(t, "lost") == 0)
		}
	}
	w.check()
}

func (w *groupWorld) pick() *simClient {
	var alive []*simClient
	for _, c := range w.clients {
		if !c.gone {
			alive = append(alive, c)
		}
	}
	if len(alive) == 0 {
		return nil
	}
	return rapid.SampledFrom(alive).Draw(w.t, "client")
}

func (w *groupWorld) addClient() {
	w.joined++
	c := &simClient{name: fmt.Sprintf("c%d", w.joined), owned: map[ownedPartition]bool{}, topics: []string{"a"}}
	c.classic = rapid.IntRange(0, 3).Draw(w.t, "classic") == 0
	if !c.classic {
		c.memberID = c.name
		w.subscribe(c)
	}
	if rapid.IntRange(0, 3).Draw(w.t, "static") == 0 {
		instance := rapid.SampledFrom([]string{"i", "j"}).Draw(w.t, "instance")
		c.instance = &instance
		for _, other := range w.clients {
			if other.instance != nil && *other.instance == instance && !other.gone {
				// The same process, started again.
				other.gone = true
			}
		}
	}
	w.clients = append(w.clients, c)
	c.turn(w, false)
}

func (w *groupWorld) subscribe(c *simClient) {
	c.told = true
	c.topics = rapid.SampledFrom([][]string{{"a"}, {"a", "b"}, {"b", "c"}, {}}).Draw(w.t, "topics")
	c.regex = rapid.SampledFrom([]string{"", "", "a.*", "b|c"}).Draw(w.t, "regex")
}

// crash loses everything but the log.
func (w *groupWorld) crash() {
	before := stateOf(w.h.m)
	w.h.reload()
	for _, c := range w.clients {
		c.join, c.sync, c.synced = 0, 0, c.synced && c.join == 0 && c.sync == 0
	}
	if after := stateOf(w.h.m); after != before {
		w.t.Fatalf("after the crash:\n%s\nbefore:\n%s", after, before)
	}
	if compacted := stateOf(compacted(w.h)); compacted != before {
		w.t.Fatalf("from the compacted log:\n%s\nbefore:\n%s", compacted, before)
	}
}

// compacted is a machine that has seen the newest record of each key only, in the
// order of the keys, as a checkpoint has them.
func compacted(h *harness) *Machine {
	newest := map[string]logged{}
	offsets := map[string]int64{}
	for i, l := range h.log {
		newest[string(l.key)], offsets[string(l.key)] = l, int64(i)
	}
	m := New(h.cfg, func() string { return "" })
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if newest[key].value != nil {
			newest[key].replay(m, offsets[key])
		}
	}
	return m
}

func (w *groupWorld) leave(c *simClient, forAWhile bool) {
	c.gone = true
	if c.memberID == "" {
		return
	}
	if c.classic {
		r := kmsg.NewPtrLeaveGroupRequest()
		r.Version, r.Group = 5, simGroup
		r.Members = []kmsg.LeaveGroupRequestMember{{MemberID: c.memberID, InstanceID: c.instance}}
		w.call(c, r)
		return
	}
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.MemberEpoch, r.InstanceID = 1, simGroup, c.memberID, leaveEpoch, c.instance
	if forAWhile && c.instance != nil {
		r.MemberEpoch = staticLeaveEpoch
	}
	w.call(c, r)
}

// check holds the invariants.
func (w *groupWorld) check() {
	checkCounts(w.t, w.h.m)
	g := w.h.m.consumer(simGroup)
	// A group without members may be made anew, and then its epochs begin anew.
	var epoch int32
	switch st := w.h.m.groups[simGroup]; {
	case g != nil:
		epoch = g.epoch
		checkOwners(w.t, g)
		checkSubscriptions(w.t, g)
		w.checkHash(g)
	case st != nil && st.metadata != nil && len(st.metadata.Members) > 0:
		epoch = st.metadata.Generation
	}
	if epoch > 0 && epoch < w.epoch {
		w.t.Fatalf("the group's epoch went from %d back to %d", w.epoch, epoch)
	}
	w.epoch = epoch
	if g == nil {
		return // a classic leader may give whatever it wants to whom it wants
	}
	owners := map[ownedPartition]string{}
	for _, c := range w.clients {
		m := g.members[c.memberID]
		if c.gone || m == nil || c.classic || m.classic != nil || c.epoch == 0 {
			continue
		}
		for at := range c.owned {
			if other := owners[at]; other != "" {
				w.t.Fatalf("%s and %s both consume %x-%d", other, c.name, at.topic[15], at.partition)
			}
			owners[at] = c.name
		}
	}
}

// checkOwners: no partition is of two members, and what is kept beside the members
// is what follows from them.
func checkOwners(t *rapid.T, g *consumerGroup) {
	owners := map[ownedPartition]string{}
	for _, id := range g.memberIDs() {
		m := g.members[id]
		for _, o := range []owned{m.assigned, m.revoking} {
			for topic, partitions := range o {
				for p := range partitions {
					at := ownedPartition{topic, p}
					if other := owners[at]; other != "" {
						t.Fatalf("%s and %s both have %x-%d", other, id, topic[15], p)
					}
					owners[at] = id
				}
			}
		}
		if m.epoch > g.targetEpoch && g.targetEpoch >= 0 {
			t.Fatalf("member %s is at epoch %d, the division at %d", id, m.epoch, g.targetEpoch)
		}
	}
	if !maps.Equal(owners, g.owners) {
		t.Fatalf("owners %v, from the members %v", g.owners, owners)
	}
	if g.targetEpoch > g.epoch {
		t.Fatalf("divided for epoch %d of %d", g.targetEpoch, g.epoch)
	}
}

// rest lets the clients go on without losses until nothing changes any more.
func (w *groupWorld) rest() {
	w.tick(50 * time.Second) // who is gone without a word is gone
	var consumers []*simClient
	for _, c := range w.clients {
		if !c.gone && !c.classic {
			consumers = append(consumers, c)
		}
		c.gone = c.gone || c.classic
	}
	for range 30 {
		for _, c := range consumers {
			if !c.gone {
				c.turn(w, false)
			}
		}
		w.tick(2 * time.Second)
	}
	// The classic clients have gone by now, by their sessions.
	for range 30 {
		for _, c := range consumers {
			if !c.gone {
				c.turn(w, false)
			}
		}
		w.tick(2 * time.Second)
	}
	alive := slices.DeleteFunc(consumers, func(c *simClient) bool { return c.gone })
	if len(alive) == 0 {
		return
	}
	g := w.h.m.consumer(simGroup)
	if g == nil || g.state() != Stable || len(g.members) != len(alive) {
		w.t.Fatalf("%d clients, and the group is:\n%s", len(alive), stateOf(w.h.m))
	}
	got := map[ownedPartition]bool{}
	for _, c := range alive {
		m := g.members[c.memberID]
		if !owned.partitions(m.assigned).Equal(byTopic(c.owned)) {
			w.t.Fatalf("%s consumes %v and is assigned %v", c.name, c.owned, m.assigned)
		}
		for at := range c.owned {
			t, _ := w.h.world.Image.TopicByID(at.topic)
			if !g.subscribes(m, t.Name) {
				w.t.Fatalf("%s consumes %s, which it does not subscribe to", c.name, t.Name)
			}
			got[at] = true
		}
	}
	for name := range g.topics() {
		if t, ok := w.h.world.Image.Topic(name); ok {
			for p := range t.Partitions {
				if !got[ownedPartition{t.ID, int32(p)}] {
					w.t.Fatalf("nobody consumes %s-%d:\n%s", name, p, stateOf(w.h.m))
				}
			}
		}
	}
}

// consumerState is all that the log says of a consumer group.
func consumerState(g *consumerGroup) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  epoch %d/%x target %d at %d old %v\n", g.epoch, g.metadataHash, g.targetEpoch, g.targetAtMs, g.oldPartitions)
	for _, id := range g.memberIDs() {
		m := g.members[id]
		fmt.Fprintf(&b, "  %s\n  %s\n", describeRecord(Record{Consumer: m.metadataRecord()}), describeRecord(Record{Consumer: m.currentRecord()}))
	}
	for _, id := range slices.Sorted(maps.Keys(g.target)) {
		fmt.Fprintf(&b, "  target %s %s\n", id, partText(g.target[id]))
	}
	for _, regex := range slices.Sorted(maps.Keys(g.regexes)) {
		fmt.Fprintf(&b, "  regex %s %v\n", regex, g.regexes[regex].topics)
	}
	owners := assignor.Assignment{}
	for at := range g.owners {
		owners[at.topic] = append(owners[at.topic], at.partition)
	}
	for _, topic := range owners.TopicIDs() {
		slices.Sort(owners[topic])
		for _, p := range owners[topic] {
			fmt.Fprintf(&b, "  owner of %d:%d %s\n", topic[15], p, g.owners[ownedPartition{topic, p}])
		}
	}
	return b.String()
}
