package api

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// groupLog is a partition of the groups' topic in memory; its high watermark is
// its end.
type groupLog struct {
	mu      sync.Mutex
	batches []byte
	end     int64
}

func (l *groupLog) TopicID() [16]byte     { return [16]byte{1} }
func (l *groupLog) LogStartOffset() int64 { return 0 }
func (l *groupLog) Writable() error       { return nil }
func (l *groupLog) HighWatermark() int64  { return l.LogEndOffset() }

func (l *groupLog) LogEndOffset() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

func (l *groupLog) CompactedTo() int64                     { return -1 }
func (l *groupLog) EndOffsetForEpoch(int32) (int32, int64) { return 0, l.LogEndOffset() }

func (l *groupLog) Read(int64, int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.batches), nil
}

func (l *groupLog) Append(_ int32, b []byte, committed func(error)) (int64, error) {
	l.mu.Lock()
	v := batch.View(b)
	first := l.end
	v.SetBaseOffset(first)
	l.end = v.NextOffset()
	l.batches = append(l.batches, v...)
	l.mu.Unlock()
	committed(nil)
	return first, nil
}

func (l *groupLog) WhenCommitted(_ int32, _ int64, done func(error)) { done(nil) }

// groupBroker is a testBroker with a group coordinator, whose controller makes
// the groups' topic.
type groupBroker struct {
	*testBroker
	groups *group.Coordinator

	// elected tells the coordinator of a topic of a partition.
	elected func(topic string, partition int32)

	mu      sync.Mutex
	logs    map[int32]*groupLog
	created []kmsg.CreateTopicsRequestTopic
	fail    error
}

func newGroupBroker(t *testing.T) *groupBroker {
	t.Helper()
	g := &groupBroker{logs: map[int32]*groupLog{}}
	ids := 0
	g.groups = group.NewCoordinator(group.Options{
		Config: group.DefaultConfig(), Clock: clock.Real(), Log: slog.New(slog.DiscardHandler),
		NewID: func() string { ids++; return fmt.Sprint(ids) },
		Open: func(p int32) (runtime.Log, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.logs[p] == nil {
				g.logs[p] = &groupLog{}
			}
			return g.logs[p], nil
		},
		Partitions: func() int32 {
			t, ok := g.image.Load().Topic(group.Topic)
			if !ok {
				return 0
			}
			return int32(len(t.Partitions))
		},
		World: func() group.World { return group.World{Image: g.image.Load()} },
	})
	t.Cleanup(g.groups.Close)
	g.elected = func(_ string, partition int32) { g.groups.OnElected(partition, 0) }
	g.testBroker = newTestBroker(t, func(h *Handlers) {
		h.Groups, h.Controller = g.groups, g
		h.InternalTopic = func(name string) InternalTopic {
			return InternalTopic{Partitions: 5, ReplicationFactor: 3, Configs: [][2]string{{"cleanup.policy", "compact"}, {"segment.bytes", "104857600"}}}
		}
	})
	return g
}

// Handle implements Controller.
func (g *groupBroker) Handle(req kmsg.Request, done func(kmsg.Response, error)) {
	g.mu.Lock()
	fail := g.fail
	g.mu.Unlock()
	if fail != nil {
		done(nil, fail)
		return
	}
	go func() {
		create := req.(*kmsg.CreateTopicsRequest)
		g.mu.Lock()
		g.created = append(g.created, create.Topics...)
		g.mu.Unlock()
		// As in a node, the image names a coordinator that knows of it.
		for p := range create.Topics[0].NumPartitions {
			g.elected(create.Topics[0].Topic, p)
		}
		g.addTopic(create.Topics[0].Topic, int(create.Topics[0].NumPartitions))
		resp := create.ResponseKind().(*kmsg.CreateTopicsResponse)
		resp.Topics = []kmsg.CreateTopicsResponseTopic{{Topic: create.Topics[0].Topic}}
		done(resp, nil)
	}()
}

// find looks for the coordinator of a group and fails the test unless it is this
// broker.
func (g *groupBroker) find(c *testClient, version int16, key string) {
	c.t.Helper()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = key, []string{key}
	resp := askAs[*kmsg.FindCoordinatorResponse](c, version, req)
	code, node, host, port := resp.ErrorCode, resp.NodeID, resp.Host, resp.Port
	if version >= findBatchVersion {
		f := resp.Coordinators[0]
		code, node, host, port = f.ErrorCode, f.NodeID, f.Host, f.Port
	}
	if code != 0 || node != 1 || host == "" || port != 9092 {
		c.t.Fatalf("v%d: code %d, node %d at %s:%d", version, code, node, host, port)
	}
}

