package assignor

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// kafkaCase is one line of testdata/kafka.jsonl, which
// compat-tests/oracle/assignors wrote.
type kafkaCase struct {
	Assignor    string
	Homogeneous bool
	Topics      map[string]int32
	Members     []struct {
		ID       string
		Instance *string
		Topics   []int
		Assigned map[string][]int32
	}
	Want map[string]map[string][]int32
}

func topicID(n int) (id TopicID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func topicNumber(id TopicID) string { return strconv.FormatUint(binary.BigEndian.Uint64(id[8:]), 10) }

func fromNames(byName map[string][]int32) Assignment {
	a := Assignment{}
	for name, partitions := range byName {
		n, _ := strconv.Atoi(name)
		a[topicID(n)] = partitions
	}
	return a
}

// Every division is the one that Apache Kafka's own assignors made.
func TestEqualsKafka(t *testing.T) {
	f, err := os.Open("testdata/kafka.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, n := bufio.NewScanner(f), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		n++
		var c kafkaCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		g := Group{Homogeneous: c.Homogeneous, Partitions: func(id TopicID) int32 { return c.Topics[topicNumber(id)] }}
		for _, m := range c.Members {
			member := Member{ID: m.ID, InstanceID: m.Instance, Assigned: fromNames(m.Assigned)}
			for _, topic := range m.Topics {
				member.Topics = append(member.Topics, topicID(topic))
			}
			g.Members = append(g.Members, member)
		}
		assign, ok := ByName(c.Assignor)
		if !ok {
			t.Fatalf("line %d: no assignor %q", n, c.Assignor)
		}
		got := assign(g)
		for id, want := range c.Want {
			if !got[id].Equal(fromNames(want)) {
				t.Errorf("line %d: %s gives %s %v, Kafka %v\n%s", n, c.Assignor, id, got[id], want, lines.Bytes())
			}
		}
	}
	if err := lines.Err(); err != nil || n < 200 {
		t.Fatalf("%d cases, %v", n, err)
	}
}

func TestNamesAndOrder(t *testing.T) {
	if _, ok := ByName("sticky"); ok {
		t.Error("there is an assignor of an unknown name")
	}
	ids := []TopicID{{0x7f}, {0x80}, {0, 0, 0, 0, 0, 0, 0, 0, 0x80}, {0, 0, 0, 0, 0, 0, 0, 0, 1}}
	slices.SortFunc(ids, CompareTopicIDs)
	if ids[0] != (TopicID{0x80}) || ids[1][8] != 0x80 || ids[3] != (TopicID{0x7f}) {
		t.Errorf("topic ids in order: %x", ids)
	}
	if out := uniform(Group{}); len(out) != 0 {
		t.Errorf("an empty group gets %v", out)
	}
}

// TestDivisions holds the assignors against what any division must keep to, in
// groups that change from one division to the next.
func TestDivisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{Uniform, Range}).Draw(t, "assignor")
		assign, _ := ByName(name)
		homogeneous := rapid.Bool().Draw(t, "homogeneous")
		sizes := map[TopicID]int32{}
		last := map[string]Assignment{}
		for range rapid.IntRange(1, 6).Draw(t, "divisions") {
			g := drawGroup(t, homogeneous, sizes, last)
			before := len(last)
			last = assign(g)
			checkDivision(t, g, last)
			for id, a := range assign(sharing(g)) {
				if !a.Equal(last[id]) {
					t.Fatalf("with lists that members share %s gets %v, else %v", id, a, last[id])
				}
			}
			if name == Uniform && homogeneous {
				checkBalanced(t, g, last)
			}
			if name == Uniform && before > 0 {
				again := g
				again.Members = slices.Clone(g.Members)
				for i := range again.Members {
					again.Members[i].Assigned = last[again.Members[i].ID]
				}
				for id, a := range assign(again) {
					if !a.Equal(last[id]) {
						t.Fatalf("dividing an unchanged group moves partitions of %s: %v, before %v", id, a, last[id])
					}
				}
			}
		}
	})
}

