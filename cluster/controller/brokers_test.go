package controller

import (
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

func TestRegistration(t *testing.T) {
	cfg := testConfig()
	cfg.Features = []FeatureRange{{"metadata.version", 7, 30}, {"group.version", 0, 1}, {"share.version", 0, 0}}
	b := newBench(t, cfg)
	first := b.register(1, 1)
	broker, ok := b.img.Broker(1)
	if !ok || first.ErrorCode != 0 || first.BrokerEpoch != broker.Epoch || !broker.Live() {
		t.Fatalf("%+v answered as %+v", broker, first)
	}
	if e, ok := broker.Endpoint("PLAINTEXT"); !ok || e.Host != "localhost" || e.Port != 9092 {
		t.Fatalf("endpoints %+v", broker.Endpoints)
	}
	if b.img.Feature("metadata.version") != 30 || b.img.Feature("group.version") != 1 {
		t.Fatalf("features %v", b.img.Features())
	}
	again := b.register(1, 2)
	if again.BrokerEpoch <= first.BrokerEpoch {
		t.Fatalf("epoch %d after %d", again.BrokerEpoch, first.BrokerEpoch)
	}
	other := registration(2, 1)
	other.ClusterID = "another"
	if resp := b.must(other).(*kmsg.BrokerRegistrationResponse); resp.ErrorCode != kerr.InconsistentClusterID.Code || resp.BrokerEpoch != -1 {
		t.Fatalf("a broker of another cluster: %+v", resp)
	}
	if _, ok := b.img.Broker(2); ok {
		t.Fatal("it is registered")
	}
}

// TestFeaturesAreNeverLowered: a level that a newer version finalized stays.
func TestFeaturesAreNeverLowered(t *testing.T) {
	cfg := testConfig()
	cfg.Features = []FeatureRange{{"metadata.version", 7, 30}}
	b := newBench(t, cfg)
	b.img = b.img.Apply(&metadata.FeatureLevelRecord{Name: "metadata.version", Level: 31})
	b.register(1, 1)
	if got := b.img.Feature("metadata.version"); got != 31 {
		t.Fatalf("level %d", got)
	}
}

// TestStartGivesNewLeaderEpochs: whatever a broker's former self had under way is
// fenced off, and a partition that waits for this broker gets it.
func TestStartGivesNewLeaderEpochs(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.register(2, 1)
	same(t, "create", createdLines(b.must(createTopics(
		by(topic("t", -1, -1), []int32{1, 2}, []int32{2, 1}, []int32{1, 2}),
		by(topic("uneven", -1, -1), []int32{1, 2}, []int32{2}),
	))), "t: 0", "uneven: 39 The manual partition assignment includes a partition with 1 replica(s), "+
		"but this is not consistent with previous partitions, which have 2 replica(s).")
	made, _ := b.img.Topic("t")
	b.img = b.img.Apply(&metadata.PartitionChangeRecord{TopicID: made.ID, Index: 2, Leader: new(int32(-1)), ISR: []int32{1}})

	b.register(1, 1)
	if p, _ := b.img.Partition("t", 0); p.LeaderEpoch != 0 {
		t.Fatal("the same incarnation registered again and its epochs changed")
	}
	b.register(1, 2)
	for i, want := range []metadata.Partition{
		{Leader: 1, LeaderEpoch: 1, PartitionEpoch: 1},
		{Leader: 2, LeaderEpoch: 0, PartitionEpoch: 0},
		{Leader: 1, LeaderEpoch: 2, PartitionEpoch: 2},
	} {
		p, _ := b.img.Partition("t", int32(i))
		if p.Leader != want.Leader || p.LeaderEpoch != want.LeaderEpoch || p.PartitionEpoch != want.PartitionEpoch {
			t.Errorf("partition %d: %+v, want %+v", i, p, want)
		}
	}
}

func TestAllocateProducerIDs(t *testing.T) {
	b := newBench(t, testConfig())
	epoch := b.register(1, 1).BrokerEpoch
	ask := func(broker int32, epoch int64) *kmsg.AllocateProducerIDsResponse {
		req := kmsg.NewPtrAllocateProducerIDsRequest()
		req.BrokerID, req.BrokerEpoch = broker, epoch
		return b.must(req).(*kmsg.AllocateProducerIDsResponse)
	}
	for want := int64(0); want < 3000; want += 1000 {
		if got := ask(1, epoch); got.ErrorCode != 0 || got.ProducerIDStart != want || got.ProducerIDLen != 1000 {
			t.Fatalf("%+v, want a block from %d", got, want)
		}
	}
	for _, got := range []*kmsg.AllocateProducerIDsResponse{ask(1, epoch+1), ask(2, epoch)} {
		if got.ErrorCode != kerr.StaleBrokerEpoch.Code {
			t.Fatalf("%+v", got)
		}
	}
	b.img = b.img.Apply(&metadata.ProducerIDsRecord{Next: math.MaxInt64 - 999})
	if got := ask(1, epoch); got.ErrorCode == 0 {
		t.Fatalf("ids beyond the last one: %+v", got)
	}
}
