package api

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

func metadataOf(names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	return req
}

func topicRows(resp *kmsg.MetadataResponse) (rows []string) {
	for _, t := range resp.Topics {
		name := "<null>"
		if t.Topic != nil {
			name = *t.Topic
		}
		rows = append(rows, fmt.Sprintf("%s:%d:%d", name, t.ErrorCode, len(t.Partitions)))
	}
	return rows
}

func TestMetadataTopicLists(t *testing.T) {
	b := newTestBroker(t, nil)
	b.addTopic("t1", 3)
	b.addTopic("t2", 1)
	c := b.dial("client")
	all := func(version int16) *kmsg.MetadataRequest {
		req := metadataOf()
		if version > 0 {
			req.Topics = nil
		}
		return req
	}
	for v := int16(0); v <= kmsg.NewPtrMetadataRequest().MaxVersion(); v++ {
		for _, tc := range []struct {
			name string
			req  *kmsg.MetadataRequest
			want string
		}{
			{"all", all(v), "[t1:0:3 t2:0:1]"},
			{"one", metadataOf("t2"), "[t2:0:1]"},
			{"repeats", metadataOf("t2", "t1", "t2"), "[t2:0:1 t1:0:3]"},
			{"unknown and invalid", metadataOf("t1", "nope", "a b", ""), "[t1:0:3 nope:3:0 a b:17:0 :17:0]"},
			{"none", metadataOf(), "[]"},
		} {
			if v == 0 && tc.name == "none" || v < 4 && tc.name == "unknown and invalid" {
				continue // v0 has no way to ask for none; before v4 asking creates
			}
			resp := askAs[*kmsg.MetadataResponse](c, v, tc.req)
			if got := fmt.Sprint(topicRows(resp)); got != tc.want {
				t.Errorf("v%d, %s: %s, want %s", v, tc.name, got, tc.want)
			}
			if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 1 || resp.Brokers[0].Host != "broker" || resp.Brokers[0].Port != 9092 {
				t.Errorf("v%d, %s: brokers %+v", v, tc.name, resp.Brokers)
			}
			if v >= 1 && (resp.ControllerID != 1 || *resp.Brokers[0].Rack != "r1") {
				t.Errorf("v%d, %s: controller %d", v, tc.name, resp.ControllerID)
			}
			if v >= 2 && *resp.ClusterID != testCluster {
				t.Errorf("v%d: cluster %v", v, resp.ClusterID)
			}
		}
	}
	if len(b.creations) != 0 {
		t.Errorf("created %v", b.creations)
	}
}

// TestMetadataAutoCreates asks before the controller has decided, twice, and
// after: as in Kafka the answer does not wait for the topic.
func TestMetadataAutoCreates(t *testing.T) {
	const before, after = "[new:3:0 old:0:2 a b:17:0 __share_group_state:3:0]", "[new:0:1 old:0:2 a b:17:0 __share_group_state:3:0]"
	for v := int16(0); v <= kmsg.NewPtrMetadataRequest().MaxVersion(); v++ {
		b := newTestBroker(t, nil)
		b.decide = make(chan func(), 2)
		b.addTopic("old", 2)
		req := metadataOf("new", "old", "a b", "__share_group_state")
		req.AllowAutoTopicCreation = true
		c := b.dial("client")
		ask := func(want string) {
			t.Helper()
			if got := fmt.Sprint(topicRows(askAs[*kmsg.MetadataResponse](c, v, req))); got != want {
				t.Errorf("v%d: %s, want %s", v, got, want)
			}
		}
		ask(before)
		ask(before)
		(<-b.decide)()
		ask(after)
		if got := fmt.Sprint(b.creations, len(b.decide)); got != "[[new]] 0" {
			t.Errorf("v%d: created %s", v, got)
		}
	}
}

// TestAutoCreatingForgets wants a topic that is no longer on its way, made or not,
// to be made again when somebody asks, and no more than maxAutoCreating at a time.
func TestAutoCreatingForgets(t *testing.T) {
	var a autoCreating
	for i := range maxAutoCreating {
		a.add([]string{fmt.Sprint(i)})
	}
	if got := a.add([]string{"more"}); len(got) != 0 {
		t.Errorf("%v is on its way beside %d others", got, maxAutoCreating)
	}
	a.remove("0", "1")
	if got := fmt.Sprint(a.add([]string{"2", "1", "0", "more"})); got != "[1 0]" {
		t.Errorf("added %s", got)
	}
}

func TestMetadataDoesNotCreate(t *testing.T) {
	off := newTestBroker(t, func(h *Handlers) { h.AutoCreate = func() bool { return false } })
	refusing := newTestBroker(t, nil)
	refusing.refuse = kerr.PolicyViolation
	for _, tc := range []struct {
		name   string
		broker *testBroker
		flag   bool
	}{
		{"the broker forbids it", off, true},
		{"the client forbids it", newTestBroker(t, nil), false},
		{"the controller refuses", refusing, true},
	} {
		req := metadataOf("new")
		req.AllowAutoTopicCreation = tc.flag
		resp := askAs[*kmsg.MetadataResponse](tc.broker.dial("client"), 12, req)
		if got := fmt.Sprint(topicRows(resp)); got != "[new:3:0]" {
			t.Errorf("%s: %s", tc.name, got)
		}
		if len(tc.broker.creations) != 0 {
			t.Errorf("%s: created %v", tc.name, tc.broker.creations)
		}
	}
}