func TestFindCoordinatorMakesTheTopicOnce(t *testing.T) {
	g := newGroupBroker(t)
	var wg sync.WaitGroup
	for i := range 8 {
		c := g.dial("h")
		wg.Go(func() { g.find(c, int16(i%7), fmt.Sprintf("group-%d", i)) })
	}
	wg.Wait()
	if len(g.created) != 1 {
		t.Fatalf("%d topics were made", len(g.created))
	}
	made := g.created[0]
	var configs []string
	for _, c := range made.Configs {
		configs = append(configs, c.Name+"="+*c.Value)
	}
	if got, want := fmt.Sprintf("%s %d %d %v", made.Topic, made.NumPartitions, made.ReplicationFactor, configs),
		"__consumer_offsets 5 1 [cleanup.policy=compact segment.bytes=104857600]"; got != want {
		t.Errorf("made %s, want %s", got, want)
	}
	// The coordinator serves: the first request of a group meets no error.
	c := g.dial("h")
	got := askAs[*kmsg.JoinGroupResponse](c, 9, joinRequest("group-1", ""))
	if got.ErrorCode != kerr.MemberIDRequired.Code {
		t.Errorf("the first join got %d", got.ErrorCode)
	}
}

func TestFindCoordinatorErrors(t *testing.T) {
	g := newGroupBroker(t)
	c := g.dial("h")
	for _, tc := range []struct {
		kind int8
		want *kerr.Error
	}{{2, kerr.InvalidRequest}, {9, kerr.InvalidRequest}} {
		for version := int16(1); version <= 6; version++ {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = tc.kind, "k", []string{"k"}
			resp := askAs[*kmsg.FindCoordinatorResponse](c, version, req)
			code, node, msg := resp.ErrorCode, resp.NodeID, resp.ErrorMessage
			if version >= findBatchVersion {
				code, node, msg = resp.Coordinators[0].ErrorCode, resp.Coordinators[0].NodeID, resp.Coordinators[0].ErrorMessage
			}
			if code != tc.want.Code || node != -1 || msg == nil {
				t.Errorf("type %d v%d: code %d, node %d, message %v", tc.kind, version, code, node, msg)
			}
		}
	}
	g.fail = errors.New("the controller is away")
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKeys = []string{"a", "b"}
	resp := askAs[*kmsg.FindCoordinatorResponse](c, 6, req)
	for i, f := range resp.Coordinators {
		if f.ErrorCode != kerr.CoordinatorNotAvailable.Code || f.Key != req.CoordinatorKeys[i] {
			t.Errorf("%s: code %d", f.Key, f.ErrorCode)
		}
	}
}

func joinRequest(groupID, memberID string) *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Group, r.MemberID, r.ProtocolType = groupID, memberID, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 300_000, 300_000 // longer than any test
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 1, 0, 1, 't'}}}
	return r
}

