package sarama

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
)

func TestCases(t *testing.T) {
	cases.Run(t, newClient(), cases.Common("codec-zstd", "idempotent", "group-range", "group-roundrobin", "group-sticky",
		"admin", "transaction", "fencing"), lacks)
}

// client is sarama as the cases want it.
type client struct{}

var codecs = map[string]sarama.CompressionCodec{
	"": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

var acks = map[string]sarama.RequiredAcks{"": sarama.WaitForAll, "all": sarama.WaitForAll, "1": sarama.WaitForLocal, "0": sarama.NoResponse}

func (client) Send(_ context.Context, topic string, with cases.Settings, records []cases.Record) error {
	c := config(sarama.MaxVersion)
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Compression, c.Producer.RequiredAcks = codecs[with.Codec], acks[with.Acks]
	if c.Producer.Idempotent = with.Idempotent; with.Idempotent {
		c.Net.MaxOpenRequests = 1
	}
	p, err := sarama.NewSyncProducer(brokers(), c)
	if err != nil {
		return err
	}
	return errors.Join(p.SendMessages(messages(topic, records)), p.Close())
}

func messages(topic string, records []cases.Record) (sent []*sarama.ProducerMessage) {
	for _, r := range records {
		m := &sarama.ProducerMessage{Topic: topic, Partition: r.Partition, Timestamp: r.Time}
		if r.Key != nil {
			m.Key = sarama.ByteEncoder(r.Key)
		}
		if r.Value != nil {
			m.Value = sarama.ByteEncoder(r.Value)
		}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
		}
		sent = append(sent, m)
	}
	return sent
}

func record(m *sarama.ConsumerMessage) cases.Record {
	r := cases.Record{Partition: m.Partition, Offset: m.Offset, Key: m.Key, Value: m.Value, Time: m.Timestamp}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, cases.Header{Key: string(h.Key), Value: h.Value})
	}
	return r
}

func (client) Read(ctx context.Context, topic string, partitions int, level cases.Isolation, deliver func(cases.Record) bool) (err error) {
	c := config(sarama.MaxVersion)
	if level == cases.ReadCommitted {
		c.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	cons, err := sarama.NewConsumer(brokers(), c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cons.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	got, failed := make(chan *sarama.ConsumerMessage), make(chan error, partitions)
	for p := range partitions {
		part, err := cons.ConsumePartition(topic, int32(p), sarama.OffsetOldest)
		if err != nil {
			return err
		}
		wg.Go(func() { failed <- forward(ctx, part, got) })
	}
	for {
		select {
		case m := <-got:
			if !deliver(record(m)) {
				return nil
			}
		case err := <-failed:
			return err
		}
	}
}

// forward hands on what comes from a partition until ctx is over.
func forward(ctx context.Context, part sarama.PartitionConsumer, to chan<- *sarama.ConsumerMessage) error {
	defer part.Close()
	for {
		select {
		case m := <-part.Messages():
			select {
			case to <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
		case err := <-part.Errors():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// groupMember runs a consumer group's sessions.
type groupMember struct {
	group   sarama.ConsumerGroup
	deliver func(cases.Record)
	cancel  context.CancelFunc
	ended   chan error

	mu   sync.Mutex
	held int
}

func (client) Join(topic, name, assignor string, deliver func(cases.Record)) (cases.Member, error) {
	c := config(sarama.MaxVersion)
	setStrategy(c, assignor)
	c.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	group, err := sarama.NewConsumerGroup(brokers(), name, c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &groupMember{group: group, deliver: deliver, cancel: cancel, ended: make(chan error, 1)}
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			err = group.Consume(ctx, []string{topic}, m)
		}
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil
		}
		m.ended <- err
	}()
	return m, nil
}

func (m *groupMember) setHeld(held int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = held
}

// Setup implements sarama.ConsumerGroupHandler.
func (m *groupMember) Setup(s sarama.ConsumerGroupSession) error {
	held := 0
	for _, partitions := range s.Claims() {
		held += len(partitions)
	}
	m.setHeld(held)
	return nil
}

// Cleanup implements sarama.ConsumerGroupHandler.
func (m *groupMember) Cleanup(sarama.ConsumerGroupSession) error {
	m.setHeld(0)
	return nil
}

// ConsumeClaim implements sarama.ConsumerGroupHandler.
func (m *groupMember) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for msg := range c.Messages() {
		m.deliver(record(msg))
		s.MarkMessage(msg, "")
	}
	return nil
}

// Held implements cases.Member.
func (m *groupMember) Held() (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held, nil
}

// Leave implements cases.Member.
func (m *groupMember) Leave() error {
	m.cancel()
	return errors.Join(<-m.ended, m.group.Close())
}

func offset(topic string, at int64) (int64, error) {
	c, err := sarama.NewClient(brokers(), config(sarama.MaxVersion))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.GetOffset(topic, 0, at)
}

func (client) OffsetAt(_ context.Context, topic string, at time.Time) (int64, error) {
	return offset(topic, at.UnixMilli())
}

func (client) Ends(_ context.Context, topic string) (earliest, latest int64, err error) {
	earliest, err = offset(topic, sarama.OffsetOldest)
	if err != nil {
		return 0, 0, err
	}
	latest, err = offset(topic, sarama.OffsetNewest)
	return earliest, latest, err
}

func (c client) Committed(_ context.Context, topic, group string) (next int64, err error) {
	err = c.admin(func(adm sarama.ClusterAdmin) error {
		offsets, err := adm.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
		if err != nil {
			return err
		}
		next = offsets.GetBlock(topic, 0).Offset
		return nil
	})
	return next, err
}

// admin makes an admin client for one call.
func (client) admin(call func(sarama.ClusterAdmin) error) error {
	adm, err := sarama.NewClusterAdmin(brokers(), config(sarama.MaxVersion))
	if err != nil {
		return err
	}
	return errors.Join(call(adm), adm.Close())
}

func (c client) CreateTopic(_ context.Context, topic string, partitions int) error {
	return c.admin(func(adm sarama.ClusterAdmin) error {
		return adm.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}, false)
	})
}

func (c client) Partitions(_ context.Context, topic string) (n int, err error) {
	err = c.admin(func(adm sarama.ClusterAdmin) error {
		topics, err := adm.ListTopics()
		n = int(topics[topic].NumPartitions)
		return err
	})
	return n, err
}

func (c client) AddPartitions(_ context.Context, topic string, total int) error {
	return c.admin(func(adm sarama.ClusterAdmin) error { return adm.CreatePartitions(topic, int32(total), nil, false) })
}

func (c client) SetConfig(_ context.Context, topic, key, value string) error {
	return c.admin(func(adm sarama.ClusterAdmin) error { return setConfig(adm, topic, key, value) })
}

func (c client) Config(_ context.Context, topic, key string) (value string, err error) {
	err = c.admin(func(adm sarama.ClusterAdmin) error {
		entries, err := adm.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{key}})
		if err == nil && len(entries) > 0 {
			value = entries[0].Value
		}
		return err
	})
	return value, err
}

func (c client) Groups(context.Context) (names []string, err error) {
	err = c.admin(func(adm sarama.ClusterAdmin) error {
		groups, err := adm.ListConsumerGroups()
		for name := range groups {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

func (c client) DeleteTopic(_ context.Context, topic string) error {
	return c.admin(func(adm sarama.ClusterAdmin) error { return adm.DeleteTopic(topic) })
}
