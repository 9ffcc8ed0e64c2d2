package main

import "github.com/twmb/franz-go/pkg/kmsg"

func groupCases(b *book) {
	coordinatorCases(b)
	joinCases(b)
	memberCases(b)
	groupAdminCases(b)
}

func coordinatorCases(b *book) {
	found := func(kind int8, key func(*Case, *side) string) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorType, req.CoordinatorKey = kind, key(c, s)
			req.CoordinatorKeys = []string{req.CoordinatorKey}
			return s.try(s.at(req))
		}
	}
	group := func(c *Case, s *side) string { return s.group(c) }
	b.good(kmsg.FindCoordinator, "a group's", found(0, group)).masks("NodeID")
	b.good(kmsg.FindCoordinator, "a transaction's", found(1, func(c *Case, s *side) string {
		s.coordinator(1, s.name(c, "x"))
		return s.name(c, "x")
	})).from(1)
	b.bad(kmsg.FindCoordinator, "an unknown kind", found(9, group)).from(1)
	b.bad(kmsg.FindCoordinator, "an empty transactional id", found(1, func(*Case, *side) string { return "" })).from(1).
		free("Kafka looks at no key")
	b.bad(kmsg.FindCoordinator, "a share key that is none", found(2, func(*Case, *side) string { return "x" })).from(6)
}

func joinCases(b *book) {
	joined := func(change func(*Case, *side, *kmsg.JoinGroupRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := joinRequest(s.group(c), "t", nil)
			if change != nil {
				change(c, s, req)
			}
			return s.try(s.at(req))
		}
	}
	b.good(kmsg.JoinGroup, "the first member", joined(nil)).to(3).masks("Members.MemberID")
	b.bad(kmsg.JoinGroup, "a member without an id", joined(nil)).from(4)
	b.good(kmsg.JoinGroup, "the first member, with its id", func(c *Case, s *side) (kmsg.Response, error) {
		req := joinRequest(s.group(c), "t", nil)
		req.MemberID = must[*kmsg.JoinGroupResponse](s, s.at(req)).MemberID
		return s.try(req)
	}).from(4)
	b.good(kmsg.JoinGroup, "a static member", joined(func(_ *Case, _ *side, r *kmsg.JoinGroupRequest) { r.InstanceID = str("i-1") })).from(5)
	b.bad(kmsg.JoinGroup, "no group", joined(func(_ *Case, _ *side, r *kmsg.JoinGroupRequest) { r.Group = "" }))
	b.bad(kmsg.JoinGroup, "too short a session", joined(func(_ *Case, _ *side, r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 1 }))
	b.bad(kmsg.JoinGroup, "an unknown member", joined(func(_ *Case, _ *side, r *kmsg.JoinGroupRequest) { r.MemberID = "nobody" }))
	b.bad(kmsg.JoinGroup, "no protocols", joined(func(_ *Case, _ *side, r *kmsg.JoinGroupRequest) { r.Protocols = nil }))
	b.bad(kmsg.JoinGroup, "no protocol type", joined(func(_ *Case, _ *side, r *kmsg.JoinGroupRequest) { r.ProtocolType = "" }))
	b.bad(kmsg.JoinGroup, "another protocol type", joined(func(c *Case, s *side, r *kmsg.JoinGroupRequest) {
		s.join(r.Group, "t", nil)
		r.ProtocolType = "connect"
	}))
	b.bad(kmsg.JoinGroup, "no common protocol", joined(func(c *Case, s *side, r *kmsg.JoinGroupRequest) {
		s.join(r.Group, "t", nil)
		r.Protocols[0].Name = "mine"
	}))
	b.bad(kmsg.JoinGroup, "a fenced static member", joined(func(c *Case, s *side, r *kmsg.JoinGroupRequest) {
		s.join(r.Group, "t", str("i-1"))
		r.InstanceID, r.MemberID = str("i-1"), "somebody-else"
	})).from(5)
}

