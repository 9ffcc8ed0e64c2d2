package api

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

func TestDescribeCluster(t *testing.T) {
	b := newTestBroker(t, nil)
	b.apply(&metadata.RegisterBrokerRecord{BrokerID: 2, Fenced: true, Endpoints: []metadata.Endpoint{{Listener: testListener, Host: "two", Port: 9}}})
	c := b.dial("client")
	for _, tc := range []struct {
		version  int16
		endpoint int8
		fenced   bool
		want     string
	}{
		{0, 1, false, "0 [1@broker:9092]"},
		{0, 2, false, "0 [1@broker:9092]"}, // the field is not sent
		{1, 1, false, "0 [1@broker:9092]"},
		{1, 2, false, fmt.Sprintf("%d []", kerr.MismatchedEndpointType.Code)},
		{1, 7, false, fmt.Sprintf("%d []", kerr.UnsupportedEndpointType.Code)},
		{2, 1, false, "0 [1@broker:9092]"},
		{2, 1, true, "0 [1@broker:9092 2@two:9 fenced]"},
	} {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.EndpointType, req.IncludeFencedBrokers, req.IncludeClusterAuthorizedOperations = tc.endpoint, tc.fenced, true
		resp := askAs[*kmsg.DescribeClusterResponse](c, tc.version, req)
		var brokers []string
		for _, b := range resp.Brokers {
			s := fmt.Sprintf("%d@%s:%d", b.NodeID, b.Host, b.Port)
			if b.IsFenced {
				s += " fenced"
			}
			brokers = append(brokers, s)
		}
		if got := fmt.Sprintf("%d %v", resp.ErrorCode, brokers); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
		if resp.ErrorCode == 0 && (resp.ClusterID != testCluster || resp.ControllerID != 1 || resp.ClusterAuthorizedOperations != 8096) {
			t.Errorf("%+v: %+v", tc, resp)
		}
	}
}

func TestApiVersions(t *testing.T) {
	b := newTestBroker(t, nil)
	c := b.dial("client")
	for v := int16(0); v <= kmsg.NewPtrApiVersionsRequest().MaxVersion(); v++ {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "franz-go", "1.2-rc.1"
		resp := askAs[*kmsg.ApiVersionsResponse](c, v, req)
		listed := slices.DeleteFunc(slices.Clone(Table), func(row API) bool { return isTelemetry(row.Key) })
		if resp.ErrorCode != 0 || len(resp.ApiKeys) != len(listed) {
			t.Fatalf("v%d: error %d, %d keys", v, resp.ErrorCode, len(resp.ApiKeys))
		}
		for i, k := range resp.ApiKeys {
			if row := listed[i]; k.ApiKey != row.Key || k.MinVersion != row.Min || k.MaxVersion != row.Max {
				t.Errorf("v%d: %+v, the table says %+v", v, k, row)
			}
		}
		if k := resp.ApiKeys[0]; k.ApiKey != 0 || k.MinVersion != 0 {
			t.Errorf("Produce is listed as %+v", k)
		}
		supported := map[int16]int{0: 0, 1: 0, 2: 0, 3: 1, 4: len(Features), 5: len(Features)}[v]
		if len(resp.SupportedFeatures) != supported {
			t.Errorf("v%d: features %+v", v, resp.SupportedFeatures)
		}
		if v >= 3 && (len(resp.FinalizedFeatures) != 1 || resp.FinalizedFeatures[0].Name != MetadataVersionFeature || resp.FinalizedFeaturesEpoch < 0) {
			t.Errorf("v%d: finalized %+v, epoch %d", v, resp.FinalizedFeatures, resp.FinalizedFeaturesEpoch)
		}
	}
	b.apply(&metadata.FeatureLevelRecord{Name: "transaction.version", Level: 2})
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "x", "1"
	if resp := askAs[*kmsg.ApiVersionsResponse](c, 4, req); len(resp.FinalizedFeatures) != 2 {
		t.Errorf("finalized %+v", resp.FinalizedFeatures)
	}
}

