package main

import "github.com/twmb/franz-go/pkg/kmsg"

func clusterCases(b *book) {
	b.good(kmsg.ApiVersions, "asked", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion, req.NodeID = "differential", "1", -1
		return s.try(s.at(req))
	}).masks("ApiKeys", "FinalizedFeaturesEpoch", "SupportedFeatures", "FinalizedFeatures", "ZkMigrationReady")
	b.bad(kmsg.ApiVersions, "an invalid name", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion, req.NodeID = "not a name!", "1", -1
		return s.try(s.at(req))
	}).from(3).masks("ApiKeys", "FinalizedFeaturesEpoch", "SupportedFeatures", "FinalizedFeatures")

	b.good(kmsg.DescribeCluster, "asked", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.IncludeClusterAuthorizedOperations, req.EndpointType = true, 1
		return s.try(s.at(req))
	})
	b.bad(kmsg.DescribeCluster, "the controllers' endpoint", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.EndpointType = 2
		return s.try(s.at(req))
	}).from(1)
	b.bad(kmsg.DescribeCluster, "an unknown endpoint", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.EndpointType = 9
		return s.try(s.at(req))
	}).from(1)

	b.good(kmsg.DescribeLogDirs, "one topic", func(c *Case, s *side) (kmsg.Response, error) {
		topic := s.topic(c, 2)
		s.three(topic)
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: topic, Partitions: []int32{0, 1}}}
		return s.try(s.at(req))
	}).masks("Dirs.Dir", "Dirs.TotalBytes", "Dirs.UsableBytes").unordered("Dirs.Topics.Partitions", "Dirs.Topics")
	b.bad(kmsg.DescribeLogDirs, "an unknown topic", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: s.name(c, "missing"), Partitions: []int32{0}}}
		return s.try(s.at(req))
	}).masks("Dirs.Dir", "Dirs.TotalBytes", "Dirs.UsableBytes").free("Kafka leaves it out")
	moved := func(topic func(*Case, *side) string) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrAlterReplicaLogDirsRequest()
			req.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: "/no/such/folder",
				Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: topic(c, s), Partitions: []int32{0}}}}}
			return s.try(s.at(req))
		}
	}
	b.bad(kmsg.AlterReplicaLogDirs, "an unknown folder", moved(func(c *Case, s *side) string { return s.topic(c, 1) }))
	b.bad(kmsg.AlterReplicaLogDirs, "an unknown topic", moved(func(c *Case, s *side) string { return s.name(c, "missing") }))
	b.good(kmsg.AlterReplicaLogDirs, "nothing", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(s.at(kmsg.NewPtrAlterReplicaLogDirsRequest()))
	})

	quorumCases(b)
	leaderCases(b)
}

func quorumCases(b *book) {
	quorum := func(topic string, partition int32) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrDescribeQuorumRequest()
			req.Topics = []kmsg.DescribeQuorumRequestTopic{{Topic: topic, Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{Partition: partition}}}}
			return s.try(s.at(req))
		}
	}
	moving := []string{
		"Topics.Partitions.HighWatermark", "LogEndOffset", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Topics.Partitions.LeaderEpoch",
		"Nodes.Listeners",
	}
	b.good(kmsg.DescribeQuorum, "the metadata", quorum("__cluster_metadata", 0)).masks(moving...)
	b.bad(kmsg.DescribeQuorum, "another topic", quorum("nothing", 0)).masks(moving...)
	b.bad(kmsg.DescribeQuorum, "another partition", quorum("__cluster_metadata", 3)).masks(moving...)
	voter := func(id int32) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrRemoveRaftVoterRequest()
			req.VoterID, req.VoterDirectoryID = id, [16]byte{1}
			return s.try(s.at(req))
		}
	}
	b.bad(kmsg.RemoveRaftVoter, "an unknown voter", voter(99))
	b.bad(kmsg.AddRaftVoter, "a voter", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrAddRaftVoterRequest()
		req.VoterID, req.VoterDirectoryID, req.TimeoutMillis = 99, [16]byte{1}, 1000
		req.Listeners = []kmsg.AddRaftVoterRequestListener{{Name: "CONTROLLER", Host: "127.0.0.1", Port: 1}}
		return s.try(s.at(req))
	})
	b.bad(kmsg.UnregisterBroker, "an unknown broker", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrUnregisterBrokerRequest()
		req.BrokerID = 99
		return s.try(s.at(req))
	})
	b.bad(kmsg.UnregisterController, "an unknown controller", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrUnregisterControllerRequest()
		req.ControllerID = 99
		return s.try(s.at(req))
	})

	updated := func(good bool, name string, feature string, level int16, kind int8, validate bool) *Case {
		return b.add(kmsg.UpdateFeatures, name, good, func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrUpdateFeaturesRequest()
			req.TimeoutMillis, req.ValidateOnly = 5000, validate
			f := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
			f.Feature, f.MaxVersionLevel, f.UpgradeType, f.AllowDowngrade = feature, level, kind, kind > 1
			req.FeatureUpdates = append(req.FeatureUpdates, f)
			return s.try(s.at(req))
		})
	}
	updated(true, "the level that is there", "transaction.version", 2, 1, false)
	updated(true, "validate only", "group.version", 0, 2, true).from(1)
	updated(false, "an unknown feature", "no.such.feature", 1, 1, false)
	updated(false, "too new a level", "transaction.version", 99, 1, false)
	updated(false, "a downgrade that is not allowed", "transaction.version", 1, 1, false)
	updated(false, "a negative level", "transaction.version", -1, 1, false)
	updated(false, "an unknown kind of change", "transaction.version", 2, 9, false).from(1)
}

