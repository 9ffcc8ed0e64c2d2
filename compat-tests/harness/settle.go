package harness

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Settle waits, on Apache Kafka only, until a topic that was just created serves each of its partitions: Kafka answers
// CreateTopics before its partitions do, which some clients never get over. Ours answers after, so nothing is waited for.
func Settle(t testing.TB, topic string, partitions int) {
	t.Helper()
	if KindFromEnv() == Barnabas {
		return
	}
	w, err := Dial(Shared.Addr(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = 4
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	for p := range partitions {
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = int32(p), -1
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := listed(w, req)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("topic %s: %v", topic, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func listed(w *Wire, req *kmsg.ListOffsetsRequest) error {
	resp, err := w.Ask(req, 10*time.Second)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return fmt.Errorf("partition %d answers error %d", p.Partition, p.ErrorCode)
			}
		}
	}
	return nil
}
