package group

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// runConsumer runs the commands of consumer groups.
func (h *harness) runConsumer(t *testing.T, d *datadriven.TestData, group string) {
	switch d.Cmd {
	case "topics":
		for _, a := range d.CmdArgs {
			n, err := strconv.Atoi(a.Vals[0])
			if err != nil {
				t.Fatal(err)
			}
			h.topic(a.Key, n)
		}
	case "topics-gone":
		for _, a := range d.CmdArgs {
			topic, _ := h.world.Image.Topic(a.Key)
			h.apply(&metadata.RemoveTopicRecord{ID: topic.ID})
		}
	case "set":
		for _, a := range d.CmdArgs {
			h.apply(&metadata.ConfigRecord{Resource: metadata.GroupResource(group), Name: a.Key, Value: &a.Vals[0]})
		}
	case "beat":
		h.call(arg(t, d, "client", "c"), beatRequest(t, h, d, group))
	case "describe-consumer":
		h.call("c", DescribeConsumerGroup{Group: group})
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
}

func (h *harness) configureConsumer(t *testing.T, a datadriven.CmdArg) bool {
	c := &h.cfg.Consumer
	switch a.Key {
	case "policy":
		c.Upgrade, c.Downgrade = strings.HasPrefix(a.Vals[0], "up"), strings.HasSuffix(a.Vals[0], "down")
	case "assignors":
		c.Assignors = a.Vals
	case "consumer-max-size":
		c.MaxSize, _ = strconv.Atoi(a.Vals[0])
	case "interval":
		n, err := strconv.Atoi(a.Vals[0])
		if err != nil {
			t.Fatal(err)
		}
		h.world.AssignmentIntervalMs = int32(n)
	default:
		return false
	}
	return true
}

func (h *harness) apply(records ...metadata.Record) {
	h.world.Image = h.world.Image.Apply(records...)
}

// topic makes a topic, or gives it more partitions. Ids are numbered.
func (h *harness) topic(name string, partitions int) {
	t, ok := h.world.Image.Topic(name)
	if !ok {
		h.topicCount++
		id := metadata.TopicID{14: byte(h.topicCount >> 8), 15: byte(h.topicCount)}
		h.apply(&metadata.TopicRecord{Name: name, ID: id})
		t, _ = h.world.Image.Topic(name)
		h.world.TopicsAt = h.world.Image.Offset
	}
	for i := len(t.Partitions); i < partitions; i++ {
		h.apply(&metadata.PartitionRecord{TopicID: t.ID, Partition: metadata.Partition{Index: int32(i)}})
	}
}

func beatRequest(t *testing.T, h *harness, d *datadriven.TestData, group string) *kmsg.ConsumerGroupHeartbeatRequest {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Version, r.Group = int16(num(t, d, "v", 1)), group
	r.MemberID, r.MemberEpoch = arg(t, d, "m", ""), int32(num(t, d, "epoch", 0))
	r.InstanceID, r.RackID, r.ServerAssignor = optional(t, d, "instance"), optional(t, d, "rack"), optional(t, d, "assignor")
	r.SubscribedTopicRegex = optional(t, d, "regex")
	if d.HasArg("topics") {
		r.SubscribedTopicNames = append([]string{}, words(t, d, "topics")...)
	}
	r.RebalanceTimeoutMillis = int32(num(t, d, "rebalance", -1))
	if r.MemberEpoch == 0 && !d.HasArg("bare") {
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		r.RebalanceTimeoutMillis = int32(num(t, d, "rebalance", 60_000))
		if !d.HasArg("topics") && !d.HasArg("regex") {
			r.SubscribedTopicNames = []string{"t"}
		}
	}
	if d.HasArg("owned") {
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		for _, o := range ownedArg(t, d) {
			topic, _ := h.world.Image.Topic(o.Topic)
			r.Topics = append(r.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: topic.ID, Partitions: o.Partitions})
		}
	}
	return r
}