// TestEveryVersionOfAGroupsLife goes through join, sync, heartbeat, commit, fetch
// and leave in every version of each.
func TestEveryVersionOfAGroupsLife(t *testing.T) {
	g := newGroupBroker(t)
	id := g.addTopic("t", 2)
	c := g.dial("h")
	g.find(c, 6, "any")
	for v := range int16(11) {
		groupID := fmt.Sprintf("group-%d", v)
		joined := askAs[*kmsg.JoinGroupResponse](c, min(v, 9), joinRequest(groupID, ""))
		if v >= 4 {
			if joined.ErrorCode != kerr.MemberIDRequired.Code {
				t.Fatalf("v%d: first join %d", v, joined.ErrorCode)
			}
			joined = askAs[*kmsg.JoinGroupResponse](c, min(v, 9), joinRequest(groupID, joined.MemberID))
		}
		if joined.ErrorCode != 0 || joined.Generation != 1 || joined.LeaderID != joined.MemberID || len(joined.Members) != 1 || *joined.Protocol != "range" {
			t.Fatalf("v%d: %+v", v, joined)
		}
		sync := kmsg.NewPtrSyncGroupRequest()
		consumer := "consumer"
		sync.Group, sync.Generation, sync.MemberID, sync.ProtocolType, sync.Protocol = groupID, 1, joined.MemberID, &consumer, joined.Protocol
		sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: []byte("mine")}}
		if r := askAs[*kmsg.SyncGroupResponse](c, min(v, 5), sync); r.ErrorCode != 0 || string(r.MemberAssignment) != "mine" {
			t.Fatalf("v%d: %+v", v, r)
		}
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group, beat.Generation, beat.MemberID = groupID, 1, joined.MemberID
		if r := askAs[*kmsg.HeartbeatResponse](c, min(v, 4), beat); r.ErrorCode != 0 {
			t.Fatalf("v%d: %+v", v, r)
		}
		if v > 0 { // version 0 commits as nobody
			commit := commitRequest(groupID, id, 0)
			commit.Generation, commit.MemberID = 1, joined.MemberID
			if r := askAs[*kmsg.OffsetCommitResponse](c, v, commit); r.Topics[0].Partitions[0].ErrorCode != 0 {
				t.Fatalf("v%d: %+v", v, r)
			}
			if got := fetchOffset(c, v, groupID, id, 0); got != "42/0" {
				t.Fatalf("v%d: fetched %s", v, got)
			}
		}
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID, leave.Members = groupID, joined.MemberID, []kmsg.LeaveGroupRequestMember{{MemberID: joined.MemberID}}
		if r := askAs[*kmsg.LeaveGroupResponse](c, min(v, 5), leave); r.ErrorCode != 0 || v >= 3 && r.Members[0].ErrorCode != 0 {
			t.Fatalf("v%d: %+v", v, r)
		}
		if r := askAs[*kmsg.HeartbeatResponse](c, min(v, 4), beat); r.ErrorCode != kerr.UnknownMemberID.Code {
			t.Fatalf("v%d: heartbeat of one that left: %d", v, r.ErrorCode)
		}
	}
	if r := askAs[*kmsg.OffsetCommitResponse](c, 0, commitRequest("simple", id, 1)); r.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v", r)
	}
	if got := fetchOffset(c, 0, "simple", id, 1); got != "42/0" {
		t.Fatalf("fetched %s", got)
	}
}

func commitRequest(groupID string, id metadata.TopicID, partitions ...int32) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Group = groupID
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = "t", id
	for _, p := range partitions {
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset = p, 42
		t.Partitions = append(t.Partitions, rp)
	}
	r.Topics = append(r.Topics, t)
	return r
}

// fetchOffset is "offset/error" of one partition of topic t.
func fetchOffset(c *testClient, version int16, groupID string, id metadata.TopicID, partition int32) string {
	c.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = groupID
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{partition}}}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = groupID
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: id, Partitions: []int32{partition}}}
	req.Groups = []kmsg.OffsetFetchRequestGroup{g}
	resp := askAs[*kmsg.OffsetFetchResponse](c, version, req)
	if version < fetchGroups {
		p := resp.Topics[0].Partitions[0]
		return fmt.Sprintf("%d/%d", p.Offset, p.ErrorCode)
	}
	p := resp.Groups[0].Topics[0].Partitions[0]
	return fmt.Sprintf("%d/%d", p.Offset, p.ErrorCode)
}

func TestOffsetCommitOfWhatIsNotThere(t *testing.T) {
	g := newGroupBroker(t)
	id := g.addTopic("t", 2)
	c := g.dial("h")
	g.find(c, 6, "any")
	for _, version := range []int16{9, 10} {
		req := commitRequest("g", id, 0, 7, 1, -1)
		missing := kmsg.NewOffsetCommitRequestTopic()
		missing.Topic, missing.TopicID = "missing", metadata.TopicID{9}
		missing.Partitions = req.Topics[0].Partitions[:1]
		req.Topics = append([]kmsg.OffsetCommitRequestTopic{missing}, req.Topics...)
		resp := askAs[*kmsg.OffsetCommitResponse](c, version, req)
		unknown := kerr.UnknownTopicOrPartition.Code
		if version >= commitTopicIDs {
			unknown = kerr.UnknownTopicID.Code
		}
		if got := resp.Topics[0].Partitions[0].ErrorCode; got != unknown {
			t.Errorf("v%d: missing topic: %d", version, got)
		}
		var codes []int16
		for _, p := range resp.Topics[1].Partitions {
			codes = append(codes, p.ErrorCode)
		}
		if fmt.Sprint(codes) != "[0 3 0 3]" {
			t.Errorf("v%d: codes %v", version, codes)
		}
	}
	// With nothing to commit the group is not asked.
	req := commitRequest("g", id, 9)
	req.Generation = 77
	if r := askAs[*kmsg.OffsetCommitResponse](c, 9, req); r.Topics[0].Partitions[0].ErrorCode != 3 {
		t.Errorf("%+v", r)
	}
}

