//go:build cgo

package confluent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const askMs = 10_000

func TestMain(m *testing.M) {
	_, librdkafka := kafka.LibraryVersion()
	harness.Describe("confluentinc/confluent-kafka-go", harness.ModuleVersion("github.com/confluentinc/confluent-kafka-go/v2")+", librdkafka "+librdkafka)
	const quick = "200"
	harness.Main(m, map[string]string{
		"group.consumer.min.heartbeat.interval.ms": quick, "group.consumer.heartbeat.interval.ms": quick,
	})
}

func TestCases(t *testing.T) {
	cases.Run(t, newClient(), cases.Common("codec-zstd", "idempotent", "group-range", "group-roundrobin", "group-cooperative-sticky",
		"group-consumer", "admin", "transaction", "fencing"), lacks)
}

// client is confluent-kafka-go as the cases want it.
type client struct{}

func config(extra ...string) *kafka.ConfigMap {
	m := kafka.ConfigMap{"bootstrap.servers": harness.Shared.Addr(), "log_level": "3"} // errors only
	for i := 0; i < len(extra); i += 2 {
		m[extra[i]] = extra[i+1]
	}
	return &m
}

func consumerConfig(group string, extra ...string) *kafka.ConfigMap {
	return config(append([]string{"group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false", "check.crcs", "true"}, extra...)...)
}

func (client) Send(ctx context.Context, topic string, with cases.Settings, records []cases.Record) error {
	settings := []string{"linger.ms", "5", "batch.num.messages", "100"}
	if with.Codec != "" {
		settings = append(settings, "compression.codec", with.Codec)
	}
	if with.Acks != "" {
		settings = append(settings, "acks", with.Acks)
	}
	if with.Idempotent {
		settings = append(settings, "enable.idempotence", "true")
	}
	p, err := kafka.NewProducer(config(settings...))
	if err != nil {
		return err
	}
	defer p.Close()
	return send(ctx, p, topic, records)
}

// send waits for each record's report.
func send(ctx context.Context, p *kafka.Producer, topic string, records []cases.Record) error {
	reports := make(chan kafka.Event, len(records))
	for _, r := range records {
		m := &kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: r.Partition}, Key: r.Key, Value: r.Value, Timestamp: r.Time,
		}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		if err := p.Produce(m, reports); err != nil {
			return err
		}
	}
	for range records {
		select {
		case e := <-reports:
			if err := e.(*kafka.Message).TopicPartition.Error; err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func record(m *kafka.Message) cases.Record {
	r := cases.Record{Partition: m.TopicPartition.Partition, Offset: int64(m.TopicPartition.Offset), Key: m.Key, Value: m.Value, Time: m.Timestamp}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, cases.Header{Key: h.Key, Value: h.Value})
	}
	return r
}

// next is the consumer's next message, nil when none has come for a moment.
func next(c *kafka.Consumer) (*kafka.Message, error) {
	m, err := c.ReadMessage(50 * time.Millisecond)
	var code kafka.Error
	if errors.As(err, &code) && code.Code() == kafka.ErrTimedOut {
		return nil, nil
	}
	return m, err
}

func (client) Read(ctx context.Context, topic string, partitions int, level cases.Isolation, deliver func(cases.Record) bool) error {
	c, err := kafka.NewConsumer(consumerConfig("g-read", "isolation.level", string(level)))
	if err != nil {
		return err
	}
	defer c.Close()
	var from []kafka.TopicPartition
	for p := range int32(partitions) {
		from = append(from, kafka.TopicPartition{Topic: &topic, Partition: p, Offset: kafka.OffsetBeginning})
	}
	if err := c.Assign(from); err != nil {
		return err
	}
	for ctx.Err() == nil {
		m, err := next(c)
		if err != nil {
			return err
		}
		if m != nil && !deliver(record(m)) {
			return nil
		}
	}
	return ctx.Err()
}

// member is a consumer in a group, in a goroutine of its own.
type member struct {
	consumer *kafka.Consumer
	deliver  func(cases.Record)
	leaving  chan struct{}
	ended    chan error
	held     atomic.Int64
}

func (client) Join(topic, group, assignor string, deliver func(cases.Record)) (cases.Member, error) {
	extra := []string{"heartbeat.interval.ms", "200", "partition.assignment.strategy", assignor}
	if assignor == "consumer" { // the broker divides, and says how often it wants a heartbeat
		extra = []string{"group.protocol", "consumer"}
	}
	c, err := kafka.NewConsumer(consumerConfig(group, extra...))
	if err != nil {
		return nil, err
	}
	if err := c.Subscribe(topic, nil); err != nil {
		return nil, err
	}
	m := &member{consumer: c, deliver: deliver, leaving: make(chan struct{}), ended: make(chan error, 1)}
	go func() { m.ended <- errors.Join(m.run(), c.Close()) }()
	return m, nil
}

// run commits whenever nothing more is there at once, and before it leaves.
func (m *member) run() error {
	delivered := false
	for {
		msg, err := next(m.consumer)
		if err != nil {
			return err
		}
		held, err := m.consumer.Assignment()
		if err != nil {
			return err
		}
		m.held.Store(int64(len(held)))
		if msg != nil {
			m.deliver(record(msg))
			delivered = true
			continue
		}
		if delivered {
			if _, err := m.consumer.Commit(); err != nil {
				return err
			}
			delivered = false
		}
		select {
		case <-m.leaving:
			return nil
		default:
		}
	}
}

// Held implements cases.Member.
func (m *member) Held() (int, error) { return int(m.held.Load()), nil }

