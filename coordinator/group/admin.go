package group

import (
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// notFoundVersion is the DescribeGroups version that tells a missing group from
// a dead one (KIP-1043).
const notFoundVersion = 6

// typeClassic is how the kind of group appears in ListGroups (KIP-848).
const typeClassic = "classic"

func (s *step) describe(r DescribeGroup) *kmsg.DescribeGroupsResponseGroup {
	resp := kmsg.NewDescribeGroupsResponseGroup()
	resp.Group = r.Group
	g := s.view(r.Group)
	if g == nil {
		resp.State = Dead.String()
		if r.Version >= notFoundVersion {
			msg := fmt.Sprintf("Group %s not found.", r.Group)
			if s.consumer(r.Group) != nil {
				msg = fmt.Sprintf("Group %s is not a classic group.", r.Group)
			}
			resp.ErrorCode, resp.ErrorMessage = kerr.GroupIDNotFound.Code, &msg
		}
		return &resp
	}
	resp.State, resp.ProtocolType = g.state.String(), g.protocolType
	var protocol string
	if g.state == Stable && g.protocol != nil {
		protocol = *g.protocol
		resp.Protocol = protocol
	}
	for _, m := range g.members {
		rm := kmsg.NewDescribeGroupsResponseGroupMember()
		rm.MemberID, rm.InstanceID, rm.ClientID, rm.ClientHost = m.id, m.instanceID, m.clientID, m.clientHost
		if g.state == Stable {
			rm.ProtocolMetadata, _ = m.metadata(protocol)
			rm.MemberAssignment = m.assignment
		}
		resp.Members = append(resp.Members, rm)
	}
	return &resp
}

func (s *step) list(r ListGroups) []kmsg.ListGroupsResponseGroup {
	var out []kmsg.ListGroupsResponseGroup
	for _, id := range s.storedIDs() {
		lg := s.listed(id)
		if r.States.passes(lg.GroupState) && r.Types.passes(lg.GroupType) {
			out = append(out, lg)
		}
	}
	return out
}

func (s *step) listed(id string) kmsg.ListGroupsResponseGroup {
	lg := kmsg.NewListGroupsResponseGroup()
	lg.Group = id
	if g := s.consumer(id); g != nil {
		lg.ProtocolType, lg.GroupState, lg.GroupType = protocolConsumer, g.state().String(), typeConsumer
		return lg
	}
	g := s.view(id)
	lg.ProtocolType, lg.GroupState, lg.GroupType = g.protocolType, g.state.String(), typeClassic
	return lg
}

func (s *step) deleteGroup(id string) *kmsg.DeleteGroupsResponseGroup {
	resp := kmsg.NewDeleteGroupsResponseGroup()
	resp.Group = id
	g, consumer := s.view(id), s.consumer(id)
	switch {
	case consumer != nil && len(consumer.members) == 0:
		s.forgetOffsets(id)
		s.forgetConsumer(id, consumer)
	case consumer != nil:
		msg := kerr.NonEmptyGroup.Description
		resp.ErrorCode, resp.ErrorMessage = kerr.NonEmptyGroup.Code, &msg
	case g == nil:
		msg := fmt.Sprintf("Group %s not found.", id)
		resp.ErrorCode, resp.ErrorMessage = kerr.GroupIDNotFound.Code, &msg
	case g.state != Empty:
		msg := kerr.NonEmptyGroup.Description
		resp.ErrorCode, resp.ErrorMessage = kerr.NonEmptyGroup.Code, &msg
	default:
		s.forget(g)
	}
	return &resp
}

// forget writes tombstones for a group and all its offsets, the group's own
// last: whatever part of them a crash leaves, doing it again finishes.
func (s *step) forget(g *classic) {
	s.forgetOffsets(g.id)
	s.record(Record{Group: g.id})
	for id := range g.pendingJoin {
		s.expectNothing(g, id)
	}
	delete(s.soft.groups, g.id)
}

func (s *step) forgetOffsets(id string) {
	if st := s.groups[id]; st != nil {
		s.eachOffset(st, func(topic string, partition int32, _ committed) {
			s.record(offsetTombstone(id, topic, partition))
		})
		for _, tp := range st.pendingPartitions() {
			if st.offsets[tp.topic][tp.partition].value == nil {
				s.record(offsetTombstone(id, tp.topic, tp.partition))
			}
		}
	}
}

func offsetTombstone(group, topic string, partition int32) Record {
	return Record{IsOffset: true, Group: group, Topic: topic, Partition: partition}
}

// eachOffset walks a group's offsets in order of topic and partition.
func (s *step) eachOffset(st *stored, fn func(topic string, partition int32, c committed)) {
	for _, topic := range slices.Sorted(maps.Keys(st.offsets)) {
		for _, p := range sortedPartitions(st.offsets[topic]) {
			fn(topic, p, st.offsets[topic][p])
		}
	}
}

func sortedPartitions(m map[int32]committed) []int32 {
	return slices.Sorted(maps.Keys(m))
}