func TestOffsetFetchForms(t *testing.T) {
	g := newGroupBroker(t)
	id := g.addTopic("t", 2)
	c := g.dial("h")
	g.find(c, 6, "any")
	askAs[*kmsg.OffsetCommitResponse](c, 9, commitRequest("g", id, 0, 1))
	// All offsets, before groups and with them, by name and by id.
	for version := int16(2); version <= 10; version++ {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Group = "g"
		a, b := kmsg.NewOffsetFetchRequestGroup(), kmsg.NewOffsetFetchRequestGroup()
		a.Group, b.Group = "g", "nobody"
		req.Groups = []kmsg.OffsetFetchRequestGroup{a, b}
		resp := askAs[*kmsg.OffsetFetchResponse](c, version, req)
		if version < fetchGroups {
			if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 || resp.Topics[0].Partitions[1].Offset != 42 {
				t.Errorf("v%d: %+v", version, resp.Topics)
			}
			continue
		}
		if len(resp.Groups) != 2 || resp.Groups[1].ErrorCode != 0 || len(resp.Groups[1].Topics) != 0 {
			t.Fatalf("v%d: %+v", version, resp.Groups)
		}
		topics := resp.Groups[0].Topics
		if len(topics) != 1 || len(topics[0].Partitions) != 2 || version >= fetchTopicIDs && topics[0].TopicID != id {
			t.Errorf("v%d: %+v", version, topics)
		}
	}
	for version := range int16(11) {
		if got := fetchOffset(c, version, "nobody", id, 0); got != "-1/0" {
			t.Errorf("v%d: a group that does not exist has %s", version, got)
		}
	}
	if got := fetchOffset(c, 10, "g", metadata.TopicID{9}, 0); got != "-1/100" {
		t.Errorf("an unknown id has %s", got)
	}
	// The topic is made again: nothing is inherited, by partition or all.
	g.apply(&metadata.RemoveTopicRecord{ID: id})
	again := metadata.TopicID{2}
	g.apply(&metadata.TopicRecord{Name: "t", ID: again}, &metadata.PartitionRecord{TopicID: again, Partition: metadata.Partition{Replicas: []int32{1}, ISR: []int32{1}, Leader: 1}})
	for version := range int16(11) {
		if got := fetchOffset(c, version, "g", again, 0); got != "-1/0" {
			t.Errorf("v%d: a topic that was made again has %s", version, got)
		}
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = "g"
	if r := askAs[*kmsg.OffsetFetchResponse](c, 7, req); len(r.Topics) != 0 {
		t.Errorf("all offsets of a topic that was made again: %+v", r.Topics)
	}
}

// While a group's partition loads, old and new clients find the error where they
// look for it.
func TestErrorsWithoutACoordinator(t *testing.T) {
	g := newGroupBroker(t)
	id := g.addTopic("t", 1)
	g.addTopic(group.Topic, 1)
	c := g.dial("h")
	for version := range int16(11) {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Group = "g"
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0}}}
		rg := kmsg.NewOffsetFetchRequestGroup()
		rg.Group, rg.Topics = "g", []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: id, Partitions: []int32{0}}}
		req.Groups = []kmsg.OffsetFetchRequestGroup{rg}
		resp := askAs[*kmsg.OffsetFetchResponse](c, version, req)
		got := resp.ErrorCode
		switch {
		case version < fetchWholeError:
			got = resp.Topics[0].Partitions[0].ErrorCode
		case version >= fetchGroups:
			got = resp.Groups[0].ErrorCode
		}
		if got != kerr.NotCoordinator.Code {
			t.Errorf("v%d: code %d", version, got)
		}
	}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKeys = []string{"g"}
	if r := askAs[*kmsg.FindCoordinatorResponse](c, 6, find); r.Coordinators[0].ErrorCode != kerr.CoordinatorNotAvailable.Code {
		t.Errorf("find: %+v", r)
	}
	if r := askAs[*kmsg.JoinGroupResponse](c, 9, joinRequest("g", "")); r.ErrorCode != kerr.NotCoordinator.Code {
		t.Errorf("join: %d", r.ErrorCode)
	}
	if r := askAs[*kmsg.OffsetCommitResponse](c, 9, commitRequest("g", id, 0)); r.Topics[0].Partitions[0].ErrorCode != kerr.NotCoordinator.Code {
		t.Errorf("commit: %+v", r)
	}
}

