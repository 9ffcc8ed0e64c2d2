package sarama

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func TestMain(m *testing.M) {
	harness.Describe(clientName, harness.ModuleVersion("github.com/IBM/sarama"))
	harness.Main(m, nil)
}

func config(version sarama.KafkaVersion) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = version
	c.Producer.Return.Successes = true
	c.Consumer.Return.Errors = true
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	return c
}

func brokers() []string { return []string{harness.Shared.Addr()} }

// try makes a value or ends the test, and closes it at its end.
func try[T interface{ Close() error }](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := v.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return v
	}
}

func createTopic(t *testing.T, partitions int32) string {
	t.Helper()
	name := harness.Name(t, "sarama")
	adm := try[sarama.ClusterAdmin](t)(sarama.NewClusterAdmin(brokers(), config(sarama.MaxVersion)))
	if err := adm.CreateTopic(name, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false); err != nil {
		t.Fatal(err)
	}
	harness.Settle(t, name, int(partitions))
	return name
}

// TestProduceConsume speaks as clients of several ages, with each codec.
func TestProduceConsume(t *testing.T) {
	versions := map[string]sarama.KafkaVersion{"1.0": sarama.V1_0_0_0, "2.1": sarama.V2_1_0_0, "newest": sarama.MaxVersion}
	codecs := []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD}
	for age, version := range versions {
		for _, codec := range codecs {
			if codec == sarama.CompressionZSTD && (!version.IsAtLeast(sarama.V2_1_0_0) || lacks["codec-zstd"] != "") {
				continue // the client itself refuses, or cannot
			}
			for _, idempotent := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/idempotent=%t", age, codec, idempotent), func(t *testing.T) {
					c := config(version)
					c.Producer.Compression = codec
					c.Producer.RequiredAcks = sarama.WaitForAll
					if c.Producer.Idempotent = idempotent; idempotent {
						c.Net.MaxOpenRequests = 1
					}
					roundTrip(t, c)
				})
			}
		}
	}
}

func roundTrip(t *testing.T, c *sarama.Config) {
	const count = 300
	topic := createTopic(t, 1)
	prod := try[sarama.SyncProducer](t)(sarama.NewSyncProducer(brokers(), c))
	var sent []*sarama.ProducerMessage
	for i := range count {
		m := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprint(i)), Value: sarama.StringEncoder(strings.Repeat("v", i))}
		if i%3 == 0 {
			m.Key = nil
		}
		m.Headers = []sarama.RecordHeader{{Key: []byte("i"), Value: fmt.Append(nil, i)}}
		sent = append(sent, m)
	}
	if err := prod.SendMessages(sent); err != nil {
		t.Fatal(err)
	}
	cons := try[sarama.Consumer](t)(sarama.NewConsumer(brokers(), c))
	part := try[sarama.PartitionConsumer](t)(cons.ConsumePartition(topic, 0, sarama.OffsetOldest))
	deadline := time.After(30 * time.Second)
	for i := range count {
		select {
		case m := <-part.Messages():
			want, _ := sent[i].Value.Encode()
			if m.Offset != int64(i) || string(m.Value) != string(want) || (m.Key == nil) != (i%3 == 0) {
				t.Fatalf("message %d: offset %d, key %q, %d bytes", i, m.Offset, m.Key, len(m.Value))
			}
			if len(m.Headers) != 1 || string(m.Headers[0].Value) != fmt.Sprint(i) {
				t.Fatalf("message %d has headers %v", i, m.Headers)
			}
		case err := <-part.Errors():
			t.Fatal(err)
		case <-deadline:
			t.Fatalf("%d of %d messages came", i, count)
		}
	}
}

// member is a group's consumer that gathers values.
type member struct {
	mu     sync.Mutex
	values map[string]int
	claims map[int32]bool
}

func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims = map[int32]bool{}
	for _, parts := range s.Claims() {
		for _, p := range parts {
			m.claims[p] = true
		}
	}
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for msg := range c.Messages() {
		m.mu.Lock()
		m.values[string(msg.Value)]++
		m.mu.Unlock()
		s.MarkMessage(msg, "")
	}
	return nil
}

