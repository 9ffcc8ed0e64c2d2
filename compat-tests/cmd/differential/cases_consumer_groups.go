package main

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumerBeat is the first heartbeat of a member of a KIP-848 group that subscribes to a topic.
func consumerBeat(group, memberID, topic string) *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.RebalanceTimeoutMillis = group, memberID, 30000
	req.SubscribedTopicNames, req.Topics = []string{topic}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	return req
}

const consumerMember = "AAAAAAAAAAAAAAAAAAAAAA"

// consumer joins a group of its own with one member and waits for its assignment.
func (s *side) consumer(c *Case) (group, topic string, epoch int32) {
	group, topic = s.group(c), s.topic(c, 2)
	req := consumerBeat(group, consumerMember, topic)
	req.Version = 1
	for range 100 {
		resp := must[*kmsg.ConsumerGroupHeartbeatResponse](s, req)
		if resp.Assignment != nil && len(resp.Assignment.Topics) > 0 {
			return group, topic, resp.MemberEpoch
		}
		time.Sleep(20 * time.Millisecond)
		req.MemberEpoch = resp.MemberEpoch
	}
	return group, topic, req.MemberEpoch
}

func consumerGroupCases(b *book) {
	first := func(change func(*Case, *side, *kmsg.ConsumerGroupHeartbeatRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := consumerBeat(s.group(c), consumerMember, s.topic(c, 2))
			if change != nil {
				change(c, s, req)
			}
			return s.try(s.at(req))
		}
	}
	beat := func(good bool, name string, ask answer) *Case {
		// How many epochs a group has gone through depends on when Kafka's broker hears of a topic.
		return b.add(kmsg.ConsumerGroupHeartbeat, name, good, ask).unordered("Assignment.Topics").masks("MemberEpoch")
	}
	// Whether the first answer has partitions depends on the same; what they are is compared once the group is stable.
	firstBeat := func(name string, ask answer) { beat(true, name, ask).masks("Assignment.Topics") }
	type request = *kmsg.ConsumerGroupHeartbeatRequest
	firstBeat("the first member", first(nil))
	firstBeat("range", first(func(_ *Case, _ *side, r request) { r.ServerAssignor = str("range") }))
	firstBeat("a static member", first(func(_ *Case, _ *side, r request) { r.InstanceID = str("i-1") }))
	beat(true, "a pattern", first(func(_ *Case, _ *side, r request) {
		r.SubscribedTopicRegex, r.SubscribedTopicNames = str("^nothing-like-it$"), nil
	})).from(1)
	beat(false, "a bad pattern", first(func(_ *Case, _ *side, r request) {
		r.SubscribedTopicRegex, r.SubscribedTopicNames = str("[unclosed"), nil
	})).from(1)
	beat(false, "no group", first(func(_ *Case, _ *side, r request) { r.Group = "" }))
	beat(false, "an unknown assignor", first(func(_ *Case, _ *side, r request) { r.ServerAssignor = str("mine") }))
	beat(false, "no subscription", first(func(_ *Case, _ *side, r request) { r.SubscribedTopicNames = nil }))
	beat(false, "no rebalance time-out", first(func(_ *Case, _ *side, r request) { r.RebalanceTimeoutMillis = -1 }))
	beat(false, "no member id", first(func(_ *Case, _ *side, r request) { r.MemberID = "" })).from(1)
	beat(false, "partitions with the first beat", first(func(c *Case, s *side, r request) {
		r.Topics = append(r.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: s.ids[s.name(c, "t")], Partitions: []int32{0}})
	}))
	beat(false, "an unknown member", first(func(_ *Case, _ *side, r request) { r.MemberEpoch = 3 }))
	beat(false, "an epoch below -2", first(func(_ *Case, _ *side, r request) { r.MemberEpoch = -7 }))
	beat(false, "a static epoch without an instance", first(func(_ *Case, _ *side, r request) { r.MemberEpoch = -2 }))

	later := func(change func(request)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			group, _, epoch := s.consumer(c)
			req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			req.Group, req.MemberID, req.MemberEpoch = group, consumerMember, epoch
			if change != nil {
				change(req)
			}
			return s.try(s.at(req))
		}
	}
	beat(true, "a later beat", later(nil))
	beat(true, "leaving", later(func(r request) { r.MemberEpoch = -1 }))
	beat(false, "a newer epoch", later(func(r request) { r.MemberEpoch += 5 }))
	beat(false, "another member's instance", later(func(r request) { r.InstanceID = str("nobody"); r.MemberID = "BBBBBBBBBBBBBBBBBBBBBB" }))
	beat(false, "a static instance that is taken", func(c *Case, s *side) (kmsg.Response, error) {
		req := consumerBeat(s.group(c), consumerMember, s.topic(c, 2))
		req.Version, req.InstanceID = 1, str("i-1")
		must[*kmsg.ConsumerGroupHeartbeatResponse](s, req)
		req.MemberID = "BBBBBBBBBBBBBBBBBBBBBB"
		return s.try(s.at(req))
	})

	describe := func(good bool, name string, group func(*Case, *side) string) {
		b.add(kmsg.ConsumerGroupDescribe, name, good, func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrConsumerGroupDescribeRequest()
			req.Groups, req.IncludeAuthorizedOperations = []string{group(c, s)}, true
			return s.try(s.at(req))
		}).masks("Groups.Members.ClientHost", "Groups.Members.ClientID", "Groups.Epoch", "Groups.AssignmentEpoch", "Groups.Members.MemberEpoch")
	}
	describe(true, "a stable group", func(c *Case, s *side) string { group, _, _ := s.consumer(c); return group })
	describe(false, "an unknown group", func(c *Case, s *side) string { return s.group(c) })
	describe(false, "a classic group", func(c *Case, s *side) string { return s.join(s.group(c), "t", nil).group })
	describe(false, "no group", func(c *Case, s *side) string { s.group(c); return "" })

	b.bad(kmsg.DescribeGroups, "a consumer group", func(c *Case, s *side) (kmsg.Response, error) {
		group, _, _ := s.consumer(c)
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{group}
		return s.try(s.at(req))
	}).free("an error from v6 on").masks("Groups.Members.ClientHost")
	b.bad(kmsg.DeleteGroups, "a consumer group with a member", func(c *Case, s *side) (kmsg.Response, error) {
		group, _, _ := s.consumer(c)
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{group}
		return s.try(s.at(req))
	})
	commit := func(good bool, name string, shift int32) {
		b.add(kmsg.OffsetCommit, name, good, func(c *Case, s *side) (kmsg.Response, error) {
			group, topic, epoch := s.consumer(c)
			req := commitRequest(group, topic, 0, 7)
			req.Topics[0].TopicID = s.ids[topic]
			req.MemberID, req.Generation = consumerMember, epoch+shift
			return s.try(s.at(req))
		}).from(9)
	}
	commit(true, "a member of a consumer group", 0)
	commit(false, "a member of a consumer group with a newer epoch", 4)
	b.good(kmsg.OffsetFetch, "a member of a consumer group", func(c *Case, s *side) (kmsg.Response, error) {
		group, topic, epoch := s.consumer(c)
		req := fetchCommitted(group, topic, s.ids[topic])
		req.Groups[0].MemberID, req.Groups[0].MemberEpoch = str(consumerMember), epoch
		return s.try(s.at(req))
	}).from(9)
	b.bad(kmsg.OffsetFetch, "a member of a consumer group with a newer epoch", func(c *Case, s *side) (kmsg.Response, error) {
		group, topic, epoch := s.consumer(c)
		req := fetchCommitted(group, topic, s.ids[topic])
		req.Groups[0].MemberID, req.Groups[0].MemberEpoch = str(consumerMember), epoch+4
		return s.try(s.at(req))
	}).from(9)
}
