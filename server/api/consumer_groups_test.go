package api

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/server/config"
)

// consumerBroker is a groupBroker that serves the consumer protocol, with topic t
// of three partitions, and a client of it.
func consumerBroker(t *testing.T, settings ...config.Setting) (*groupBroker, *testClient, metadata.TopicID) {
	t.Helper()
	g := newGroupBroker(t)
	g.h.Configs = testConfigs(t, settings...)
	g.apply(&metadata.FeatureLevelRecord{Name: GroupVersionFeature, Level: 1})
	id := g.addTopic("t", 3)
	c := g.dial("h")
	g.find(c, 6, "g")
	return g, c, id
}

func testConfigs(t *testing.T, settings ...config.Setting) Configs {
	t.Helper()
	static, _, err := config.Load(config.Input{Flags: settings})
	if err != nil {
		t.Fatal(err)
	}
	return config.NewLive(static)
}

func beat(groupID, member string, epoch int32) *kmsg.ConsumerGroupHeartbeatRequest {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Group, r.MemberID, r.MemberEpoch = groupID, member, epoch
	if epoch == 0 {
		r.RebalanceTimeoutMillis, r.SubscribedTopicNames = 60_000, []string{"t"}
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	return r
}

// TestEveryVersionOfAConsumerGroupsLife joins, stays, is described, commits by
// member epoch and leaves, in every version of its requests.
func TestEveryVersionOfAConsumerGroupsLife(t *testing.T) {
	_, c, id := consumerBroker(t)
	for version := int16(0); version <= 1; version++ {
		name := fmt.Sprintf("g%d", version)
		member := ""
		if version > 0 {
			member = "m"
		}
		joined := askAs[*kmsg.ConsumerGroupHeartbeatResponse](c, version, beat(name, member, 0))
		if joined.ErrorCode != 0 || joined.MemberID == nil || *joined.MemberID == "" || joined.MemberEpoch != 2 || joined.HeartbeatIntervalMillis != 5000 ||
			joined.Assignment == nil || fmt.Sprint(joined.Assignment.Topics) != fmt.Sprint([]kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{{TopicID: id, Partitions: []int32{0, 1, 2}}}) {
			t.Fatalf("v%d: joined with %+v", version, joined)
		}
		member = *joined.MemberID
		stayed := askAs[*kmsg.ConsumerGroupHeartbeatResponse](c, version, beat(name, member, 2))
		if stayed.ErrorCode != 0 || stayed.MemberEpoch != 2 || stayed.Assignment != nil {
			t.Fatalf("v%d: stayed with %+v", version, stayed)
		}
		ask := kmsg.NewPtrConsumerGroupDescribeRequest()
		ask.Groups, ask.IncludeAuthorizedOperations = []string{name, "missing"}, true
		described := askAs[*kmsg.ConsumerGroupDescribeResponse](c, version, ask)
		d := described.Groups[0]
		if d.ErrorCode != 0 || d.State != "Stable" || d.Epoch != 2 || d.AssignmentEpoch != 2 || d.AssignorName != "uniform" || d.AuthorizedOperations != authorizedGroup || len(d.Members) != 1 {
			t.Fatalf("v%d: described as %+v", version, d)
		}
		m := d.Members[0]
		wantType := map[bool]int8{false: -1, true: 1}[version >= 1]
		if m.MemberID != member || m.MemberEpoch != 2 || m.ClientHost == "" || m.MemberType != wantType ||
			len(m.Assignment.TopicPartitions) != 1 || m.Assignment.TopicPartitions[0].Topic != "t" || len(m.TargetAssignment.TopicPartitions) != 1 {
			t.Fatalf("v%d: member %+v", version, m)
		}
		if e := described.Groups[1]; e.ErrorCode != kerr.GroupIDNotFound.Code || e.ErrorMessage == nil || e.AuthorizedOperations != -2147483648 {
			t.Fatalf("v%d: missing group described as %+v", version, e)
		}
		commitByEpoch(t, c, name, member, id)
		left := askAs[*kmsg.ConsumerGroupHeartbeatResponse](c, version, beat(name, member, -1))
		if left.ErrorCode != 0 || left.MemberEpoch != -1 {
			t.Fatalf("v%d: left with %+v", version, left)
		}
	}
}

// commitByEpoch commits and fetches with the right epoch and with a stale one.
func commitByEpoch(t *testing.T, c *testClient, name, member string, id metadata.TopicID) {
	t.Helper()
	for version := int16(8); version <= 10; version++ {
		for epoch, want := range map[int32]*kerr.Error{2: nil, 3: kerr.StaleMemberEpoch} {
			if version < 9 {
				want = kerr.UnsupportedVersion
			}
			r := kmsg.NewPtrOffsetCommitRequest()
			r.Group, r.MemberID, r.Generation = name, member, epoch
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset = 1, 7
			r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", TopicID: id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
			resp := askAs[*kmsg.OffsetCommitResponse](c, version, r)
			if got := kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode); got != error(nil) && want == nil || want != nil && got != error(want) {
				t.Fatalf("commit v%d epoch %d: %v", version, epoch, got)
			}
		}
	}
	for version := int16(9); version <= 10; version++ {
		for epoch, want := range map[int32]int16{2: 0, 1: kerr.StaleMemberEpoch.Code} {
			r := kmsg.NewPtrOffsetFetchRequest()
			r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: name, MemberID: &member, MemberEpoch: epoch, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: id, Partitions: []int32{1}}}}}
			resp := askAs[*kmsg.OffsetFetchResponse](c, version, r)
			g := resp.Groups[0]
			if g.ErrorCode != want || want == 0 && g.Topics[0].Partitions[0].Offset != 7 {
				t.Fatalf("fetch v%d epoch %d: %+v", version, epoch, g)
			}
		}
	}
}