// ownedArg reads owned=(t-0-2,u-1): the partitions of each topic.
func ownedArg(t *testing.T, d *datadriven.TestData) (out []kmsg.ConsumerMemberMetadataOwnedPartition) {
	for _, w := range words(t, d, "owned") {
		if w == "" {
			continue
		}
		parts := strings.Split(w, "-")
		o := kmsg.NewConsumerMemberMetadataOwnedPartition()
		o.Topic = parts[0]
		for _, p := range parts[1:] {
			n, err := strconv.Atoi(p)
			if err != nil {
				t.Fatal(err)
			}
			o.Partitions = append(o.Partitions, int32(n))
		}
		out = append(out, o)
	}
	return out
}

// partText is an assignment as "1:0,2 3:1", topics by their number.
func partText(a assignor.Assignment) string {
	var words []string
	for _, id := range a.TopicIDs() {
		var numbers []string
		for _, p := range a[id] {
			numbers = append(numbers, strconv.Itoa(int(p)))
		}
		words = append(words, fmt.Sprintf("%d:%s", id[15], strings.Join(numbers, ",")))
	}
	return "[" + strings.Join(words, " ") + "]"
}

// ownedText is the same with the epochs since which the member has each.
func ownedText(o owned) string {
	var words []string
	for _, id := range o.partitions().TopicIDs() {
		for _, p := range slices.Sorted(maps.Keys(o[id])) {
			words = append(words, fmt.Sprintf("%d:%d@%d", id[15], p, o[id][p]))
		}
	}
	return "[" + strings.Join(words, " ") + "]"
}

func describeConsumerRecord(r Record) string {
	c := r.Consumer
	s := fmt.Sprintf("%v %s", c.kind, r.Group)
	if c.kind.named() {
		s += " " + c.name
	}
	switch v := c.value.(type) {
	case *epochValue:
		return fmt.Sprintf("%s %d hash=%04x", s, v.epoch, uint16(v.metadataHash))
	case *memberMetadata:
		s += fmt.Sprintf(" topics=%v", v.topics)
		for _, f := range []struct {
			name string
			text *string
		}{{"regex", noneIfEmpty(&v.regex)}, {"instance", v.instanceID}, {"rack", v.rackID}, {"assignor", v.assignor}} {
			if f.text != nil {
				s += fmt.Sprintf(" %s=%s", f.name, *f.text)
			}
		}
		s += fmt.Sprintf(" rebalance=%d", v.rebalanceTimeoutMs)
		if v.classic != nil {
			s += fmt.Sprintf(" classic session=%d", v.classic.sessionTimeoutMs)
			for _, p := range v.classic.protocols {
				s += " " + p.Name
			}
		}
		return s
	case *targetEpochValue:
		return fmt.Sprintf("%s %d at=%d", s, v.epoch, v.timestampMs)
	case *targetValue:
		return fmt.Sprintf("%s %s", s, partText(v.partitions))
	case *currentValue:
		return fmt.Sprintf("%s epoch=%d previous=%d %v %s revoking=%s", s, v.epoch, v.previousEpoch, v.state, ownedText(v.assigned), ownedText(v.revoking))
	case *regexValue:
		return fmt.Sprintf("%s %v version=%d at=%d", s, v.topics, v.version, v.timestampMs)
	case partitionsValue:
		return s
	}
	return s + " deleted"
}

