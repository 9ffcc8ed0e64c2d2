package main

import "github.com/twmb/franz-go/pkg/kmsg"

func metadataCases(b *book) {
	asked := func(change func(*Case, *side, *kmsg.MetadataRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrMetadataRequest()
			req.Version = s.version
			change(c, s, req)
			return s.try(req)
		}
	}
	named := func(req *kmsg.MetadataRequest, names ...string) {
		for _, name := range names {
			req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: str(name)})
		}
	}
	b.good(kmsg.Metadata, "two topics", asked(func(c *Case, s *side, r *kmsg.MetadataRequest) {
		one, two := s.name(c, "one"), s.name(c, "two")
		s.makeTopic(one, 1)
		s.makeTopic(two, 2)
		named(r, one, two)
	})).unordered("Topics", "Topics.Partitions")
	b.good(kmsg.Metadata, "no topics", asked(func(c *Case, s *side, r *kmsg.MetadataRequest) {
		r.Topics = []kmsg.MetadataRequestTopic{}
	})).from(1)
	b.good(kmsg.Metadata, "authorized operations", asked(func(c *Case, s *side, r *kmsg.MetadataRequest) {
		named(r, s.topic(c, 1))
		r.IncludeClusterAuthorizedOperations, r.IncludeTopicAuthorizedOperations = true, true
	})).from(8)
	b.good(kmsg.Metadata, "by id", asked(func(c *Case, s *side, r *kmsg.MetadataRequest) {
		r.Topics = append(r.Topics, kmsg.MetadataRequestTopic{TopicID: s.ids[s.topic(c, 1)]})
	})).from(12)
	b.bad(kmsg.Metadata, "an unknown id", asked(func(c *Case, s *side, r *kmsg.MetadataRequest) {
		r.Topics = append(r.Topics, kmsg.MetadataRequestTopic{TopicID: [16]byte{1, 2, 3}})
	})).from(12).masks("Topics.TopicID")
	b.bad(kmsg.Metadata, "an unknown topic, not made", asked(func(c *Case, s *side, r *kmsg.MetadataRequest) {
		named(r, s.name(c, "missing"))
	})).from(4)
	b.bad(kmsg.Metadata, "an invalid name", asked(func(c *Case, s *side, r *kmsg.MetadataRequest) { named(r, "no good/name") }))
	b.bad(kmsg.Metadata, "an auto-created topic", asked(func(c *Case, s *side, r *kmsg.MetadataRequest) {
		named(r, s.name(c, "auto"))
		r.AllowAutoTopicCreation = true
	})).masks("Topics.TopicID")

	b.good(kmsg.DescribeTopicPartitions, "two topics", func(c *Case, s *side) (kmsg.Response, error) {
		one, two := s.name(c, "one"), s.name(c, "two")
		s.makeTopic(one, 1)
		s.makeTopic(two, 2)
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: two}, {Topic: one}}
		req.ResponsePartitionLimit = 2000
		return s.try(s.at(req))
	})
	b.good(kmsg.DescribeTopicPartitions, "a page of two", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: s.topic(c, 5)}}
		req.ResponsePartitionLimit = 2
		return s.try(s.at(req))
	})
	b.bad(kmsg.DescribeTopicPartitions, "an unknown topic", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: s.name(c, "missing")}}
		return s.try(s.at(req))
	})
}

func createRequest(s *side, name string, partitions int32, replicas int16, configs ...string) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = s.version, 10000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replicas
	for i := 0; i+1 < len(configs); i += 2 {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: str(configs[i+1])})
	}
	req.Topics = append(req.Topics, t)
	return req
}