// memberCases are those of a member of a stable group.
func memberCases(b *book) {
	stable := func(ask func(s *side, m member) kmsg.Request) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			return s.try(s.at(ask(s, s.join(s.group(c), "t", nil))))
		}
	}
	b.good(kmsg.SyncGroup, "again", stable(func(_ *side, m member) kmsg.Request { return syncRequest(m) }))
	b.bad(kmsg.SyncGroup, "an old generation", stable(func(_ *side, m member) kmsg.Request { m.generation--; return syncRequest(m) }))
	b.bad(kmsg.SyncGroup, "an unknown member", stable(func(_ *side, m member) kmsg.Request { m.id = "nobody"; return syncRequest(m) }))
	b.bad(kmsg.SyncGroup, "another protocol", stable(func(_ *side, m member) kmsg.Request {
		req := syncRequest(m)
		req.Protocol = str("mine")
		return req
	})).from(5)
	b.bad(kmsg.SyncGroup, "an unknown group", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(s.at(syncRequest(member{group: s.group(c), id: "nobody", generation: 1})))
	})

	beat := func(m member) *kmsg.HeartbeatRequest {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
		return req
	}
	b.good(kmsg.Heartbeat, "a member", stable(func(_ *side, m member) kmsg.Request { return beat(m) }))
	b.bad(kmsg.Heartbeat, "an old generation", stable(func(_ *side, m member) kmsg.Request { m.generation--; return beat(m) }))
	b.bad(kmsg.Heartbeat, "an unknown member", stable(func(_ *side, m member) kmsg.Request { m.id = "nobody"; return beat(m) }))
	b.bad(kmsg.Heartbeat, "an unknown group", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(s.at(beat(member{group: s.group(c), id: "nobody", generation: 1})))
	})
	b.bad(kmsg.Heartbeat, "no group", func(c *Case, s *side) (kmsg.Response, error) {
		s.group(c)
		return s.try(s.at(beat(member{id: "nobody", generation: 1})))
	})

	leave := func(m member) *kmsg.LeaveGroupRequest {
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group, req.MemberID = m.group, m.id
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = m.id
		req.Members = append(req.Members, one)
		return req
	}
	b.good(kmsg.LeaveGroup, "a member", stable(func(_ *side, m member) kmsg.Request { return leave(m) }))
	b.bad(kmsg.LeaveGroup, "an unknown member", stable(func(_ *side, m member) kmsg.Request { m.id = "nobody"; return leave(m) }))
	b.bad(kmsg.LeaveGroup, "an unknown group", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(s.at(leave(member{group: s.group(c), id: "nobody"})))
	})
	b.good(kmsg.LeaveGroup, "a static member, by its instance", func(c *Case, s *side) (kmsg.Response, error) {
		group := s.group(c)
		s.join(group, "t", str("i-1"))
		req := leave(member{group: group})
		req.Members[0].InstanceID = str("i-1")
		return s.try(s.at(req))
	}).from(3)
	b.bad(kmsg.LeaveGroup, "an unknown instance", func(c *Case, s *side) (kmsg.Response, error) {
		group := s.group(c)
		s.join(group, "t", str("i-1"))
		req := leave(member{group: group})
		req.Members[0].InstanceID = str("i-2")
		return s.try(s.at(req))
	}).from(3)
}

func groupAdminCases(b *book) {
	described := func(good bool, name string, group func(*Case, *side) string) *Case {
		return b.add(kmsg.DescribeGroups, name, good, func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrDescribeGroupsRequest()
			req.Groups, req.IncludeAuthorizedOperations = []string{group(c, s)}, true
			return s.try(s.at(req))
		}).masks("Groups.Members.ClientHost")
	}
	described(true, "a stable group", func(c *Case, s *side) string { return s.join(s.group(c), "t", nil).group })
	described(true, "an empty group", func(c *Case, s *side) string {
		group := s.group(c)
		s.commit(group, s.topic(c, 1), 1)
		return group
	})
	described(true, "an unknown group", func(c *Case, s *side) string { return s.group(c) }).to(5)
	described(false, "an unknown group, v6", func(c *Case, s *side) string { return s.group(c) }).from(6)
	described(false, "no group", func(c *Case, s *side) string { s.group(c); return "" }).free("a group that is dead, before v6")

	b.good(kmsg.ListGroups, "all", func(c *Case, s *side) (kmsg.Response, error) {
		s.join(s.group(c), "t", nil)
		return s.try(s.at(kmsg.NewPtrListGroupsRequest()))
	}).masks("Groups")
	b.good(kmsg.ListGroups, "a state that nobody is in", func(c *Case, s *side) (kmsg.Response, error) {
		s.group(c)
		req := kmsg.NewPtrListGroupsRequest()
		req.StatesFilter = []string{"PreparingRebalance"}
		return s.try(s.at(req))
	}).from(4)
	b.bad(kmsg.ListGroups, "an unknown kind", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrListGroupsRequest()
		req.TypesFilter = []string{"no-such-kind"}
		return s.try(s.at(req))
	}).from(5).free("Kafka answers an empty list")

	deleted := func(good bool, name string, group func(*Case, *side) string) *Case {
		return b.add(kmsg.DeleteGroups, name, good, func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrDeleteGroupsRequest()
			req.Groups = []string{group(c, s)}
			return s.try(s.at(req))
		})
	}
	deleted(true, "an empty group", func(c *Case, s *side) string {
		group := s.group(c)
		s.commit(group, s.topic(c, 1), 1)
		return group
	})
	deleted(false, "a stable group", func(c *Case, s *side) string { return s.join(s.group(c), "t", nil).group })
	deleted(false, "an unknown group", func(c *Case, s *side) string { return s.group(c) })
	deleted(false, "no group", func(c *Case, s *side) string { s.group(c); return "" }).free("Kafka 3.9 takes it")
}