func leaderCases(b *book) {
	elected := func(kind int8, topic func(*Case, *side) string, partition int32) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrElectLeadersRequest()
			req.ElectionType, req.TimeoutMillis = kind, 5000
			req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: topic(c, s), Partitions: []int32{partition}}}
			return s.try(s.at(req))
		}
	}
	mine := func(c *Case, s *side) string { return s.topic(c, 1) }
	b.bad(kmsg.ElectLeaders, "a preferred leader that leads", elected(0, mine, 0)).unordered("Topics")
	b.bad(kmsg.ElectLeaders, "an unclean election where there is a leader", elected(1, mine, 0)).from(1)
	b.bad(kmsg.ElectLeaders, "an unknown kind", elected(9, mine, 0)).from(1)
	b.bad(kmsg.ElectLeaders, "an unknown topic", elected(0, func(c *Case, s *side) string { return s.name(c, "missing") }, 0))
	b.bad(kmsg.ElectLeaders, "an unknown partition", elected(0, mine, 9))
	b.good(kmsg.ElectLeaders, "all", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrElectLeadersRequest()
		req.TimeoutMillis = 5000
		return s.try(s.at(req))
	}).masks("Topics")

	reassigned := func(change func(*kmsg.AlterPartitionAssignmentsRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
			req.TimeoutMillis = 5000
			t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			t.Topic = s.topic(c, 1)
			t.Partitions = []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Replicas: []int32{1}}}
			req.Topics = append(req.Topics, t)
			change(req)
			return s.try(s.at(req))
		}
	}
	type request = *kmsg.AlterPartitionAssignmentsRequest
	b.good(kmsg.AlterPartitionAssignments, "to where it is", reassigned(func(request) {}))
	b.bad(kmsg.AlterPartitionAssignments, "to an unknown broker", reassigned(func(r request) { r.Topics[0].Partitions[0].Replicas = []int32{9} }))
	b.bad(kmsg.AlterPartitionAssignments, "to nowhere", reassigned(func(r request) { r.Topics[0].Partitions[0].Replicas = []int32{} }))
	b.bad(kmsg.AlterPartitionAssignments, "twice to one broker", reassigned(func(r request) { r.Topics[0].Partitions[0].Replicas = []int32{1, 1} }))
	b.bad(kmsg.AlterPartitionAssignments, "cancel what is not under way", reassigned(func(r request) { r.Topics[0].Partitions[0].Replicas = nil }))
	b.bad(kmsg.AlterPartitionAssignments, "an unknown topic", reassigned(func(r request) { r.Topics[0].Topic = "missing" }))
	b.bad(kmsg.AlterPartitionAssignments, "an unknown partition", reassigned(func(r request) { r.Topics[0].Partitions[0].Partition = 9 }))
	listed := func(change func(*kmsg.ListPartitionReassignmentsRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrListPartitionReassignmentsRequest()
			req.TimeoutMillis = 5000
			change(req)
			return s.try(s.at(req))
		}
	}
	b.good(kmsg.ListPartitionReassignments, "all", listed(func(r *kmsg.ListPartitionReassignmentsRequest) {}))
	b.good(kmsg.ListPartitionReassignments, "an unknown topic", listed(func(r *kmsg.ListPartitionReassignmentsRequest) {
		r.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: "missing", Partitions: []int32{0}}}
	}))
}