func TestApiVersionsRefusals(t *testing.T) {
	c := newTestBroker(t, nil).dial("client")
	cluster, other := testCluster, "other"
	for _, tc := range []struct {
		name, version string
		v             int16
		cluster       *string
		node          int32
		want          *kerr.Error
	}{
		{"a", "1", 3, nil, -1, nil},
		{"", "1", 3, nil, -1, kerr.InvalidRequest},
		{"a", "", 3, nil, -1, kerr.InvalidRequest},
		{"-a", "1", 4, nil, -1, kerr.InvalidRequest},
		{"a b", "1", 4, nil, -1, kerr.InvalidRequest},
		{"a", "1.", 4, nil, -1, kerr.InvalidRequest},
		{"a", "1\n", 4, nil, -1, kerr.InvalidRequest},
		{"", "", 2, nil, -1, nil},
		{"a", "1", 5, nil, -1, nil},
		{"a", "1", 5, &cluster, 1, nil},
		{"a", "1", 5, &cluster, 2, kerr.RebootstrapRequired},
		{"a", "1", 5, &other, 1, kerr.RebootstrapRequired},
		{"a", "1", 5, &cluster, -1, kerr.InvalidRequest},
		{"a", "1", 5, nil, 1, kerr.InvalidRequest},
	} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = tc.name, tc.version
		req.ClusterID, req.NodeID = tc.cluster, tc.node
		resp := askAs[*kmsg.ApiVersionsResponse](c, tc.v, req)
		want := int16(0)
		if tc.want != nil {
			want = tc.want.Code
		}
		if resp.ErrorCode != want || (want != 0) != (len(resp.ApiKeys) == 0) {
			t.Errorf("%+v: error %d, %d keys", tc, resp.ErrorCode, len(resp.ApiKeys))
		}
	}
}

func TestDescribeTopicPartitions(t *testing.T) {
	b := newTestBroker(t, nil)
	b.addTopic("a", 3)
	b.addTopic("b", 2)
	b.addTopic("c", 1)
	c := b.dial("client")
	for _, tc := range []struct {
		name      string
		topics    []string
		limit     int32
		cursor    string
		partition int32
		want      string
	}{
		{"sorted", []string{"c", "a"}, 100, "", 0, "a:0:[0 1 2] c:0:[0] ."},
		{"all", nil, 100, "", 0, "a:0:[0 1 2] b:0:[0 1] c:0:[0] ."},
		{"page ends in a topic", nil, 2, "", 0, "a:0:[0 1] a/2"},
		{"page ends with a topic", nil, 3, "", 0, "a:0:[0 1 2] b/0"},
		{"second page", nil, 2, "a", 2, "a:0:[2] b:0:[0] b/1"},
		{"last page", nil, 2, "b", 1, "b:0:[1] c:0:[0] ."},
		{"beyond the partitions", []string{"a", "b"}, 0, "a", 9, "a:0:[] b:0:[0] b/1"},
		{"unknown and invalid", []string{"nope", "a b", "c"}, 100, "", 0, "a b:17:[] c:0:[0] nope:3:[] ."},
		{"cursor on an unknown topic", nil, 100, "aa", 1, "b:0:[0 1] c:0:[0] ."},
		{"full before a missing one", []string{"a", "nope", "a"}, 3, "", 0, "a:0:[0 1 2] nope/0"},
		{"bad cursor", []string{"b", "a"}, 3, "a", -2, "b:42:[] a:42:[] ."},
	} {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit = tc.limit
		for _, name := range tc.topics {
			req.Topics = append(req.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: name})
		}
		if tc.cursor != "" {
			req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: tc.cursor, Partition: tc.partition}
		}
		resp := askAs[*kmsg.DescribeTopicPartitionsResponse](c, 0, req)
		got := ""
		for _, topic := range resp.Topics {
			partitions := []int32{}
			for _, p := range topic.Partitions {
				partitions = append(partitions, p.Partition)
				if p.LeaderID != 1 || fmt.Sprint(p.Replicas, p.ISR, p.EligibleLeaderReplicas, p.LastKnownELR) != "[1] [1] [] []" {
					t.Errorf("%s: %+v", tc.name, p)
				}
			}
			got += fmt.Sprintf("%s:%d:%v ", *topic.Topic, topic.ErrorCode, partitions)
		}
		if resp.NextCursor == nil {
			got += "."
		} else {
			got += fmt.Sprintf("%s/%d", resp.NextCursor.Topic, resp.NextCursor.Partition)
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