// Leave implements cases.Member.
func (m *member) Leave() error {
	close(m.leaving)
	return <-m.ended
}

// asking makes a consumer for one question.
func asking(group string, ask func(*kafka.Consumer) error) error {
	c, err := kafka.NewConsumer(consumerConfig(group))
	if err != nil {
		return err
	}
	return errors.Join(ask(c), c.Close())
}

func (client) OffsetAt(_ context.Context, topic string, at time.Time) (offset int64, err error) {
	err = asking("g-time", func(c *kafka.Consumer) error {
		times := []kafka.TopicPartition{{Topic: &topic, Offset: kafka.Offset(at.UnixMilli())}}
		offsets, err := c.OffsetsForTimes(times, askMs)
		if err != nil {
			return err
		}
		offset = int64(offsets[0].Offset) // the end, which is negative, when there is none
		return offsets[0].Error
	})
	return offset, err
}

func (client) Ends(_ context.Context, topic string) (earliest, latest int64, err error) {
	err = asking("g-ends", func(c *kafka.Consumer) (err error) {
		earliest, latest, err = c.QueryWatermarkOffsets(topic, 0, askMs)
		return err
	})
	return earliest, latest, err
}

func (client) Committed(_ context.Context, topic, group string) (offset int64, err error) {
	err = asking(group, func(c *kafka.Consumer) error {
		offsets, err := c.Committed([]kafka.TopicPartition{{Topic: &topic}}, askMs)
		if err != nil {
			return err
		}
		offset = int64(offsets[0].Offset)
		return offsets[0].Error
	})
	return offset, err
}

// producer is a producer with a transactional id, and the consumer whose offsets it may send.
type producer struct {
	*kafka.Producer
	consumer *kafka.Consumer
	input    string
}

func (client) Transactional(ctx context.Context, id, group, input string) (cases.Transactional, error) {
	p, err := kafka.NewProducer(config("transactional.id", id))
	if err != nil {
		return nil, err
	}
	c, err := kafka.NewConsumer(consumerConfig(group))
	if err != nil {
		return nil, err
	}
	return &producer{p, c, input}, p.InitTransactions(ctx)
}

func (client) Fenced(err error) bool {
	var code kafka.Error
	return errors.As(err, &code) && code.Code() == kafka.ErrFenced
}

func (p *producer) Begin() error { return p.BeginTransaction() }

func (p *producer) Send(ctx context.Context, topic string, records []cases.Record) error {
	return send(ctx, p.Producer, topic, records)
}

func (p *producer) SendOffset(ctx context.Context, next int64) error {
	group, err := p.consumer.GetConsumerGroupMetadata()
	if err != nil {
		return err
	}
	return p.SendOffsetsToTransaction(ctx, []kafka.TopicPartition{{Topic: &p.input, Offset: kafka.Offset(next)}}, group)
}

func (p *producer) Commit(ctx context.Context) error { return p.CommitTransaction(ctx) }

func (p *producer) Abort(ctx context.Context) error { return p.AbortTransaction(ctx) }

func (p *producer) Close() {
	p.Producer.Close()
	_ = p.consumer.Close()
}

// administering makes an admin client for one request.
func administering(ask func(*kafka.AdminClient) error) error {
	adm, err := kafka.NewAdminClient(config())
	if err != nil {
		return err
	}
	defer adm.Close()
	return ask(adm)
}

// forSeconds is what the broker may take. The default of old versions is no time at all, in which Kafka makes no topic.
var forSeconds = kafka.SetAdminOperationTimeout(askMs * time.Millisecond)

// failed is the first of a request's errors.
func failed(results []kafka.TopicResult, err error) error {
	if err == nil && results[0].Error.Code() != kafka.ErrNoError {
		return results[0].Error
	}
	return err
}

func (client) CreateTopic(ctx context.Context, topic string, partitions int) error {
	return administering(func(adm *kafka.AdminClient) error {
		return failed(adm.CreateTopics(ctx, []kafka.TopicSpecification{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}}, forSeconds))
	})
}

func (client) Partitions(_ context.Context, topic string) (n int, err error) {
	err = administering(func(adm *kafka.AdminClient) error {
		meta, err := adm.GetMetadata(nil, true, askMs)
		if err == nil {
			n = len(meta.Topics[topic].Partitions)
		}
		return err
	})
	return n, err
}

func (client) AddPartitions(ctx context.Context, topic string, total int) error {
	return administering(func(adm *kafka.AdminClient) error {
		return failed(adm.CreatePartitions(ctx, []kafka.PartitionsSpecification{{Topic: topic, IncreaseTo: total}}, forSeconds))
	})
}

func (client) SetConfig(ctx context.Context, topic, key, value string) error {
	return administering(func(adm *kafka.AdminClient) error {
		results, err := alterConfig(ctx, adm, kafka.ConfigResource{
			Type: kafka.ResourceTopic, Name: topic, Config: []kafka.ConfigEntry{setTo(key, value)},
		})
		if err == nil && results[0].Error.Code() != kafka.ErrNoError {
			return results[0].Error
		}
		return err
	})
}

func (client) Config(ctx context.Context, topic, key string) (value string, err error) {
	err = administering(func(adm *kafka.AdminClient) error {
		configs, err := adm.DescribeConfigs(ctx, []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: topic}})
		if err == nil {
			value = configs[0].Config[key].Value
		}
		return err
	})
	return value, err
}

func (client) DeleteTopic(ctx context.Context, topic string) error {
	return administering(func(adm *kafka.AdminClient) error { return failed(adm.DeleteTopics(ctx, []string{topic}, forSeconds)) })
}
