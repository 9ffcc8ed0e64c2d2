package legacy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestListOffsets(t *testing.T) {
	compare(t, nil, func(s *side) (out []string) {
		asked := func(what string) {
			for version := int16(0); version <= 3; version++ {
				for _, timestamp := range []int64{-1, -2, -3, -9, 0, past, past + 1, past + 2, 1 << 60} {
					if version == 0 && timestamp >= 0 {
						continue // these are told below
					}
					for _, n := range []int32{0, 1, 2, 5} {
						row := s.listOffsets(version, timestamp, n)
						out = append(out, fmt.Sprintf("%s v%d time %d, at most %d: error %d, %d %d %v", what, version, timestamp, n, row.ErrorCode, row.Timestamp, row.Offset, row.OldStyleOffsets))
					}
				}
			}
		}
		asked("empty")
		s.produce(2, -1, 0, set(msg{magic: 1, timestamp: past, value: text("a")}, msg{magic: 1, timestamp: past + 1, value: text("b")}, msg{magic: 1, timestamp: past, value: text("c")}))
		asked("three")
		return out
	})
}

// TestListOffsetsByFileTime asks in the first version, which knows when files were written and nothing of the records.
func TestListOffsetsByFileTime(t *testing.T) {
	compare(t, map[string]string{"segment.bytes": "1048576"}, func(s *side) (out []string) {
		for range 3 { // each in a segment of its own
			if row := s.produce(2, -1, 0, set(msg{value: make([]byte, 800_000)})); row.ErrorCode != 0 {
				s.t.Fatalf("%s: produce: error %d", s.name, row.ErrorCode)
			}
		}
		for _, timestamp := range []int64{-1, -2, 0, past, 1 << 60} {
			for _, n := range []int32{0, 1, 2, 5} {
				row := s.listOffsets(0, timestamp, n)
				out = append(out, fmt.Sprintf("time %s, at most %d: error %d, %v", stamp(timestamp), n, row.ErrorCode, row.OldStyleOffsets))
			}
		}
		return out
	})
}

func TestMetadata(t *testing.T) {
	compare(t, nil, func(s *side) (out []string) {
		for version := int16(0); version <= 8; version++ {
			for _, names := range [][]string{{s.topic}, {}, {"no such topic!"}, {s.topic, s.topic}} {
				req := kmsg.NewPtrMetadataRequest()
				req.Topics = []kmsg.MetadataRequestTopic{}
				for _, n := range names {
					rt := kmsg.NewMetadataRequestTopic()
					rt.Topic = &n
					req.Topics = append(req.Topics, rt)
				}
				resp := ask[*kmsg.MetadataResponse](s, version, req)
				line := fmt.Sprintf("v%d %v: %d brokers, controller %d, cluster %v:", version, len(names), len(resp.Brokers), resp.ControllerID, resp.ClusterID != nil)
				for _, rt := range resp.Topics {
					if len(names) == 0 && *rt.Topic != s.topic {
						continue
					}
					line += fmt.Sprintf(" %s error %d internal %v", *rt.Topic, rt.ErrorCode, rt.IsInternal)
					slices.SortFunc(rt.Partitions, func(a, b kmsg.MetadataResponseTopicPartition) int { return int(a.Partition - b.Partition) })
					for _, p := range rt.Partitions {
						line += fmt.Sprintf(" {%d: error %d leader %d/%d replicas %v isr %v offline %v}", p.Partition, p.ErrorCode, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR, p.OfflineReplicas)
					}
				}
				out = append(out, line)
			}
		}
		return out
	})
}

// group walks a member through its life in one version of each API.
func (s *side) group(join, sync, heartbeat, commit, fetch, leave, describe int16) (out []string) {
	s.t.Helper()
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	group := s.topic
	s.findCoordinator(group)
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{s.topic}
	j := kmsg.NewPtrJoinGroupRequest()
	j.Group, j.SessionTimeoutMillis, j.RebalanceTimeoutMillis, j.ProtocolType = group, 10_000, 10_000, "consumer"
	j.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription.AppendTo(nil)}}
	joined := ask[*kmsg.JoinGroupResponse](s, join, j)
	if joined.ErrorCode == 79 { // MEMBER_ID_REQUIRED
		j.MemberID = joined.MemberID
		joined = ask[*kmsg.JoinGroupResponse](s, join, j)
	}
	say("join: error %d generation %d leads %v protocol %v, %d members", joined.ErrorCode, joined.Generation, joined.LeaderID == joined.MemberID, deref(joined.Protocol), len(joined.Members))
	y := kmsg.NewPtrSyncGroupRequest()
	y.Group, y.Generation, y.MemberID = group, joined.Generation, joined.MemberID
	y.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: text("assignment")}}
	synced := ask[*kmsg.SyncGroupResponse](s, sync, y)
	say("sync: error %d %q", synced.ErrorCode, synced.MemberAssignment)
	beat := func(what string, generation int32, member string) {
		h := kmsg.NewPtrHeartbeatRequest()
		h.Group, h.Generation, h.MemberID = group, generation, member
		say("heartbeat %s: error %d", what, ask[*kmsg.HeartbeatResponse](s, heartbeat, h).ErrorCode)
	}
	beat("good", joined.Generation, joined.MemberID)
	beat("of another generation", joined.Generation+1, joined.MemberID)
	beat("of a stranger", joined.Generation, "stranger")
	commits := func(what string, generation int32, member, topic string, partition int32) {
		say("commit %s: error %d", what, s.commit(commit, group, generation, member, topic, partition, 5))
	}
	commits("good", joined.Generation, joined.MemberID, s.topic, 0)
	commits("of another generation", joined.Generation+1, joined.MemberID, s.topic, 0)
	commits("of a stranger", joined.Generation, "stranger", s.topic, 0)
	commits("for no partition", joined.Generation, joined.MemberID, s.topic, 7)
	commits("for no topic", joined.Generation, joined.MemberID, "no-such-topic", 0)
	out = append(out, s.committed(fetch, group)...)
	out = append(out, s.describe(describe, group))
	l := kmsg.NewPtrLeaveGroupRequest()
	l.Group, l.MemberID = group, joined.MemberID
	if leave >= 3 {
		l.Members = []kmsg.LeaveGroupRequestMember{{MemberID: joined.MemberID}}
	}
	say("leave: error %d", ask[*kmsg.LeaveGroupResponse](s, leave, l).ErrorCode)
	beat("after leaving", joined.Generation, joined.MemberID)
	out = append(out, s.describe(describe, group))
	commits("without a group", -1, "", s.topic, 1)
	return append(out, s.committed(fetch, group)...)
}

