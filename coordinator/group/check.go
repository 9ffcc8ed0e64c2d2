package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// refusedAlone tells whether a request is wrong by itself, whoever coordinates its
// group: that is said of it also where nobody does. Offsets are no such request,
// as in Kafka.
func refusedAlone(cfg *Config, e Event) bool {
	switch r := e.Request.(type) {
	case *kmsg.JoinGroupRequest:
		return checkJoin(cfg, r) != nil
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return checkHeartbeat(cfg, e.Client, r) != nil
	case *kmsg.SyncGroupRequest:
		return r.Group == ""
	case *kmsg.HeartbeatRequest:
		return r.Group == ""
	case *kmsg.LeaveGroupRequest:
		return r.Group == ""
	case *kmsg.OffsetDeleteRequest:
		return r.Group == ""
	case DescribeConsumerGroup:
		return r.Group == ""
	}
	return false
}

func checkJoin(cfg *Config, r *kmsg.JoinGroupRequest) *kerr.Error {
	switch {
	case r.Group == "" || tooLong(r.Group):
		return kerr.InvalidGroupID
	case r.SessionTimeoutMillis < cfg.MinSessionTimeoutMs || r.SessionTimeoutMillis > cfg.MaxSessionTimeoutMs:
		return kerr.InvalidSessionTimeout
	}
	return nil
}

// tooLongToJoin tells whether a member has a string that no record can hold.
func tooLongToJoin(who Client, r *kmsg.JoinGroupRequest) bool {
	return tooLong(who.ID) || tooLong(r.ProtocolType) || r.InstanceID != nil && tooLong(*r.InstanceID) ||
		slices.ContainsFunc(r.Protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return tooLong(p.Name) })
}
