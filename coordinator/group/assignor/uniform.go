package assignor

// uniform balances the number of partitions, whatever their topics, and lets
// members keep what they have as far as that goes.
func uniform(g Group) map[string]Assignment {
	if len(g.Members) == 0 {
		return map[string]Assignment{}
	}
	if g.Homogeneous {
		return uniformSame(g)
	}
	return uniformMixed(g)
}

// uniformSame divides among members of one subscription: everybody gets the same
// number or one more, so that a quota says at once what is to be given back.
func uniformSame(g Group) map[string]Assignment {
	d := &quotaDivision{g: g, hands: newHands(len(g.Members))}
	topics := g.Members[0].Topics
	if len(topics) == 0 {
		return empty(g)
	}
	assigned := map[topicPartition]bool{}
	for i := range g.Members {
		for topic, partitions := range g.Members[i].Assigned {
			for _, p := range partitions {
				assigned[topicPartition{topic, p}] = true
			}
		}
	}
	var total int32
	for _, topic := range topics {
		n := g.Partitions(topic)
		total += n
		for p := range n {
			if tp := (topicPartition{topic, p}); !assigned[tp] {
				d.free = append(d.free, tp)
			}
		}
	}
	d.each, d.more = total/int32(len(g.Members)), total%int32(len(g.Members))
	for i := range g.Members {
		d.keep(&g.Members[i], len(g.Members)-i, topics)
	}
	for _, h := range d.hungry {
		n := min(int(h.quota), len(d.free))
		for _, tp := range d.free[:n] {
			d.hands.give(h.member, tp)
		}
		d.free = d.free[n:]
	}
	return d.hands.out
}

func empty(g Group) map[string]Assignment {
	out := make(map[string]Assignment, len(g.Members))
	for i := range g.Members {
		out[g.Members[i].ID] = Assignment{}
	}
	return out
}

type quotaDivision struct {
	g     Group
	hands *hands
	// each is everybody's quota; more members may have one above it.
	each, more int32
	// free is what nobody has, in the order in which it is given.
	free   []topicPartition
	hungry []hungry
}

// hungry is a member below its quota.
type hungry struct {
	member string
	quota  int32
}

// keep lets a member keep what its quota allows; left counts the members from it
// on. The extra partition goes to those that need it to keep what they have,
// before it goes to the last ones.
func (d *quotaDivision) keep(m *Member, left int, topics []TopicID) {
	d.hands.out[m.ID] = m.Assigned
	quota, extra := d.each, d.more > 0
	if extra {
		quota++
	}
	for _, topic := range m.Assigned.TopicIDs() {
		if !subscribes(topics, topic) {
			d.hands.takeTopic(m.ID, topic)
			continue
		}
		partitions := m.Assigned[topic]
		kept := min(quota, int32(len(partitions)))
		quota -= kept
		for _, p := range partitions[kept:] {
			d.hands.take(m.ID, topicPartition{topic, p})
			d.free = append(d.free, topicPartition{topic, p})
		}
	}
	if quota > 0 && extra && int32(left) > d.more {
		quota--
		extra = false
	}
	if extra {
		d.more--
	}
	if quota > 0 {
		d.hungry = append(d.hungry, hungry{m.ID, quota})
	}
	if d.hands.out[m.ID] == nil {
		d.hands.out[m.ID] = Assignment{}
	}
}
