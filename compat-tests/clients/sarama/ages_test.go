package sarama

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// TestOldAges speaks as a client of ages whose messages are older than record batches: messages of format v0 up to 0.9,
// of v1 up to 0.10. What one age wrote the others read.
func TestOldAges(t *testing.T) {
	ages := []sarama.KafkaVersion{sarama.V0_8_2_0, sarama.V0_9_0_0, sarama.V0_10_0_0, sarama.V0_10_2_0, sarama.V0_11_0_0}
	for _, codec := range []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4} {
		t.Run(codec.String(), func(t *testing.T) {
			topic := createTopic(t, 1)
			n := 0
			for _, age := range ages {
				if codec == sarama.CompressionLZ4 && !age.IsAtLeast(sarama.V0_10_0_0) {
					continue // the client itself refuses
				}
				c := config(age)
				c.Producer.Compression, c.Producer.RequiredAcks = codec, sarama.WaitForAll
				prod := try[sarama.SyncProducer](t)(sarama.NewSyncProducer(brokers(), c))
				var sent []*sarama.ProducerMessage
				for ; len(sent) < 100; n++ {
					sent = append(sent, &sarama.ProducerMessage{Topic: topic, Key: oldKey(n), Value: sarama.StringEncoder(strings.Repeat("v", n))})
				}
				if err := prod.SendMessages(sent); err != nil {
					t.Fatalf("%v: %v", age, err)
				}
			}
			for _, age := range ages {
				if codec == sarama.CompressionLZ4 && !age.IsAtLeast(sarama.V0_10_0_0) {
					continue // the format's own checksum of LZ4 frames is one that only other clients know
				}
				readOld(t, age, topic, 0, n)
				readOld(t, age, topic, 150, n)
			}
		})
	}
}

func oldKey(i int) sarama.Encoder {
	if i%3 == 0 {
		return nil
	}
	return sarama.StringEncoder(fmt.Sprint(i))
}

func readOld(t *testing.T, age sarama.KafkaVersion, topic string, from, to int) {
	t.Helper()
	cons := try[sarama.Consumer](t)(sarama.NewConsumer(brokers(), config(age)))
	part := try[sarama.PartitionConsumer](t)(cons.ConsumePartition(topic, 0, int64(from)))
	deadline := time.After(30 * time.Second)
	for i := from; i < to; i++ {
		select {
		case m := <-part.Messages():
			if m.Offset != int64(i) || len(m.Value) != i || (m.Key == nil) != (i%3 == 0) || m.Key != nil && string(m.Key) != fmt.Sprint(i) {
				t.Fatalf("%v: message %d: offset %d, key %q, %d bytes", age, i, m.Offset, m.Key, len(m.Value))
			}
		case err := <-part.Errors():
			t.Fatalf("%v: %v", age, err)
		case <-deadline:
			t.Fatalf("%v: no message %d", age, i)
		}
	}
}

// TestOldOffsets commits and fetches offsets as clients of several ages, and asks for the ends of the partition.
func TestOldOffsets(t *testing.T) {
	for _, age := range []sarama.KafkaVersion{sarama.V0_8_2_0, sarama.V0_9_0_0, sarama.V0_10_0_0, sarama.V0_10_1_0} {
		t.Run(age.String(), func(t *testing.T) {
			topic, group := createTopic(t, 1), "g-"+age.String()
			c := config(age)
			prod := try[sarama.SyncProducer](t)(sarama.NewSyncProducer(brokers(), c))
			for range 3 {
				if _, _, err := prod.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("x")}); err != nil {
					t.Fatal(err)
				}
			}
			client := try[sarama.Client](t)(sarama.NewClient(brokers(), c))
			for time, want := range map[int64]int64{sarama.OffsetOldest: 0, sarama.OffsetNewest: 3} {
				if got, err := client.GetOffset(topic, 0, time); err != nil || got != want {
					t.Errorf("offset at %d is %d, %v", time, got, err)
				}
			}
			for round, want := range []int64{sarama.OffsetOldest, 2} {
				manager, err := sarama.NewOffsetManagerFromClient(group, client)
				if err != nil {
					t.Fatal(err)
				}
				part, err := manager.ManagePartition(topic, 0)
				if err != nil {
					t.Fatal(err)
				}
				if next, _ := part.NextOffset(); next != want {
					t.Errorf("round %d begins at %d, want %d", round, next, want)
				}
				part.MarkOffset(2, "note")
				if err := part.Close(); err != nil {
					t.Error(err)
				}
				if err := manager.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
