package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (s *step) heartbeat(e Event, r *kmsg.HeartbeatRequest) {
	resp := kmsg.NewPtrHeartbeatResponse()
	if code := s.beat(r); code != nil {
		resp.ErrorCode = code.Code
	}
	s.answer(e.Call, resp)
}

func (s *step) beat(r *kmsg.HeartbeatRequest) *kerr.Error {
	if r.Group == "" {
		return kerr.InvalidGroupID
	}
	if s.consumer(r.Group) != nil {
		return s.beatConsumer(r)
	}
	g := s.view(r.Group)
	if g == nil {
		return kerr.UnknownMemberID
	}
	m, err := g.validate(r.MemberID, r.InstanceID)
	if err != nil {
		return err
	}
	if r.Generation != g.generation {
		return kerr.IllegalGeneration
	}
	s.expectHeartbeat(g, m, m.sessionTimeoutMs)
	if g.state == PreparingRebalance {
		return kerr.RebalanceInProgress
	}
	return nil
}

// batchLeaveVersion is the LeaveGroup version that names several members, static
// ones too (KIP-345).
const batchLeaveVersion = 3

func (s *step) leave(e Event, r *kmsg.LeaveGroupRequest) {
	members := r.Members
	if r.Version < batchLeaveVersion {
		members = []kmsg.LeaveGroupRequestMember{{MemberID: r.MemberID}}
	}
	resp := kmsg.NewPtrLeaveGroupResponse()
	if r.Group == "" {
		resp.ErrorCode = kerr.InvalidGroupID.Code
		s.answer(e.Call, resp)
		return
	}
	if s.consumer(r.Group) != nil {
		s.answer(e.Call, s.leftConsumer(r, members))
		return
	}
	g := s.view(r.Group)
	var left bool
	for i := range members {
		rm := kmsg.NewLeaveGroupResponseMember()
		rm.MemberID, rm.InstanceID = members[i].MemberID, members[i].InstanceID
		removed, code := s.leaveOne(g, &members[i])
		if code != nil {
			rm.ErrorCode = code.Code
		}
		left = left || removed
		resp.Members = append(resp.Members, rm)
	}
	if r.Version < batchLeaveVersion {
		resp.ErrorCode = resp.Members[0].ErrorCode
	}
	switch {
	case left:
		s.afterRemoval(g)
	case g != nil:
		s.completeJoinIfAll(g)
		s.settle(g)
	}
	s.answer(e.Call, resp)
}

// leftConsumer is the answer of a consumer group.
func (s *step) leftConsumer(r *kmsg.LeaveGroupRequest, members []kmsg.LeaveGroupRequestMember) *kmsg.LeaveGroupResponse {
	resp := kmsg.NewPtrLeaveGroupResponse()
	left, err := s.leaveConsumer(r.Group, members)
	if err != nil {
		s.out = Out{}
		resp.ErrorCode = err.code.Code
		return resp
	}
	if resp.Members = left; r.Version < batchLeaveVersion {
		resp.ErrorCode = left[0].ErrorCode
	}
	return resp
}

// leaveOne takes one member out; removed is false for an id that had not joined
// yet, whose leaving changes nothing for the others.
func (s *step) leaveOne(g *classic, lm *kmsg.LeaveGroupRequestMember) (removed bool, code *kerr.Error) {
	if g == nil {
		return false, kerr.UnknownMemberID
	}
	if _, pending := g.pendingJoin[lm.MemberID]; pending {
		delete(g.pendingJoin, lm.MemberID)
		s.expectNothing(g, lm.MemberID)
		return false, nil
	}
	var m *member
	if lm.MemberID == "" && lm.InstanceID != nil {
		// An administrator removes a static member by its instance alone.
		if m = g.static(*lm.InstanceID); m == nil {
			return false, kerr.UnknownMemberID
		}
	} else if m, code = g.validate(lm.MemberID, lm.InstanceID); code != nil {
		return false, code
	}
	s.expectNothing(g, m.id)
	s.remove(g, m)
	return true, nil
}