// Without the feature, or where the configuration leaves the protocol out, it is
// not there.
func TestConsumerProtocolThatIsOff(t *testing.T) {
	check := func(t *testing.T, c *testClient) {
		t.Helper()
		for version := int16(0); version <= 1; version++ {
			if resp := askAs[*kmsg.ConsumerGroupHeartbeatResponse](c, version, beat("g", "m", 0)); resp.ErrorCode != kerr.UnsupportedVersion.Code {
				t.Errorf("heartbeat v%d: %+v", version, resp)
			}
			ask := kmsg.NewPtrConsumerGroupDescribeRequest()
			ask.Groups = []string{"g"}
			if resp := askAs[*kmsg.ConsumerGroupDescribeResponse](c, version, ask); resp.Groups[0].ErrorCode != kerr.UnsupportedVersion.Code || resp.Groups[0].Group != "g" {
				t.Errorf("describe v%d: %+v", version, resp.Groups[0])
			}
		}
	}
	t.Run("feature", func(t *testing.T) {
		g, c, _ := consumerBroker(t)
		g.apply(&metadata.FeatureLevelRecord{Name: GroupVersionFeature})
		check(t, c)
	})
	t.Run("configuration", func(t *testing.T) {
		_, c, _ := consumerBroker(t, config.Setting{Key: "group.coordinator.rebalance.protocols", Value: "classic"})
		check(t, c)
	})
}

// Before the groups' topic exists there is no coordinator.
func TestConsumerHeartbeatWithoutCoordinator(t *testing.T) {
	g := newGroupBroker(t)
	g.h.Configs = testConfigs(t)
	g.apply(&metadata.FeatureLevelRecord{Name: GroupVersionFeature, Level: 1})
	c := g.dial("h")
	if resp := askAs[*kmsg.ConsumerGroupHeartbeatResponse](c, 1, beat("g", "m", 0)); resp.ErrorCode != kerr.NotCoordinator.Code {
		t.Errorf("heartbeat: %+v", resp)
	}
	ask := kmsg.NewPtrConsumerGroupDescribeRequest()
	ask.Groups = []string{"g"}
	if resp := askAs[*kmsg.ConsumerGroupDescribeResponse](c, 1, ask); resp.Groups[0].ErrorCode != kerr.NotCoordinator.Code {
		t.Errorf("describe: %+v", resp.Groups[0])
	}
}

// ListGroups shows both kinds and filters by type and state, in any case.
func TestListBothKindsOfGroups(t *testing.T) {
	_, c, _ := consumerBroker(t)
	askAs[*kmsg.ConsumerGroupHeartbeatResponse](c, 1, beat("new", "m", 0))
	askAs[*kmsg.JoinGroupResponse](c, 3, joinRequest("old", ""))
	for _, tc := range []struct {
		types, states []string
		want          string
	}{
		{nil, nil, "[new consumer Stable old classic CompletingRebalance]"},
		{[]string{"Consumer"}, nil, "[new consumer Stable]"},
		{[]string{"classic"}, nil, "[old classic CompletingRebalance]"},
		{nil, []string{" stable "}, "[new consumer Stable]"},
		{[]string{" consumer"}, nil, "[]"},
		{[]string{"classic"}, []string{"stable"}, "[]"},
	} {
		r := kmsg.NewPtrListGroupsRequest()
		r.TypesFilter, r.StatesFilter = tc.types, tc.states
		resp := askAs[*kmsg.ListGroupsResponse](c, 5, r)
		var got []string
		for _, g := range resp.Groups {
			got = append(got, g.Group, g.GroupType, g.GroupState)
		}
		if fmt.Sprint(got) != tc.want {
			t.Errorf("types %v states %v: %v, want %s", tc.types, tc.states, got, tc.want)
		}
	}
}
