package assignor

import "slices"

// byRange gives each member a run of each topic's partitions, so that partitions
// of the same number of topics of the same size go to the same member, for joins.
// It keeps nothing of what members had, but static members keep their place.
func byRange(g Group) map[string]Assignment {
	members := make([]*Member, len(g.Members))
	for i := range g.Members {
		members[i] = &g.Members[i]
	}
	slices.SortStableFunc(members, compareMembers)
	topics := map[TopicID]*run{}
	for _, m := range members {
		for _, topic := range m.Topics {
			if topics[topic] == nil {
				topics[topic] = &run{partitions: g.Partitions(topic)}
			}
			topics[topic].members++
		}
	}
	for _, r := range topics {
		r.each, r.more = r.partitions/r.members, r.partitions%r.members
	}
	out := make(map[string]Assignment, len(members))
	for _, m := range members {
		a := Assignment{}
		for _, topic := range m.Topics {
			if partitions := topics[topic].take(); len(partitions) > 0 {
				a[topic] = partitions
			}
		}
		out[m.ID] = a
	}
	return out
}

// run deals a topic's partitions in one pass.
type run struct {
	partitions, members int32
	// each is what every member gets; the first more get one above that.
	each, more int32
	next       int32
}

func (r *run) take() []int32 {
	end := r.next + r.each
	if r.more > 0 {
		r.more--
		end++
	}
	var out []int32
	for ; r.next < end; r.next++ {
		out = append(out, r.next)
	}
	return out
}