func deref(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// findCoordinator asks until the coordinator serves.
func (s *side) findCoordinator(group string) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey = group
		found := ask[*kmsg.FindCoordinatorResponse](s, 0, req)
		f := kmsg.NewPtrOffsetFetchRequest()
		f.Group = group
		f.Topics = []kmsg.OffsetFetchRequestTopic{}
		if found.ErrorCode == 0 && ask[*kmsg.OffsetFetchResponse](s, 2, f).ErrorCode == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: no coordinator: error %d", s.name, found.ErrorCode)
		}
	}
}

func (s *side) commit(version int16, group string, generation int32, member, topic string, partition int32, offset int64) int16 {
	s.t.Helper()
	c := kmsg.NewPtrOffsetCommitRequest()
	c.Group, c.Generation, c.MemberID, c.RetentionTimeMillis = group, generation, member, -1
	ct := kmsg.NewOffsetCommitRequestTopic()
	ct.Topic = topic
	cp := kmsg.NewOffsetCommitRequestTopicPartition()
	cp.Partition, cp.Offset, cp.Timestamp, cp.Metadata = partition, offset, -1, kmsg.StringPtr("note")
	ct.Partitions = append(ct.Partitions, cp)
	c.Topics = append(c.Topics, ct)
	return ask[*kmsg.OffsetCommitResponse](s, version, c).Topics[0].Partitions[0].ErrorCode
}

func (s *side) committed(version int16, group string) (out []string) {
	s.t.Helper()
	f := kmsg.NewPtrOffsetFetchRequest()
	f.Group = group
	for _, topic := range []string{s.topic, "no-such-topic"} {
		f.Topics = append(f.Topics, kmsg.OffsetFetchRequestTopic{Topic: topic, Partitions: []int32{0, 1, 7}})
	}
	resp := ask[*kmsg.OffsetFetchResponse](s, version, f)
	for _, rt := range resp.Topics {
		for _, p := range rt.Partitions {
			out = append(out, fmt.Sprintf("committed of %s-%d: error %d/%d offset %d %q", rt.Topic, p.Partition, resp.ErrorCode, p.ErrorCode, p.Offset, deref(p.Metadata)))
		}
	}
	slices.Sort(out)
	return out
}

func (s *side) describe(version int16, group string) string {
	s.t.Helper()
	d := kmsg.NewPtrDescribeGroupsRequest()
	d.Groups = []string{group}
	g := ask[*kmsg.DescribeGroupsResponse](s, version, d).Groups[0]
	line := fmt.Sprintf("described: error %d %q %q %q", g.ErrorCode, g.State, g.ProtocolType, g.Protocol)
	for _, m := range g.Members {
		line += fmt.Sprintf(" {%s from %s: %q %q}", m.ClientID, m.ClientHost, m.ProtocolMetadata, m.MemberAssignment)
	}
	return line
}

func TestGroups(t *testing.T) {
	for name, v := range map[string][7]int16{
		"0.9":  {0, 0, 0, 2, 1, 0, 0},
		"0.8":  {0, 0, 0, 1, 1, 0, 0},
		"0.10": {1, 0, 0, 2, 2, 0, 0},
		"0.11": {2, 1, 1, 3, 3, 1, 1},
		"2.0":  {3, 2, 2, 4, 4, 2, 2},
		"2.1":  {4, 2, 2, 5, 4, 2, 2},
		"2.3":  {5, 3, 3, 7, 5, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, nil, func(s *side) []string { return s.group(v[0], v[1], v[2], v[3], v[4], v[5], v[6]) })
		})
	}
}