func TestGroupAdministration(t *testing.T) {
	g := newGroupBroker(t)
	id := g.addTopic("t", 1)
	c := g.dial("h")
	g.find(c, 6, "any")
	askAs[*kmsg.OffsetCommitResponse](c, 9, commitRequest("simple", id, 0))
	joined := askAs[*kmsg.JoinGroupResponse](c, 3, joinRequest("busy", ""))
	for version := range int16(7) {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups, req.IncludeAuthorizedOperations = []string{"missing", "busy", "simple"}, true
		r := askAs[*kmsg.DescribeGroupsResponse](c, version, req)
		if got := fmt.Sprint(r.Groups[0].State, r.Groups[1].State, r.Groups[2].State); got != "DeadCompletingRebalanceEmpty" {
			t.Errorf("v%d: states %s", version, got)
		}
		if want := map[bool]int16{true: kerr.GroupIDNotFound.Code}[version >= 6]; r.Groups[0].ErrorCode != want {
			t.Errorf("v%d: a missing group has code %d", version, r.Groups[0].ErrorCode)
		}
		m := r.Groups[1].Members[0]
		if m.MemberID != joined.MemberID || m.ClientID != "test" || m.ClientHost != "/h" {
			t.Errorf("v%d: member %+v", version, m)
		}
		if version >= 3 && r.Groups[1].AuthorizedOperations != authorizedGroup {
			t.Errorf("v%d: operations %x", version, r.Groups[1].AuthorizedOperations)
		}
	}
	for version := range int16(6) {
		r := askAs[*kmsg.ListGroupsResponse](c, version, kmsg.NewPtrListGroupsRequest())
		if len(r.Groups) != 2 || r.Groups[0].Group != "busy" || r.Groups[1].Group != "simple" {
			t.Errorf("v%d: %+v", version, r.Groups)
		}
	}
	list := kmsg.NewPtrListGroupsRequest()
	list.StatesFilter, list.TypesFilter = []string{"EMPTY"}, []string{"Classic"}
	if r := askAs[*kmsg.ListGroupsResponse](c, 5, list); len(r.Groups) != 1 || r.Groups[0].GroupState != "Empty" || r.Groups[0].GroupType != "classic" {
		t.Errorf("filtered: %+v", r.Groups)
	}
	del := kmsg.NewPtrOffsetDeleteRequest()
	del.Group = "simple"
	del.Topics = []kmsg.OffsetDeleteRequestTopic{
		{Topic: "missing", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}},
		{Topic: "t", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 7}, {Partition: 0}}},
	}
	if r := askAs[*kmsg.OffsetDeleteResponse](c, 0, del); r.ErrorCode != 0 || r.Topics[0].Partitions[0].ErrorCode != 3 ||
		r.Topics[1].Partitions[0].ErrorCode != 3 || r.Topics[1].Partitions[1].ErrorCode != 0 {
		t.Errorf("offset delete: %+v", r)
	}
	del.Group = "missing"
	if r := askAs[*kmsg.OffsetDeleteResponse](c, 0, del); r.ErrorCode != kerr.GroupIDNotFound.Code || len(r.Topics) != 0 {
		t.Errorf("offset delete of a missing group: %+v", r)
	}
	askAs[*kmsg.OffsetCommitResponse](c, 9, commitRequest("simple", id, 0))
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = []string{"busy", "simple", "missing"}
	r := askAs[*kmsg.DeleteGroupsResponse](c, 3, req)
	if got := fmt.Sprint(r.Groups[0].ErrorCode, r.Groups[1].ErrorCode, r.Groups[2].ErrorCode); got != "68 0 69" {
		t.Errorf("deleted: %s", got)
	}
	if got := fetchOffset(c, 9, "simple", id, 0); got != "-1/0" {
		t.Errorf("a deleted group has %s", got)
	}
}