func describeConsumerAnswer(resp any) string {
	switch r := resp.(type) {
	case *kmsg.ConsumerGroupHeartbeatResponse:
		if r.ErrorCode != 0 {
			return fmt.Sprintf("beat%s: %s", code(r.ErrorCode), deref(r.ErrorMessage))
		}
		s := fmt.Sprintf("beat member=%s epoch=%d", deref(r.MemberID), r.MemberEpoch)
		if r.HeartbeatIntervalMillis != 5000 && r.MemberEpoch >= 0 {
			s += fmt.Sprintf(" interval=%d", r.HeartbeatIntervalMillis)
		}
		if r.Assignment != nil {
			a := assignor.Assignment{}
			for _, t := range r.Assignment.Topics {
				a[t.TopicID] = t.Partitions
			}
			s += " " + partText(a)
		}
		return s
	case *kmsg.ConsumerGroupDescribeResponseGroup:
		if r.ErrorCode != 0 {
			return fmt.Sprintf("describe%s: %s", code(r.ErrorCode), deref(r.ErrorMessage))
		}
		s := fmt.Sprintf("describe %s epoch=%d assignment=%d %s", r.State, r.Epoch, r.AssignmentEpoch, r.AssignorName)
		for _, m := range r.Members {
			s += fmt.Sprintf("\n  %s instance=%s rack=%s epoch=%d %s %s topics=%v regex=%q type=%d %s target=%s", m.MemberID, deref(m.InstanceID), deref(m.RackID),
				m.MemberEpoch, m.ClientID, m.ClientHost, m.SubscribedTopics, deref(m.SubscribedTopicRegex), m.MemberType, namedText(m.Assignment), namedText(m.TargetAssignment))
		}
		return s
	}
	return fmt.Sprintf("%T", resp)
}

func namedText(a kmsg.Assignment) string {
	var words []string
	for _, t := range a.TopicPartitions {
		words = append(words, fmt.Sprintf("%s%v", t.Topic, t.Partitions))
	}
	sort.Strings(words)
	return "[" + strings.Join(words, " ") + "]"
}

// classicText is what a classic member gets, where it is an assignment.
func classicText(b []byte) string {
	var a kmsg.ConsumerMemberAssignment
	if len(b) < 6 || a.ReadFrom(b) != nil {
		return fmt.Sprintf("%q", b)
	}
	var words []string
	for _, t := range a.Topics {
		words = append(words, fmt.Sprintf("%s%v", t.Topic, t.Partitions))
	}
	return fmt.Sprintf("v%d [%s]", a.Version, strings.Join(words, " "))
}

// TestNamesOfNoTopicTakeNoMemory has many members subscribe to names that no topic
// has: what the group knows of its topics is looked up without collecting the names.
func TestNamesOfNoTopicTakeNoMemory(t *testing.T) {
	h := newHarness(Config{})
	h.topic("t", 3)
	group := newConsumerGroup()
	for i := range 10 {
		m := newConsumerMember(strconv.Itoa(i))
		for j := range 5000 {
			m.topics = append(m.topics, fmt.Sprintf("none-%d-%d", i, j))
		}
		m.topics = append(m.topics, "t")
		group.replay(m.metadataRecord())
	}
	c := &change{step: &step{Machine: h.m, world: h.world}, id: "g", g: group}
	var hash int64
	const few = 20
	if n := testing.AllocsPerRun(3, func() { hash = c.metadataHash() }); n > few {
		t.Errorf("%v allocations", n)
	}
	for _, id := range group.memberIDs() {
		if id != "3" {
			group.replay(newConsumerMember(id).metadataRecord())
		}
	}
	if alone := c.metadataHash(); alone != hash || hash == 0 {
		t.Errorf("the hash is %x with ten subscribers and %x with one", hash, alone)
	}
}

// TestAJoinCostsWhatTheMemberBrings has members join that all subscribe to the same
// topics: each name is looked at once, and what a join takes grows by little with
// each member that is there already.
func TestAJoinCostsWhatTheMemberBrings(t *testing.T) {
	const topics, few, many = 1000, 20, 220
	h := newHarness(DefaultConfig())
	h.quiet = true
	h.onAnswer = func(uint64, any) {}
	h.world.AssignmentIntervalMs = 0
	var names []string
	for i := range topics {
		names = append(names, fmt.Sprintf("t-%04d", i))
		h.topic(names[i], 1)
	}
	join := func(i int) {
		r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		r.Version, r.Group, r.MemberID, r.RebalanceTimeoutMillis = 1, "g", fmt.Sprintf("m-%03d", i), 10_000
		r.SubscribedTopicNames, r.Topics = names, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		h.call(r.MemberID, r)
	}
	bytesOf := func(f func()) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	members := 0
	fill := func(n int) {
		for ; members < n; members++ {
			join(members)
		}
	}
	fill(few)
	first := bytesOf(func() { fill(few + 1) })
	fill(many)
	last := bytesOf(func() { fill(many + 1) })
	g := h.m.consumer("g")
	if len(g.members) != many+1 {
		t.Fatalf("%d members", len(g.members))
	}
	looks := 0
	for range g.topics() {
		looks++
	}
	if looks != topics {
		t.Errorf("%d names are looked at for the hash, of %d topics", looks, topics)
	}
	// A topic's id takes 16 bytes in each list of them.
	if each := (last - first) / (many - few); each > topics {
		t.Errorf("a join takes %d bytes with %d members and %d with %d: %d more for each", first, few, last, many, each)
	}
}

