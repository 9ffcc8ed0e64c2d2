package kafkago

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func TestMain(m *testing.M) {
	harness.Describe("segmentio/kafka-go", harness.ModuleVersion("github.com/segmentio/kafka-go"))
	harness.Main(m, nil)
}

func TestCases(t *testing.T) {
	cases.Run(t, newClient(), cases.Common("codec-zstd", "group-range", "group-roundrobin", "admin"), lacks)
}

// caseClient is kafka-go as the cases want it.
type caseClient struct{}

var codecs = map[string]kafka.Compression{"": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}

// Send writes each partition with a writer of its own, since a message does not name its partition.
func (caseClient) Send(ctx context.Context, topic string, with cases.Settings, records []cases.Record) error {
	byPartition := map[int][]kafka.Message{}
	for _, r := range records {
		m := kafka.Message{Key: r.Key, Value: r.Value, Time: r.Time}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		byPartition[int(r.Partition)] = append(byPartition[int(r.Partition)], m)
	}
	for p, messages := range byPartition {
		w := newWriter(topic, with, kafka.BalancerFunc(func(kafka.Message, ...int) int { return p }))
		if err := errors.Join(w.WriteMessages(ctx, messages...), w.Close()); err != nil {
			return err
		}
	}
	return nil
}

func record(m kafka.Message) cases.Record {
	r := cases.Record{Partition: int32(m.Partition), Offset: m.Offset, Key: m.Key, Value: m.Value, Time: m.Time}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, cases.Header{Key: h.Key, Value: h.Value})
	}
	return r
}

func (caseClient) Read(ctx context.Context, topic string, partitions int, level cases.Isolation, deliver func(cases.Record) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	got, failed := make(chan kafka.Message), make(chan error, partitions)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	config := kafka.ReaderConfig{Brokers: []string{harness.Shared.Addr()}, Topic: topic, MaxWait: 100 * time.Millisecond}
	if level == cases.ReadCommitted {
		config.IsolationLevel = kafka.ReadCommitted
	}
	for config.Partition = range partitions {
		r := kafka.NewReader(config)
		wg.Go(func() { failed <- forward(ctx, r, got) })
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
func forward(ctx context.Context, r *kafka.Reader, to chan<- kafka.Message) error {
	defer r.Close()
	for {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return err
		}
		select {
		case to <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// groupReader is a reader in a group. What it holds only the broker tells.
type groupReader struct {
	group, clientID string
	cancel          context.CancelFunc
	ended           chan error
}

var balancers = map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}

func (caseClient) Join(topic, group, assignor string, deliver func(cases.Record)) (cases.Member, error) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &groupReader{group: group, clientID: fmt.Sprint("member-", time.Now().UnixNano()), cancel: cancel, ended: make(chan error, 1)}
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{harness.Shared.Addr()}, GroupID: group, Topic: topic, GroupBalancers: []kafka.GroupBalancer{balancers[assignor]},
		Dialer:  &kafka.Dialer{ClientID: m.clientID, Timeout: 10 * time.Second},
		MaxWait: 100 * time.Millisecond, HeartbeatInterval: 200 * time.Millisecond, StartOffset: kafka.FirstOffset,
	})
	go func() {
		for {
			msg, err := r.FetchMessage(ctx)
			if err == nil {
				deliver(record(msg))
				err = r.CommitMessages(context.Background(), msg)
			}
			if err != nil {
				if errors.Is(err, context.Canceled) {
					err = nil
				}
				m.ended <- errors.Join(err, r.Close())
				return
			}
		}
	}()
	return m, nil
}

// Held implements cases.Member.
func (m *groupReader) Held() (int, error) {
	w, err := harness.Dial(harness.Shared.Addr(), 5*time.Second)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 3, []string{m.group}
	resp, err := w.Ask(req, 10*time.Second)
	if err != nil {
		return 0, err
	}
	held := 0
	for _, member := range resp.(*kmsg.DescribeGroupsResponse).Groups[0].Members {
		var assignment kmsg.ConsumerMemberAssignment
		if member.ClientID != m.clientID || len(member.MemberAssignment) == 0 {
			continue
		}
		if err := assignment.ReadFrom(member.MemberAssignment); err != nil {
			return 0, err
		}
		for _, topic := range assignment.Topics {
			held += len(topic.Partitions)
		}
	}
	return held, nil
}

// Leave implements cases.Member.
func (m *groupReader) Leave() error {
	m.cancel()
	return <-m.ended
}

func withLeader(ctx context.Context, topic string, ask func(*kafka.Conn) error) error {
	conn, err := kafka.DialLeader(ctx, "tcp", harness.Shared.Addr(), topic, 0)
	if err != nil {
		return err
	}
	return errors.Join(ask(conn), conn.Close())
}

func (caseClient) OffsetAt(ctx context.Context, topic string, at time.Time) (offset int64, err error) {
	err = withLeader(ctx, topic, func(c *kafka.Conn) (err error) {
		offset, err = c.ReadOffset(at)
		return err
	})
	return offset, err
}

func (caseClient) Ends(ctx context.Context, topic string) (earliest, latest int64, err error) {
	err = withLeader(ctx, topic, func(c *kafka.Conn) (err error) {
		earliest, latest, err = c.ReadOffsets()
		return err
	})
	return earliest, latest, err
}

// apart is a client with connections of its own, and with what it knows of the topics.
func apart() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(harness.Shared.Addr()), Timeout: 10 * time.Second, Transport: &kafka.Transport{}}
}

func (caseClient) Committed(ctx context.Context, topic, group string) (int64, error) {
	offsets, err := apart().OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0}}})
	if err != nil {
		return 0, err
	}
	p := offsets.Topics[topic][0]
	return p.CommittedOffset, errors.Join(offsets.Error, p.Error)
}