func drawGroup(t *rapid.T, homogeneous bool, sizes map[TopicID]int32, last map[string]Assignment) Group {
	topics := rapid.SliceOfNDistinct(rapid.IntRange(1, 6), 1, 6, rapid.ID).Draw(t, "topics")
	for _, n := range topics {
		sizes[topicID(n)] = max(sizes[topicID(n)], rapid.Int32Range(0, 9).Draw(t, "partitions"))
	}
	g := Group{Homogeneous: homogeneous, Partitions: func(id TopicID) int32 { return sizes[id] }}
	members := rapid.SliceOfNDistinct(rapid.StringMatching(`m[0-9]`), 1, 8, rapid.ID).Draw(t, "members")
	slices.Sort(members)
	for _, id := range members {
		m := Member{ID: id, Assigned: last[id]}
		for _, n := range topics {
			if homogeneous || rapid.Bool().Draw(t, "subscribed") {
				m.Topics = append(m.Topics, topicID(n))
			}
		}
		slices.SortFunc(m.Topics, CompareTopicIDs)
		g.Members = append(g.Members, m)
	}
	return g
}

// sharing is the same group, in which members of the same topics have one list.
func sharing(g Group) Group {
	g.Members = slices.Clone(g.Members)
	for i := range g.Members {
		m := &g.Members[i]
		first := slices.IndexFunc(g.Members, func(o Member) bool { return slices.Equal(o.Topics, m.Topics) })
		m.Topics = g.Members[first].Topics
	}
	return g
}

// TestAChangeOverCostsLittle: while the members of a group change from one list of
// topics to another, a division looks at each list once and not for each member.
func TestAChangeOverCostsLittle(t *testing.T) {
	const topics = 1000
	var before, after []TopicID
	for n := range topics + 1 {
		after = append(after, topicID(n))
	}
	before = slices.Clone(after[:topics])
	bytesWith := func(members int) int {
		g := Group{Partitions: func(TopicID) int32 { return 1 }}
		for i := range members {
			m := Member{ID: strconv.Itoa(1000 + i), Topics: before}
			if i < members/2 {
				m.Topics = after
			}
			g.Members = append(g.Members, m)
		}
		for id, a := range uniform(g) {
			g.Members[slices.IndexFunc(g.Members, func(m Member) bool { return m.ID == id })].Assigned = a
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		uniform(g)
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	const few, many = 20, 220
	// A number takes 8 bytes for each topic in a list of subscribers of its own.
	if each := (bytesWith(many) - bytesWith(few)) / (many - few); each > topics {
		t.Errorf("a division takes %d bytes more for each member", each)
	}
}

// checkDivision: every partition that somebody wants has one owner, who wants it.
func checkDivision(t *rapid.T, g Group, out map[string]Assignment) {
	owners := map[topicPartition]string{}
	wanted := map[TopicID]bool{}
	for i := range g.Members {
		m := &g.Members[i]
		a, ok := out[m.ID]
		if !ok {
			t.Fatalf("member %s is left out", m.ID)
		}
		for topic, partitions := range a {
			if !slices.IsSorted(partitions) || len(partitions) == 0 {
				t.Fatalf("%s has partitions %v", m.ID, partitions)
			}
			for _, p := range partitions {
				if other, twice := owners[topicPartition{topic, p}]; twice || !subscribes(m.Topics, topic) {
					t.Fatalf("%s gets %x-%d, which it does not subscribe to or %q has too", m.ID, topic, p, other)
				}
				owners[topicPartition{topic, p}] = m.ID
			}
		}
		for _, topic := range m.Topics {
			wanted[topic] = true
		}
	}
	var total int32
	for topic := range wanted {
		total += g.Partitions(topic)
	}
	if int(total) != len(owners) || len(out) != len(g.Members) {
		t.Fatalf("%d of %d partitions are given to %d of %d members", len(owners), total, len(out), len(g.Members))
	}
}

func checkBalanced(t *rapid.T, g Group, out map[string]Assignment) {
	least, most := 1<<30, 0
	for i := range g.Members {
		n := 0
		for _, partitions := range out[g.Members[i].ID] {
			n += len(partitions)
		}
		least, most = min(least, n), max(most, n)
	}
	if most-least > 1 {
		t.Fatalf("members have from %d to %d partitions", least, most)
	}
}