func topicCases(b *book) {
	created := func(partitions int32, replicas int16, change func(*kmsg.CreateTopicsRequest), configs ...string) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := createRequest(s, s.name(c, "t"), partitions, replicas, configs...)
			if change != nil {
				change(req)
			}
			return s.try(req)
		}
	}
	create := func(good bool, name string, ask answer) *Case {
		return b.add(kmsg.CreateTopics, name, good, ask).masks("Topics.TopicID").unordered("Topics.Configs", "Topics")
	}
	create(true, "three partitions", created(3, 1, nil))
	create(true, "with configs", created(1, 1, nil, "cleanup.policy", "compact", "retention.ms", "1000"))
	create(true, "the broker's defaults", created(-1, -1, nil)).from(4)
	create(true, "validate only", created(1, 1, func(r *kmsg.CreateTopicsRequest) { r.ValidateOnly = true })).from(1)
	create(true, "an assignment", created(-1, -1, func(r *kmsg.CreateTopicsRequest) {
		r.Topics[0].ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{1}}}
	}))
	create(false, "no partitions", created(0, 1, nil))
	create(false, "too many replicas", created(1, 3, nil))
	create(false, "no replicas", created(1, 0, nil))
	create(false, "an unknown config", created(1, 1, nil, "no.such.config", "1"))
	create(false, "a bad value", created(1, 1, nil, "retention.ms", "soon"))
	create(false, "a bad policy", created(1, 1, nil, "cleanup.policy", "shred"))
	create(false, "an assignment to an unknown broker", created(-1, -1, func(r *kmsg.CreateTopicsRequest) {
		r.Topics[0].ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{7}}}
	}))
	create(false, "an assignment and a count", created(1, 1, func(r *kmsg.CreateTopicsRequest) {
		r.Topics[0].ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{1}}}
	}))
	for _, bad := range []string{"", ".", "..", "a b", "sl/ash"} {
		create(false, "the name "+bad+".", func(c *Case, s *side) (kmsg.Response, error) { return s.try(createRequest(s, bad, 1, 1)) })
	}
	create(false, "twice in one request", created(1, 1, func(r *kmsg.CreateTopicsRequest) { r.Topics = append(r.Topics, r.Topics[0]) }))
	create(false, "a topic that is there", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(createRequest(s, s.topic(c, 1), 1, 1))
	})
	create(false, "a name that collides", func(c *Case, s *side) (kmsg.Response, error) {
		name := s.name(c, "a.b")
		s.makeTopic(name, 1)
		return s.try(createRequest(s, "a_b"+name[3:], 1, 1))
	})

	grown := func(count int32, change func(*kmsg.CreatePartitionsRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.Version, req.TimeoutMillis = s.version, 10000
			t := kmsg.NewCreatePartitionsRequestTopic()
			t.Topic, t.Count = s.topic(c, 2), count
			req.Topics = append(req.Topics, t)
			if change != nil {
				change(req)
			}
			return s.try(req)
		}
	}
	b.good(kmsg.CreatePartitions, "two more", grown(4, nil))
	b.good(kmsg.CreatePartitions, "validate only", grown(4, func(r *kmsg.CreatePartitionsRequest) { r.ValidateOnly = true }))
	b.bad(kmsg.CreatePartitions, "fewer", grown(1, nil))
	b.bad(kmsg.CreatePartitions, "as many", grown(2, nil))
	b.bad(kmsg.CreatePartitions, "an unknown topic", grown(4, func(r *kmsg.CreatePartitionsRequest) { r.Topics[0].Topic = "missing" }))
	b.bad(kmsg.CreatePartitions, "an assignment to an unknown broker", grown(3, func(r *kmsg.CreatePartitionsRequest) {
		r.Topics[0].Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{{Replicas: []int32{9}}}
	}))
	b.bad(kmsg.CreatePartitions, "too short an assignment", grown(4, func(r *kmsg.CreatePartitionsRequest) {
		r.Topics[0].Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{{Replicas: []int32{1}}}
	}))

	b.good(kmsg.DeleteTopics, "by name", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(deleteRequest(s, s.topic(c, 1), [16]byte{}))
	}).unordered("Topics")
	b.good(kmsg.DeleteTopics, "by id", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(deleteRequest(s, "", s.ids[s.topic(c, 1)]))
	}).from(6)
	b.bad(kmsg.DeleteTopics, "an unknown topic", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(deleteRequest(s, s.name(c, "missing"), [16]byte{}))
	})
	b.bad(kmsg.DeleteTopics, "an unknown id", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(deleteRequest(s, "", [16]byte{9}))
	}).from(6)
}

func deleteRequest(s *side, name string, id [16]byte) *kmsg.DeleteTopicsRequest {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis = s.version, 10000
	if name != "" {
		req.TopicNames = []string{name}
		req.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
		return req
	}
	req.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: id}}
	return req
}
