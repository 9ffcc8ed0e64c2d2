package group

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func code(c int16) string {
	if c == 0 {
		return ""
	}
	return " " + kerr.ErrorForCode(c).(*kerr.Error).Message
}

func deref(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func describeRecord(r Record) string {
	switch {
	case r.Consumer != nil:
		return describeConsumerRecord(r)
	case r.IsOffset && r.Offset == nil:
		return fmt.Sprintf("offset %s %s-%d deleted", r.Group, r.Topic, r.Partition)
	case r.IsOffset:
		v := r.Offset
		s := fmt.Sprintf("offset %s %s-%d v%d offset=%d metadata=%q at=%d", r.Group, r.Topic, r.Partition, v.Version, v.Offset, v.Metadata, v.CommitTimestamp)
		if v.ExpireTimestamp != -1 {
			s += fmt.Sprintf(" expires=%d", v.ExpireTimestamp)
		}
		return s
	case r.Metadata == nil:
		return fmt.Sprintf("group %s deleted", r.Group)
	}
	v := r.Metadata
	s := fmt.Sprintf("group %s v%d gen=%d type=%q protocol=%s leader=%s at=%d", r.Group, v.Version, v.Generation, v.ProtocolType, deref(v.Protocol), deref(v.Leader), v.CurrentStateTimestamp)
	for _, m := range v.Members {
		s += fmt.Sprintf("\n  %s instance=%s %s", m.MemberID, deref(m.InstanceID), classicText(m.Assignment))
	}
	return s
}

func describeAnswer(resp any) string {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode != 0 {
			return fmt.Sprintf("join%s member=%s", code(r.ErrorCode), r.MemberID)
		}
		s := fmt.Sprintf("join gen=%d member=%s leader=%s protocol=%s", r.Generation, r.MemberID, r.LeaderID, deref(r.Protocol))
		if r.SkipAssignment {
			s += " skip"
		}
		for _, m := range r.Members {
			s += fmt.Sprintf("\n  %s instance=%s", m.MemberID, deref(m.InstanceID))
		}
		return s
	case *kmsg.SyncGroupResponse:
		if r.ErrorCode != 0 {
			return "sync" + code(r.ErrorCode)
		}
		return fmt.Sprintf("sync %s/%s %s", deref(r.ProtocolType), deref(r.Protocol), classicText(r.MemberAssignment))
	case *kmsg.HeartbeatResponse:
		return "heartbeat" + code(r.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		s := "leave" + code(r.ErrorCode)
		for _, m := range r.Members {
			s += fmt.Sprintf("\n  %s instance=%s%s", m.MemberID, deref(m.InstanceID), code(m.ErrorCode))
		}
		return s
	case *kmsg.OffsetCommitResponse:
		s := "commit"
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				s += fmt.Sprintf(" %s-%d%s", t.Topic, p.Partition, code(p.ErrorCode))
			}
		}
		return s
	case *kmsg.TxnOffsetCommitResponse:
		s := "txn-commit"
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				s += fmt.Sprintf(" %s-%d%s", t.Topic, p.Partition, code(p.ErrorCode))
			}
		}
		return s
	case *kmsg.OffsetDeleteResponse:
		s := "offset-delete" + code(r.ErrorCode)
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				s += fmt.Sprintf(" %s-%d%s", t.Topic, p.Partition, code(p.ErrorCode))
			}
		}
		return s
	}
	return describeAdminAnswer(resp)
}

func describeAdminAnswer(resp any) string {
	switch r := resp.(type) {
	case *kmsg.OffsetFetchResponseGroup:
		s := "fetch" + code(r.ErrorCode)
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				s += fmt.Sprintf(" %s-%d=%d/%q%s", t.Topic, p.Partition, p.Offset, *p.Metadata, code(p.ErrorCode))
			}
		}
		return s
	case *kmsg.DescribeGroupsResponseGroup:
		s := fmt.Sprintf("describe%s %s type=%q protocol=%q", code(r.ErrorCode), r.State, r.ProtocolType, r.Protocol)
		for _, m := range r.Members {
			s += fmt.Sprintf("\n  %s instance=%s client=%s %s metadata=%d %q", m.MemberID, deref(m.InstanceID), m.ClientID, m.ClientHost, len(m.ProtocolMetadata), m.MemberAssignment)
		}
		return s
	case *kmsg.DeleteGroupsResponseGroup:
		return "delete" + code(r.ErrorCode)
	case []kmsg.ListGroupsResponseGroup:
		s := "list"
		for _, g := range r {
			s += fmt.Sprintf("\n  %s %s %s %q", g.Group, g.GroupState, g.GroupType, g.ProtocolType)
		}
		return s
	}
	return describeConsumerAnswer(resp)
}
