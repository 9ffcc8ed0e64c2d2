package group

import (
	"maps"
	"slices"
)

// Exported is a group's offsets as a machine knows them.
type Exported struct {
	Group string
	// ProtocolType is "" for a group that only commits, Generation its last one.
	ProtocolType string
	Generation   int32
	// EmptySinceMs is since when it has no members, 0 when it has some.
	EmptySinceMs int64
	// Offsets are those that count, by topic and partition.
	Offsets []Record
	// Pending is how many partitions have offsets of open transactions.
	Pending int
}

// Export lists the groups that have offsets, in order.
func (m *Machine) Export() (out []Exported) {
	for _, id := range m.storedIDs() {
		st := m.groups[id]
		e := Exported{Group: id, Pending: len(st.pending)}
		if v := st.metadata; v != nil {
			e.ProtocolType, e.Generation = v.ProtocolType, v.Generation
			if len(v.Members) == 0 {
				e.EmptySinceMs = max(v.CurrentStateTimestamp, 0)
			}
		}
		if st.consumer != nil {
			e.ProtocolType, e.Generation = protocolConsumer, st.consumer.epoch
		}
		for _, topic := range slices.Sorted(maps.Keys(st.offsets)) {
			for _, p := range sortedPartitions(st.offsets[topic]) {
				v := *st.offsets[topic][p].value
				e.Offsets = append(e.Offsets, Record{IsOffset: true, Group: id, Topic: topic, Partition: p, Offset: &v})
			}
		}
		if len(e.Offsets) > 0 || e.Pending > 0 {
			out = append(out, e)
		}
	}
	return out
}

// ImportOffsets writes offsets that another cluster's groups have committed, as
// they are. The response is nil.
type ImportOffsets struct {
	Exported
}

// importOffsets also makes a group that had members an empty one of its kind, so
// that its offsets are kept for as long after the last member as those of any
// group.
func (s *step) importOffsets(e Event, r ImportOffsets) {
	if r.ProtocolType != "" && s.groups[r.Group] == nil {
		g := newClassic(r.Group)
		g.protocolType, g.generation, g.stateTimestampMs = r.ProtocolType, r.Generation, s.nowMs()
		if r.EmptySinceMs > 0 {
			g.stateTimestampMs = min(r.EmptySinceMs, s.nowMs())
		}
		s.record(g.metadataRecord())
	}
	for i := range r.Offsets {
		rec := r.Offsets[i]
		v := *rec.Offset
		if v.Version != offsetValueVersionExpires || v.ExpireTimestamp == -1 {
			v.Version = offsetValueVersion
		}
		rec.Offset = &v
		s.record(rec)
	}
	s.out.Parts = true // an import that did not end is run again
	s.answer(e.Call, nil)
}