func TestMetadataByID(t *testing.T) {
	b := newTestBroker(t, nil)
	id := b.addTopic("t1", 3)
	c := b.dial("client")
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{{TopicID: id}, {TopicID: metadata.TopicID{9}}, {TopicID: id}}
	resp := askAs[*kmsg.MetadataResponse](c, 12, req)
	if got := fmt.Sprint(topicRows(resp)); got != "[t1:0:3 <null>:100:0]" || resp.Topics[0].TopicID != id || resp.Topics[1].TopicID != (metadata.TopicID{9}) {
		t.Errorf("%s", got)
	}
	// The field is there from v10 on, but Kafka refuses it before v12.
	for _, v := range []int16{10, 11} {
		resp := askAs[*kmsg.MetadataResponse](c, v, req)
		if len(resp.Topics) != 3 || resp.Topics[0].ErrorCode != kerr.InvalidRequest.Code || len(resp.Brokers) != 0 || resp.ControllerID != -1 {
			t.Errorf("v%d: %+v", v, resp)
		}
	}
	req.Topics = []kmsg.MetadataRequestTopic{{}}
	if resp := askAs[*kmsg.MetadataResponse](c, 12, req); resp.Topics[0].ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("neither name nor id: %+v", resp)
	}
}

func TestMetadataAuthorizedOperations(t *testing.T) {
	b := newTestBroker(t, nil)
	b.addTopic("t1", 1)
	c := b.dial("client")
	const unset = -2147483648
	for v := int16(0); v <= kmsg.NewPtrMetadataRequest().MaxVersion(); v++ {
		req := metadataOf("t1")
		req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations = true, true
		resp := askAs[*kmsg.MetadataResponse](c, v, req)
		topic, cluster := int32(unset), int32(unset)
		if v >= 8 {
			topic = 3576
		}
		if v >= 8 && v <= 10 {
			cluster = 8096
		}
		if resp.Topics[0].AuthorizedOperations != topic || resp.AuthorizedOperations != cluster {
			t.Errorf("v%d: topic %d, cluster %d", v, resp.Topics[0].AuthorizedOperations, resp.AuthorizedOperations)
		}
	}
	resp := askAs[*kmsg.MetadataResponse](c, 9, metadataOf("t1"))
	if resp.Topics[0].AuthorizedOperations != unset || resp.AuthorizedOperations != unset {
		t.Errorf("unasked: %+v", resp)
	}
}

// TestMetadataOfUnreachableLeaders has broker 2 fenced, broker 3 without the
// client's listener, and broker 4 unknown.
func TestMetadataOfUnreachableLeaders(t *testing.T) {
	b := newTestBroker(t, nil)
	b.apply(
		&metadata.RegisterBrokerRecord{BrokerID: 2, Fenced: true, Endpoints: []metadata.Endpoint{{Listener: testListener, Port: 9}}},
		&metadata.RegisterBrokerRecord{BrokerID: 3, Endpoints: []metadata.Endpoint{{Listener: "OTHER", Host: "x", Port: 9}}},
		&metadata.TopicRecord{Name: "t", ID: metadata.TopicID{7}},
	)
	for i, leader := range []int32{1, 3, 4, -1} {
		b.apply(&metadata.PartitionRecord{TopicID: metadata.TopicID{7}, Partition: metadata.Partition{
			Index: int32(i), Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2}, Leader: leader, LeaderEpoch: 5,
		}})
	}
	c := b.dial("client")
	for _, tc := range []struct {
		version int16
		want    string
	}{
		{0, "[9:1:[1]:[1] 5:-1:[1]:[1] 5:-1:[1]:[1] 5:-1:[1]:[1]]"},
		{1, "[0:1:[1 2 3]:[1 2] 5:-1:[1 2 3]:[1 2] 5:-1:[1 2 3]:[1 2] 5:-1:[1 2 3]:[1 2]]"},
		{6, "[0:1:[1 2 3]:[1 2] 72:-1:[1 2 3]:[1 2] 5:-1:[1 2 3]:[1 2] 5:-1:[1 2 3]:[1 2]]"},
	} {
		resp := askAs[*kmsg.MetadataResponse](c, tc.version, metadataOf("t"))
		var got []string
		for _, p := range resp.Topics[0].Partitions {
			got = append(got, fmt.Sprintf("%d:%d:%v:%v", p.ErrorCode, p.Leader, p.Replicas, p.ISR))
		}
		if fmt.Sprint(got) != tc.want {
			t.Errorf("v%d: %v, want %s", tc.version, got, tc.want)
		}
	}
	resp := askAs[*kmsg.MetadataResponse](c, 12, metadataOf("t"))
	if p := resp.Topics[0].Partitions[0]; fmt.Sprint(p.OfflineReplicas) != "[2 3]" || p.LeaderEpoch != 5 {
		t.Errorf("%+v", p)
	}
}

func TestEndpoints(t *testing.T) {
	reach := func() (string, int32) { return "localhost", 19092 }
	b := func(id int32, e ...metadata.Endpoint) *metadata.Broker { return &metadata.Broker{ID: id, Endpoints: e} }
	for _, tc := range []struct {
		name   string
		broker *metadata.Broker
		want   string
	}{
		{"advertised", b(1, metadata.Endpoint{Listener: "A", Host: "h", Port: 5}), "h:5 true"},
		{"another's, advertised", b(2, metadata.Endpoint{Listener: "A", Host: "h", Port: 5}), "h:5 true"},
		{"not advertised", b(1, metadata.Endpoint{Listener: "A", Port: 9092}), "localhost:19092 true"},
		{"another's, not advertised", b(2, metadata.Endpoint{Listener: "A", Port: 9093}), "localhost:9093 true"},
		{"other listener", b(1, metadata.Endpoint{Listener: "B", Host: "h", Port: 5}), ":0 false"},
	} {
		host, port, ok := endpointOf(tc.broker, 1, "A", reach)
		if got := fmt.Sprintf("%s:%d %v", host, port, ok); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