// TestAdmin asks the APIs that change topics and configurations in their first versions.
func TestAdmin(t *testing.T) {
	for version := int16(0); version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			compare(t, nil, func(s *side) []string { return s.admin(version) })
		})
	}
}

func (s *side) admin(version int16) (out []string) {
	s.t.Helper()
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	other := s.topic + "-other"
	create := func(name string, partitions int32, replication int16, config string, validate bool) {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.TimeoutMillis, req.ValidateOnly = 10_000, validate
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, partitions, replication
		if config != "" {
			rt.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: config, Value: kmsg.StringPtr("1000000")}}
		}
		req.Topics = append(req.Topics, rt)
		say("create %d %d %q %v: error %d", partitions, replication, config, validate, ask[*kmsg.CreateTopicsResponse](s, version, req).Topics[0].ErrorCode)
	}
	create(s.topic, 1, 1, "", false)
	create("bad name", 1, 1, "", false)
	create(other, 1, 5, "", false)
	create(other, 0, 1, "", false)
	create(other, -1, 1, "", false)
	create(other, 1, 1, "no.such.key", false)
	if version > 0 {
		create(other, 1, 1, "retention.ms", true)
	}
	create(other, 1, 1, "retention.ms", false)
	create(other, 1, 1, "retention.ms", false)
	say("%s", s.describeConfigs(min(version, 1), other))
	p := kmsg.NewPtrCreatePartitionsRequest()
	p.TimeoutMillis = 10_000
	p.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: other, Count: 3}}
	say("partitions: error %d", ask[*kmsg.CreatePartitionsResponse](s, min(version, 1), p).Topics[0].ErrorCode)
	say("partitions again: error %d", ask[*kmsg.CreatePartitionsResponse](s, min(version, 1), p).Topics[0].ErrorCode)
	a := kmsg.NewPtrAlterConfigsRequest()
	a.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: 2, ResourceName: other, Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "segment.ms", Value: kmsg.StringPtr("2000000")}}}}
	say("alter: error %d", ask[*kmsg.AlterConfigsResponse](s, min(version, 1), a).Resources[0].ErrorCode)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if now := s.describeConfigs(min(version, 1), other); now != out[len(out)-4] {
			say("%s", now)
			break
		}
	}
	s.produce(2, -1, 0, set(msg{value: text("a")}, msg{value: text("b")}))
	deleteTo := func(offset int64) {
		d := kmsg.NewPtrDeleteRecordsRequest()
		d.TimeoutMillis = 10_000
		d.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: s.topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 0, Offset: offset}}}}
		r := ask[*kmsg.DeleteRecordsResponse](s, min(version, 1), d).Topics[0].Partitions[0]
		say("delete records to %d: error %d from %d", offset, r.ErrorCode, r.LowWatermark)
	}
	deleteTo(1)
	deleteTo(9)
	deleteTo(-1)
	drop := kmsg.NewPtrDeleteTopicsRequest()
	drop.TimeoutMillis, drop.TopicNames = 10_000, []string{other}
	say("delete: error %d", ask[*kmsg.DeleteTopicsResponse](s, version, drop).Topics[0].ErrorCode)
	say("delete again: error %d", ask[*kmsg.DeleteTopicsResponse](s, version, drop).Topics[0].ErrorCode)
	return out
}

// describeConfigs tells the topic's configurations that are not the default, and of the others how they are told.
func (s *side) describeConfigs(version int16, topic string) string {
	s.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: topic, ConfigNames: []string{"retention.ms", "segment.ms", "cleanup.policy", "max.message.bytes"}}}
	r := ask[*kmsg.DescribeConfigsResponse](s, version, req).Resources[0]
	var lines []string
	for _, c := range r.Configs {
		if version == 0 {
			c.IsDefault = false // 3.9 forgets to tell; earlier ones and ours do
		}
		lines = append(lines, fmt.Sprintf("%s=%s read-only %v default %v source %d sensitive %v", c.Name, deref(c.Value), c.ReadOnly, c.IsDefault, c.Source, c.IsSensitive))
	}
	slices.Sort(lines)
	return fmt.Sprintf("error %d %v", r.ErrorCode, lines)
}

// TestApiVersions sees that a client of any version is told of every API in a range that begins where Kafka's does or before.
func TestApiVersions(t *testing.T) {
	compare(t, nil, func(s *side) (out []string) {
		for version := int16(0); version <= 3; version++ {
			req := kmsg.NewPtrApiVersionsRequest()
			req.ClientSoftwareName, req.ClientSoftwareVersion = "compat", "1"
			resp := ask[*kmsg.ApiVersionsResponse](s, version, req)
			out = append(out, fmt.Sprintf("v%d error %d", version, resp.ErrorCode))
			for _, k := range resp.ApiKeys {
				// The rest of the clients' own APIs differs: 3.9 can't know what came later.
				if k.ApiKey <= 3 || k.ApiKey >= 10 && k.ApiKey <= 14 {
					out = append(out, fmt.Sprintf("v%d %s from %d", version, kmsg.NameForKey(k.ApiKey), k.MinVersion))
				}
			}
		}
		slices.Sort(out)
		return out
	})
}