func (m *member) state() (values, claims int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values), len(m.claims)
}

func TestGroups(t *testing.T) {
	for name := range strategies {
		t.Run(name, func(t *testing.T) { group(t, name) })
	}
}

func group(t *testing.T, strategy string) {
	const partitions, count = 6, 600
	topic := createTopic(t, partitions)
	c := config(sarama.MaxVersion)
	setStrategy(c, strategy)
	c.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	all := &member{values: map[string]int{}}
	second := &member{values: map[string]int{}}
	join := func(m *member) {
		cg, err := sarama.NewConsumerGroup(brokers(), "g-"+topic, c)
		if err != nil {
			t.Error(err)
			return
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := cg.Consume(ctx, []string{topic}, m); err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) && ctx.Err() == nil {
					t.Errorf("consume: %v", err)
					break
				}
			}
			if err := cg.Close(); err != nil {
				t.Errorf("leave: %v", err)
			}
		})
	}
	join(all)
	join(second)
	prod := try[sarama.SyncProducer](t)(sarama.NewSyncProducer(brokers(), c))
	for i := range count {
		if _, _, err := prod.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		a, ac := all.state()
		b, bc := second.state()
		if a+b >= count && ac == partitions/2 && bc == partitions/2 {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("members hold %d and %d partitions and have read %d and %d of %d", ac, bc, a, b, count)
		}
	}
	cancel()
	wg.Wait()
	checkCommitted(t, topic, count)
}

func checkCommitted(t *testing.T, topic string, want int64) {
	t.Helper()
	adm := try[sarama.ClusterAdmin](t)(sarama.NewClusterAdmin(brokers(), config(sarama.MaxVersion)))
	offsets, err := adm.ListConsumerGroupOffsets("g-"+topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, block := range offsets.Blocks[topic] {
		sum += max(0, block.Offset)
	}
	if sum != want {
		t.Errorf("committed offsets add up to %d, want %d", sum, want)
	}
	groups, err := adm.ListConsumerGroups()
	if err != nil || groups["g-"+topic] != "consumer" {
		t.Errorf("the group is listed as %q, %v", groups["g-"+topic], err)
	}
	if err := adm.DeleteConsumerGroup("g-" + topic); err != nil {
		t.Errorf("delete the group: %v", err)
	}
}

func TestAdmin(t *testing.T) {
	topic := createTopic(t, 2)
	adm := try[sarama.ClusterAdmin](t)(sarama.NewClusterAdmin(brokers(), config(sarama.MaxVersion)))
	if err := adm.CreatePartitions(topic, 4, nil, false); err != nil {
		t.Error(err)
	}
	value := "3600000"
	if err := setConfig(adm, topic, "retention.ms", value); err != nil {
		t.Error(err)
	}
	entries, err := adm.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}})
	if err != nil || len(entries) != 1 || entries[0].Value != value {
		t.Errorf("retention.ms: %+v, %v", entries, err)
	}
	listed, err := adm.ListTopics()
	if err != nil || listed[topic].NumPartitions != 4 {
		t.Errorf("listed: %+v, %v", listed[topic], err)
	}
	prod := try[sarama.SyncProducer](t)(sarama.NewSyncProducer(brokers(), config(sarama.MaxVersion)))
	for i := range 10 {
		if _, _, err := prod.SendMessage(&sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder("k"), Value: sarama.StringEncoder(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	client := try[sarama.Client](t)(sarama.NewClient(brokers(), config(sarama.MaxVersion)))
	var ends []int64
	for p := range int32(4) {
		end, err := client.GetOffset(topic, p, sarama.OffsetNewest)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	slices.Sort(ends)
	if ends[3] != 10 || ends[2] != 0 {
		t.Errorf("one key went to ends %v", ends)
	}
	if err := adm.DeleteTopic(topic); err != nil {
		t.Error(err)
	}
	if err := adm.DeleteTopic(topic); !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		t.Errorf("delete it again: %v", err)
	}
}
