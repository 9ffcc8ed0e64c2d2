package main

import "github.com/twmb/franz-go/pkg/kmsg"

func committedCases(b *book) {
	committed := func(change func(*Case, *side, *kmsg.OffsetCommitRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			topic := s.topic(c, 1)
			req := commitRequest(s.group(c), topic, 0, 5)
			req.Topics[0].TopicID = s.ids[topic]
			if change != nil {
				change(c, s, req)
			}
			return s.try(s.at(req))
		}
	}
	b.good(kmsg.OffsetCommit, "without a member", committed(nil)).from(1)
	b.good(kmsg.OffsetCommit, "a member", committed(func(_ *Case, s *side, r *kmsg.OffsetCommitRequest) {
		m := s.join(r.Group, "t", nil)
		r.MemberID, r.Generation = m.id, m.generation
	})).from(1)
	b.bad(kmsg.OffsetCommit, "an old generation", committed(func(_ *Case, s *side, r *kmsg.OffsetCommitRequest) {
		m := s.join(r.Group, "t", nil)
		r.MemberID, r.Generation = m.id, m.generation-1
	})).from(1)
	b.bad(kmsg.OffsetCommit, "an unknown member", committed(func(_ *Case, s *side, r *kmsg.OffsetCommitRequest) {
		m := s.join(r.Group, "t", nil)
		r.MemberID, r.Generation = "nobody", m.generation
	})).from(1)
	b.bad(kmsg.OffsetCommit, "a generation of a group that is not there", committed(func(_ *Case, _ *side, r *kmsg.OffsetCommitRequest) {
		r.MemberID, r.Generation = "nobody", 3
	})).from(1)
	b.bad(kmsg.OffsetCommit, "no group", committed(func(_ *Case, _ *side, r *kmsg.OffsetCommitRequest) { r.Group = "" })).
		free("what Kafka says depends on the version").from(1)
	b.bad(kmsg.OffsetCommit, "an unknown topic", committed(func(c *Case, s *side, r *kmsg.OffsetCommitRequest) {
		r.Topics[0].Topic, r.Topics[0].TopicID = s.name(c, "missing"), [16]byte{7}
	})).masks("Topics.TopicID").from(1)
	b.bad(kmsg.OffsetCommit, "an unknown partition", committed(func(_ *Case, _ *side, r *kmsg.OffsetCommitRequest) {
		r.Topics[0].Partitions[0].Partition = 9
	})).from(1)
	b.bad(kmsg.OffsetCommit, "a note that is too long", committed(func(_ *Case, _ *side, r *kmsg.OffsetCommitRequest) {
		r.Topics[0].Partitions[0].Metadata = str(string(make([]byte, 5000)))
	})).from(1)

	fetched := func(change func(*Case, *side, *kmsg.OffsetFetchRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			topic, group := s.topic(c, 2), s.group(c)
			s.commit(group, topic, 5)
			req := fetchCommitted(group, topic, s.ids[topic])
			if change != nil {
				change(c, s, req)
			}
			return s.try(s.at(req))
		}
	}
	// Version 0 kept offsets in ZooKeeper: no Kafka that is left judges it.
	fetch := func(good bool, name string, change func(*Case, *side, *kmsg.OffsetFetchRequest)) *Case {
		return b.add(kmsg.OffsetFetch, name, good, fetched(change)).
			unordered("Topics", "Topics.Partitions", "Groups.Topics", "Groups.Topics.Partitions").from(1)
	}
	fetch(true, "one committed and one not", nil)
	fetch(true, "all", func(_ *Case, _ *side, r *kmsg.OffsetFetchRequest) { r.Topics, r.Groups[0].Topics = nil, nil }).from(2)
	fetch(true, "an unknown group", func(_ *Case, s *side, r *kmsg.OffsetFetchRequest) {
		r.Group += "-none"
		r.Groups[0].Group = r.Group
		s.coordinator(0, r.Group)
	})
	fetch(false, "an unknown topic", func(c *Case, s *side, r *kmsg.OffsetFetchRequest) {
		r.Topics[0].Topic, r.Groups[0].Topics[0].Topic, r.Groups[0].Topics[0].TopicID = "missing", "missing", [16]byte{7}
	}).free("an error from v10 on, an offset of -1 before").masks("Groups.Topics.TopicID")
	fetch(false, "require stable with a pending transaction", func(c *Case, s *side, r *kmsg.OffsetFetchRequest) {
		p := s.transactionalProducer(c)
		s.addOffsets(p, r.Group)
		s.commitInTransaction(p, r.Group, r.Topics[0].Topic)
		r.RequireStable = true
	}).from(7)

	b.good(kmsg.OffsetDelete, "a committed offset", func(c *Case, s *side) (kmsg.Response, error) {
		topic, group := s.topic(c, 1), s.group(c)
		s.commit(group, topic, 5)
		return s.try(s.at(deleteCommitted(group, topic)))
	})
	b.bad(kmsg.OffsetDelete, "a topic that is subscribed to", func(c *Case, s *side) (kmsg.Response, error) {
		topic, group := s.topic(c, 1), s.group(c)
		s.commit(group, topic, 5)
		s.join(group, topic, nil)
		return s.try(s.at(deleteCommitted(group, topic)))
	})
	b.bad(kmsg.OffsetDelete, "an unknown group", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(s.at(deleteCommitted(s.group(c), s.topic(c, 1))))
	})
	b.bad(kmsg.OffsetDelete, "an unknown topic", func(c *Case, s *side) (kmsg.Response, error) {
		group := s.group(c)
		s.commit(group, s.topic(c, 1), 5)
		return s.try(s.at(deleteCommitted(group, "missing")))
	})
}

func fetchCommitted(group, topic string, id [16]byte) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0, 1}}}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, TopicID: id, Partitions: []int32{0, 1}}}
	req.Groups = append(req.Groups, g)
	return req
}

func deleteCommitted(group, topic string) *kmsg.OffsetDeleteRequest {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic = topic
	t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{})
	req.Topics = append(req.Topics, t)
	return req
}