// TestMembersOfOneSubscriptionShareIt: the topics of each subscription are looked up
// once for an assignment, however many members have it.
func TestMembersOfOneSubscriptionShareIt(t *testing.T) {
	h := newHarness(DefaultConfig())
	for _, name := range []string{"a", "b", "c", "d"} {
		h.topic(name, 1)
	}
	kinds := []memberMetadata{
		{topics: []string{"a", "b", "d"}}, {topics: []string{"a", "c", "d"}}, {topics: []string{"a", "d"}},
		{topics: []string{"a", "b", "d"}, regex: "c"}, {regex: "c"}, {}, {topics: []string{"none"}},
	}
	shared := map[int]bool{0: true, 2: true, 3: true, 4: true}
	g := newConsumerGroup()
	g.replay(&ConsumerRecord{kind: kindRegex, name: "c", value: &regexValue{topics: []string{"c"}}})
	for i := range 2 * len(kinds) {
		g.replay(&ConsumerRecord{kind: kindMember, name: fmt.Sprintf("%02d", i), value: &kinds[i%len(kinds)]})
	}
	c := &change{step: &step{Machine: h.m, world: h.world}, id: "g", g: g}
	members := c.toDivide().Members
	for i, m := range members {
		if want := c.topicIDs(g.members[m.ID]); !slices.Equal(m.Topics, want) {
			t.Errorf("member %d of kind %d has %x, want %x", i, i%len(kinds), m.Topics, want)
		}
		if first := members[i%len(kinds)]; shared[i%len(kinds)] && &first.Topics[0] != &m.Topics[0] {
			t.Errorf("kind %d was looked up again for member %d", i%len(kinds), i)
		}
	}
}

// TestHeartbeatWithoutALog has a member heard of while the log takes no appends and
// the group has something to decide: it stays alive, and nothing is written before
// the log is back.
func TestHeartbeatWithoutALog(t *testing.T) {
	h := newHarness(DefaultConfig())
	h.topic("t", 1)
	var got *kmsg.ConsumerGroupHeartbeatResponse
	h.onAnswer = func(_ uint64, resp any) { got = resp.(*kmsg.ConsumerGroupHeartbeatResponse) }
	join := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	join.Version, join.Group, join.MemberID, join.RebalanceTimeoutMillis = 1, "g", "m", 10_000
	join.SubscribedTopicNames, join.Topics = []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	h.call("c", join)
	beat := func(unwritable bool) {
		r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		r.Version, r.Group, r.MemberID, r.MemberEpoch = 1, "g", "m", got.MemberEpoch
		if MayWrite(Event{Request: r}) {
			t.Fatal("it would be refused")
		}
		h.last++
		h.calls[h.last] = true
		h.event(Event{Call: h.last, Request: r, Unwritable: unwritable})
	}
	h.topic("t", 3)
	h.world.AssignmentIntervalMs = 0
	before, epoch := len(h.log), got.MemberEpoch
	for range 10 {
		h.tick(30 * time.Second) // each time within the session, all together beyond
		beat(true)
		if got.ErrorCode != 0 || got.MemberEpoch != epoch || got.Assignment != nil || len(h.log) != before {
			t.Fatalf("%+v, and %d records", got, len(h.log)-before)
		}
	}
	beat(false)
	if got.MemberEpoch <= epoch || got.Assignment == nil || len(got.Assignment.Topics[0].Partitions) != 3 {
		t.Errorf("with the log back: %+v", got)
	}
}
