package franz

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func TestMain(m *testing.M) {
	harness.Describe("twmb/franz-go", harness.ModuleVersion("github.com/twmb/franz-go"))
	harness.Main(m, nil)
}

func TestCases(t *testing.T) {
	names := cases.Common("codec-zstd", "idempotent", "group-range", "group-roundrobin", "group-sticky",
		"group-cooperative-sticky", "admin", "transaction", "fencing")
	cases.Run(t, caseClient{}, names, lacks)
}

// caseClient is franz-go as the cases want it.
type caseClient struct{}

func connect(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(newOptions(), append(opts, kgo.SeedBrokers(harness.Shared.Addr()), kgo.MetadataMinAge(100*time.Millisecond))...)...)
}

var codecs = map[string]kgo.CompressionCodec{
	"": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"": kgo.AllISRAcks(), "all": kgo.AllISRAcks(), "1": kgo.LeaderAck(), "0": kgo.NoAck()}

func (caseClient) Send(ctx context.Context, topic string, with cases.Settings, records []cases.Record) error {
	opts := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(acks[with.Acks]), kgo.ProducerBatchCompression(codecs[with.Codec]),
		kgo.ProducerBatchMaxBytes(4000), // several batches
	}
	if !with.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	cl, err := connect(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	return cl.ProduceSync(ctx, messages(topic, records)...).FirstErr()
}

func messages(topic string, records []cases.Record) (sent []*kgo.Record) {
	for _, r := range records {
		k := &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Time}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		sent = append(sent, k)
	}
	return sent
}

func record(r *kgo.Record) cases.Record {
	c := cases.Record{Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Time: r.Timestamp}
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, cases.Header{Key: h.Key, Value: h.Value})
	}
	return c
}

func (caseClient) Read(ctx context.Context, topic string, partitions int, level cases.Isolation, deliver func(cases.Record) bool) error {
	offsets := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		offsets[p] = kgo.NewOffset().AtStart()
	}
	opts := []kgo.Opt{kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets})}
	if level == cases.ReadCommitted {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	cl, err := connect(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if err := firstError(fetches); err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			if !deliver(record(r)) {
				return nil
			}
		}
	}
}

func firstError(fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		return e.Err
	}
	return nil
}

// groupMember polls in a group.
type groupMember struct {
	client *kgo.Client
	cancel context.CancelFunc
	ended  chan error

	mu   sync.Mutex
	held int
}

var balancers = map[string]kgo.GroupBalancer{
	"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
	"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func (caseClient) Join(topic, group, assignor string, deliver func(cases.Record)) (cases.Member, error) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &groupMember{cancel: cancel, ended: make(chan error, 1)}
	cl, err := connect(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(balancers[assignor]),
		kgo.HeartbeatInterval(200*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(m.gained(1)), kgo.OnPartitionsRevoked(m.gained(-1)), kgo.OnPartitionsLost(m.gained(-1)))
	if err != nil {
		return nil, err
	}
	m.client = cl
	go func() { m.ended <- m.run(ctx, deliver) }()
	return m, nil
}

func (m *groupMember) gained(sign int) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, partitions := range topics {
			m.held += sign * len(partitions)
		}
	}
}

func (m *groupMember) run(ctx context.Context, deliver func(cases.Record)) error {
	defer m.client.Close()
	for {
		fetches := m.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := firstError(fetches); err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			deliver(record(r))
		}
		if err := m.client.CommitUncommittedOffsets(context.Background()); err != nil && !errors.Is(err, kerr.RebalanceInProgress) && !errors.Is(err, kerr.IllegalGeneration) {
			return err
		}
	}
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
	return <-m.ended
}

// ask sends one request and closes the client.
func ask(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	cl, err := connect()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return cl.Request(ctx, req)
}

func listOffset(ctx context.Context, topic string, at int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	rt := kmsg.NewListOffsetsRequestTopic()
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Timestamp = at
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := ask(ctx, req)
	if err != nil {
		return 0, err
	}
	p := resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	return p.Offset, kerr.ErrorForCode(p.ErrorCode)
}

func (caseClient) OffsetAt(ctx context.Context, topic string, at time.Time) (int64, error) {
	return listOffset(ctx, topic, at.UnixMilli())
}

func (caseClient) Ends(ctx context.Context, topic string) (earliest, latest int64, err error) {
	const latestOffset, earliestOffset = -1, -2
	if earliest, err = listOffset(ctx, topic, earliestOffset); err != nil {
		return 0, 0, err
	}
	latest, err = listOffset(ctx, topic, latestOffset)
	return earliest, latest, err
}

func (caseClient) Committed(ctx context.Context, topic, group string) (int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	rt := kmsg.NewOffsetFetchRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{0}
	req.Group, req.Topics = group, append(req.Topics, rt)
	resp, err := ask(ctx, req)
	if err != nil {
		return 0, err
	}
	fetched := resp.(*kmsg.OffsetFetchResponse)
	if err := kerr.ErrorForCode(fetched.ErrorCode); err != nil {
		return 0, err
	}
	p := fetched.Topics[0].Partitions[0]
	return p.Offset, kerr.ErrorForCode(p.ErrorCode)
}

// session is a producer with a transactional id, which commits what it polls of the input with its transactions.
type session struct {
	*kgo.GroupTransactSession
}

func (caseClient) Transactional(ctx context.Context, id, group, input string) (cases.Transactional, error) {
	s, err := kgo.NewGroupTransactSession(append(newOptions(), kgo.SeedBrokers(harness.Shared.Addr()), kgo.TransactionalID(id),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(input), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return nil, err
	}
	return session{s}, initialise(ctx, s)
}

func (caseClient) Fenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
}

func (s session) Send(ctx context.Context, topic string, records []cases.Record) error {
	return s.ProduceSync(ctx, messages(topic, records)...).FirstErr()
}

// SendOffset polls as many records: the session takes the offset after them into the transaction.
func (s session) SendOffset(ctx context.Context, next int64) error {
	for next > 0 {
		fetches := s.PollRecords(ctx, int(next))
		if err := firstError(fetches); err != nil {
			return err
		}
		next -= int64(len(fetches.Records()))
	}
	return nil
}

func (s session) end(ctx context.Context, how kgo.TransactionEndTry) error {
	done, err := s.End(ctx, how)
	if err == nil && done != bool(how) {
		err = errors.New("the group was rebalanced")
	}
	return err
}

func (s session) Commit(ctx context.Context) error { return s.end(ctx, kgo.TryCommit) }

func (s session) Abort(ctx context.Context) error { return s.end(ctx, kgo.TryAbort) }
