package assignor

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// maxBalancePasses bounds the passes over all topics: a pass that moves nothing
// ends them, which most groups reach in one or two.
const maxBalancePasses = 16

const nobody = -1

// uniformMixed divides among members of different subscriptions, by levelling one
// topic after another among those that subscribe to it.
func uniformMixed(g Group) map[string]Assignment {
	d := newMixedDivision(g)
	d.keep()
	order := d.order()
	for _, topic := range order {
		d.giveFree(topic)
	}
	d.balance(order)
	return d.hands.out
}

// mixedDivision knows members by their index in the group.
type mixedDivision struct {
	g      Group
	hands  *hands
	topics map[TopicID]*mixedTopic
	// loads is how many partitions each member has, moves how often that changed.
	loads []int
	moves int
}

type mixedTopic struct {
	id TopicID
	// lists are the lists of topics that have it, by number.
	lists       []int
	subscribers *subscribers
	// owners is the member of each partition, or nobody.
	owners []int
}

// subscribers are the members that subscribe to a topic. Topics of the same
// subscribers share them: in a group that changes over from one subscription to
// another these are nearly all.
type subscribers struct {
	// byLoad is by load, then by index, as of so many moves.
	byLoad []int
	asOf   int
}

func newMixedDivision(g Group) *mixedDivision {
	d := &mixedDivision{g: g, hands: newHands(len(g.Members)), topics: map[TopicID]*mixedTopic{}, loads: make([]int, len(g.Members))}
	lists := topicLists(g.Members)
	for n, list := range lists {
		for _, id := range list.topics {
			t := d.topics[id]
			if t == nil {
				t = &mixedTopic{id: id, owners: slices.Repeat([]int{nobody}, int(g.Partitions(id)))}
				d.topics[id] = t
			}
			t.lists = append(t.lists, n)
		}
	}
	shared := map[string]*subscribers{}
	for _, t := range d.topics {
		var key []byte
		for _, n := range t.lists {
			key = binary.AppendUvarint(key, uint64(n))
		}
		s := shared[string(key)]
		if s == nil {
			s = &subscribers{asOf: -1}
			for _, n := range t.lists {
				s.byLoad = append(s.byLoad, lists[n].members...)
			}
			shared[string(key)] = s
		}
		t.subscribers = s
	}
	return d
}

// topicList is a list of topics and who has it.
type topicList struct {
	topics  []TopicID
	members []int
}

// topicLists are the members' lists; those that share one are looked at once.
func topicLists(members []Member) (lists []*topicList) {
	type list struct {
		first *TopicID
		n     int
	}
	known := map[list]*topicList{}
	for i := range members {
		topics := members[i].Topics
		if len(topics) == 0 {
			continue
		}
		at := list{&topics[0], len(topics)}
		l := known[at]
		if l == nil {
			l = &topicList{topics: topics}
			known[at] = l
			lists = append(lists, l)
		}
		l.members = append(l.members, i)
	}
	return lists
}

// keep leaves members what they have of the topics that they still subscribe to.
func (d *mixedDivision) keep() {
	for i := range d.g.Members {
		m := &d.g.Members[i]
		d.hands.out[m.ID] = m.Assigned
		for _, topic := range m.Assigned.TopicIDs() {
			if !subscribes(m.Topics, topic) {
				d.hands.takeTopic(m.ID, topic)
				continue
			}
			for _, p := range m.Assigned[topic] {
				if owners := d.topics[topic].owners; int(p) < len(owners) {
					owners[p] = i
					d.loads[i]++
				}
			}
		}
		if d.hands.out[m.ID] == nil {
			d.hands.out[m.ID] = Assignment{}
		}
	}
}

// order is the topics with the most partitions for each subscriber first, as
// those leave the least choice.
func (d *mixedDivision) order() []*mixedTopic {
	order := make([]*mixedTopic, 0, len(d.topics))
	for _, t := range d.topics {
		order = append(order, t)
	}
	share := func(t *mixedTopic) float64 { return float64(len(t.owners)) / float64(t.subscribers.len()) }
	slices.SortFunc(order, func(a, b *mixedTopic) int {
		return cmp.Or(cmp.Compare(share(b), share(a)), cmp.Compare(a.subscribers.len(), b.subscribers.len()), CompareTopicIDs(a.id, b.id))
	})
	return order
}

// giveFree gives the partitions that nobody has to the least loaded subscribers.
func (d *mixedDivision) giveFree(t *mixedTopic) {
	var l *levels
	for p, owner := range t.owners {
		if owner != nobody {
			continue
		}
		if l == nil {
			l = d.levels(t)
		}
		d.move(t, p, l.least())
	}
}

func (d *mixedDivision) move(t *mixedTopic, partition, to int) {
	tp := topicPartition{t.id, int32(partition)}
	if from := t.owners[partition]; from != nobody {
		d.hands.take(d.g.Members[from].ID, tp)
		d.loads[from]--
	}
	d.hands.give(d.g.Members[to].ID, tp)
	d.loads[to]++
	d.moves++
	t.owners[partition] = to
}

// balance levels the topics until a whole round moves nothing.
func (d *mixedDivision) balance(order []*mixedTopic) {
	order = slices.DeleteFunc(slices.Clone(order), func(t *mixedTopic) bool { return t.subscribers.len() < 2 })
	last := -1
	for range maxBalancePasses {
		for i, t := range order {
			if i == last {
				return
			}
			if moved := d.level(t); moved > 0 || last == -1 {
				last = i
			}
		}
	}
}

// level moves partitions of one topic from its most to its least loaded
// subscribers until their loads differ by one at most.
func (d *mixedDivision) level(t *mixedTopic) (moved int) {
	if d.spread(t) <= 1 {
		return 0
	}
	l := d.levels(t)
	// owned is each member's partitions of this topic, of which the last goes
	// first.
	owned := map[int][]int{}
	for p, owner := range t.owners {
		owned[owner] = append(owned[owner], p)
	}
	for !l.balanced() {
		from, ok := l.most()
		for ok && len(owned[from]) == 0 {
			// Its load is of other topics: nothing of it can move here.
			l.dropMost()
			from, ok = l.most()
		}
		if !ok {
			break
		}
		last := len(owned[from]) - 1
		partition := owned[from][last]
		owned[from] = owned[from][:last]
		to := l.least()
		if l.balanced() {
			break
		}
		d.move(t, partition, to)
		moved++
	}
	return moved
}
