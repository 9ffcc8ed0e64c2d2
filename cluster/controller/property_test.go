package controller

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// TestProperties decides random requests. After each, the image holds what must
// always hold; at the end a replay of the log, and a snapshot from anywhere with
// the rest of the log, are the running image byte for byte.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, testConfig())
		type cut struct {
			snapshot []byte
			at       int
		}
		cuts := []cut{{b.img.Encode(), 0}}
		for range rapid.IntRange(1, 25).Draw(rt, "requests") {
			before := b.img
			if _, err := b.do(randomRequest(rt, b.img)); err != nil {
				rt.Fatal(err)
			}
			checkImage(rt, before, b.img)
			if rapid.Bool().Draw(rt, "snapshot") {
				cuts = append(cuts, cut{b.img.Encode(), len(b.log)})
			}
		}
		for _, c := range cuts {
			img, err := metadata.Decode(c.snapshot)
			if err != nil {
				rt.Fatal(err)
			}
			replay := img.Replay()
			for i, data := range b.log[c.at:] {
				_, records, err := metadata.DecodeBatch(data)
				if err == nil {
					err = replay.Apply(img.Offset+1+int64(i), records)
				}
				if err != nil {
					rt.Fatal(err)
				}
			}
			if replay.Image().Hash() != b.img.Hash() {
				rt.Fatalf("a snapshot after %d batches and the rest lead to another image", c.at)
			}
		}
	})
}

func randomRequest(rt *rapid.T, img *metadata.Image) kmsg.Request {
	name := func() string { return fmt.Sprintf("t%d", rapid.IntRange(0, 5).Draw(rt, "topic")) }
	broker := func() int32 { return rapid.Int32Range(0, 3).Draw(rt, "broker") }
	switch rapid.IntRange(0, 12).Draw(rt, "kind") {
	case 0, 1:
		partitions, factor := rapid.Int32Range(-1, 4).Draw(rt, "partitions"), rapid.Int16Range(-1, 3).Draw(rt, "factor")
		return createTopics(with(topic(name(), partitions, factor), "retention.ms="+fmt.Sprint(partitions)), topic(name(), 2, 1))
	case 2:
		return createTopics(by(topic(name(), -1, -1), []int32{broker(), broker()}, []int32{broker(), broker()}))
	case 3:
		return deleteTopics(byName(name()), byName(name()))
	case 4:
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Topics = []kmsg.CreatePartitionsRequestTopic{createPartitions(name(), rapid.Int32Range(0, 6).Draw(rt, "count"))}
		return req
	case 5:
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		op := rapid.SampledFrom([]string{"set retention.ms=1", "delete retention.ms", "append cleanup.policy=compact"}).Draw(rt, "op")
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{altering(ofTopic, name(), op), altering(ofGroup, "g", op)}
		return req
	case 6:
		req := kmsg.NewPtrAllocateProducerIDsRequest()
		if b, ok := img.Broker(broker()); ok {
			req.BrokerID, req.BrokerEpoch = b.ID, b.Epoch
		}
		return req
	case 7:
		return electing(rapid.Int8Range(0, 1).Draw(rt, "election"), name(), rapid.Int32Range(0, 2).Draw(rt, "partition"))
	case 8:
		var replicas []int32
		for range rapid.IntRange(0, 3).Draw(rt, "replicas") {
			replicas = append(replicas, broker())
		}
		return assigning(name(), rapid.Int32Range(0, 2).Draw(rt, "partition"), replicas)
	case 9:
		req := kmsg.NewPtrUnregisterBrokerRequest()
		req.BrokerID = broker()
		return req
	case 10:
		return quotas(entry("user=u client-id="+name(), rapid.SampledFrom([]string{"producer_byte_rate=5", "producer_byte_rate=6", "producer_byte_rate"}).Draw(rt, "quota")))
	case 11:
		return scram(rapid.SampledFrom([]string{"set " + name() + " 1 4096 pw", "delete " + name() + " 1"}).Draw(rt, "credential"))
	default:
		return registration(broker(), rapid.Byte().Draw(rt, "start"))
	}
}

func checkImage(rt *rapid.T, before, now *metadata.Image) {
	count := 0
	for t := range now.Topics() {
		if byID, _ := now.TopicByID(t.ID); byID != t {
			rt.Fatalf("topic %s is not found by its id", t.Name)
		}
		if len(t.Partitions) == 0 {
			rt.Fatalf("topic %s has no partitions", t.Name)
		}
		old, _ := before.TopicByID(t.ID)
		for i, p := range t.Partitions {
			count++
			checkPartition(rt, t.Name, int32(i), p)
			if old != nil && i < len(old.Partitions) {
				checkEpochs(rt, t.Name, old.Partitions[i], p)
			}
		}
	}
	if count != now.PartitionCount() {
		rt.Fatalf("%d partitions are counted as %d", count, now.PartitionCount())
	}
	if now.NextProducerID() < before.NextProducerID() {
		rt.Fatal("producer ids go back")
	}
	for _, b := range now.Brokers() {
		if was, ok := before.Broker(b.ID); ok && b.Epoch < was.Epoch {
			rt.Fatalf("the epoch of broker %d goes back", b.ID)
		}
	}
}

func checkPartition(rt *rapid.T, topic string, index int32, p *metadata.Partition) {
	if p.Index != index || len(p.Replicas) == 0 || len(p.ISR) == 0 {
		rt.Fatalf("%s-%d: %+v", topic, index, p)
	}
	for _, r := range p.ISR {
		if !slices.Contains(p.Replicas, r) {
			rt.Fatalf("%s-%d: the ISR is not among the replicas: %+v", topic, index, p)
		}
	}
	if p.Leader >= 0 && !slices.Contains(p.ISR, p.Leader) {
		rt.Fatalf("%s-%d: the leader is not in the ISR: %+v", topic, index, p)
	}
	sorted := slices.Sorted(slices.Values(p.Replicas))
	if len(slices.Compact(sorted)) != len(p.Replicas) {
		rt.Fatalf("%s-%d: a replica twice: %+v", topic, index, p)
	}
}

// checkEpochs: nothing changes without a step of the partition epoch, no leader
// without one of the leader epoch.
func checkEpochs(rt *rapid.T, topic string, old, now *metadata.Partition) {
	if old == now {
		return
	}
	if now.PartitionEpoch <= old.PartitionEpoch || now.LeaderEpoch < old.LeaderEpoch {
		rt.Fatalf("%s-%d: epochs do not rise from %+v to %+v", topic, now.Index, old, now)
	}
	if now.Leader != old.Leader && now.LeaderEpoch == old.LeaderEpoch {
		rt.Fatalf("%s-%d: another leader in the same epoch: %+v to %+v", topic, now.Index, old, now)
	}
}
