package api

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// dataBroker is a testBroker with partitions on a real store, under a clock that
// only the test moves: a wake-up that is lost is never made up for by a time-out.
type dataBroker struct {
	*testBroker
	clk   *clock.Manual
	pool  *park.Pool
	m     *replica.Manager
	store *storage.Store

	mu      sync.Mutex
	configs map[string]replica.TopicConfig
	nextID  int64
}

func newDataBroker(t *testing.T) *dataBroker { return newDataBrokerOn(t, vfs.NewMem()) }

func newDataBrokerOn(t *testing.T, disk vfs.FS) *dataBroker {
	t.Helper()
	clk := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	d := &dataBroker{clk: clk, pool: park.NewPool(clk, 4), configs: map[string]replica.TopicConfig{}}
	log := slog.New(slog.DiscardHandler)
	store, err := storage.Open(storage.Env{
		FS: disk, Clock: clk, Logger: log, Rand: rand.Uint64,
		OnOffline: func(tp storage.TopicPartition, _ error) { d.m.LogChanged(tp) },
	}, "data", storage.StoreConfig{ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	d.store = store
	d.m = replica.NewManager(replica.Options{
		NodeID: 1, Store: replica.StoreOf(store), Clock: clk, Log: log, Pool: d.pool,
		TopicConfig: func(_ *metadata.Image, topic string) replica.TopicConfig { return d.config(topic) },
	}, replica.Hooks{})
	d.testBroker = newTestBroker(t, func(h *Handlers) {
		h.Clock, h.Partitions, h.Waits = clk, d.m, d.pool
		h.Sessions = NewFetchSessions(clk, rand.New(rand.NewPCG(3, 4)), 10)
		h.FetchMaxBytes = func() int { return 55 << 20 }
		h.LogDir = store
		h.ProducerIDs = &ProducerIDs{allocate: func(done func(int64, int32, error)) {
			d.nextID += 1000
			done(d.nextID, 1000, nil)
		}}
	})
	t.Cleanup(func() {
		d.pool.Drain()
		d.pool.WaitIdle()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	d.m.OnMetadata(metadata.Whole(d.image.Load()), d.image.Load())
	return d
}

func (d *dataBroker) config(topic string) replica.TopicConfig {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, ok := d.configs[topic]; ok {
		return c
	}
	return defaultTopicConfig()
}

func defaultTopicConfig() replica.TopicConfig {
	const forever = 1<<63 - 1
	return replica.TopicConfig{
		MinInSyncReplicas: 1,
		Log:               storage.LogConfig{SegmentBytes: 1 << 20, IndexIntervalBytes: 4096, RetentionMs: -1, RetentionBytes: -1, Delete: true},
		Batch:             batch.Options{TimestampBeforeMaxMs: forever, TimestampAfterMaxMs: 3_600_000, MaxMessageBytes: 1 << 20},
	}
}

// make adds a topic; change may alter its configuration and partitions.
func (d *dataBroker) make(name string, partitions int, change func(*replica.TopicConfig, *metadata.Partition)) metadata.TopicID {
	d.t.Helper()
	id := metadata.TopicID{1}
	copy(id[1:], name)
	records := []metadata.Record{&metadata.TopicRecord{Name: name, ID: id, Internal: name[0] == '_'}}
	cfg := defaultTopicConfig()
	for i := range partitions {
		p := metadata.Partition{Index: int32(i), Replicas: []int32{1}, ISR: []int32{1}, Leader: 1}
		if change != nil {
			change(&cfg, &p)
		}
		records = append(records, &metadata.PartitionRecord{TopicID: id, Partition: p})
	}
	d.mu.Lock()
	d.configs[name] = cfg
	d.mu.Unlock()
	d.publish(records...)
	return id
}

func (d *dataBroker) publish(records ...metadata.Record) {
	d.t.Helper()
	img := d.image.Load()
	next, delta, err := img.Next(img.Offset+1, records)
	if err != nil {
		d.t.Fatal(err)
	}
	d.image.Store(next)
	d.m.OnMetadata(delta, next)
}

// patience is how long a test waits for what another goroutine does at once,
// before it says that it never will: a busy machine is no fault.
const patience = time.Minute

// until waits for a condition that another goroutine makes true.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// parked waits until n requests are parked. One that has just been answered is
// counted until its worker is done.
func (d *dataBroker) parked(n int) {
	d.t.Helper()
	until(d.t, fmt.Sprintf("%d parked requests", n), func() bool {
		d.pool.WaitIdle()
		return d.pool.Parked() == n
	})
	d.pool.WaitIdle()
}

// later asks in the background. The end of a test that has not waited for the
// answer closes the connection; that is nobody's fault.
func later[R kmsg.Response](c *testClient, version int16, req kmsg.Request) chan R {
	got := make(chan R, 1)
	go func() {
		resp, err := tryAs[R](c, version, req)
		switch {
		case err == nil:
			got <- resp
		case !errors.Is(err, net.ErrClosed):
			c.t.Error(err)
		}
	}()
	return got
}

func soon[R any](t *testing.T, got chan R) R {
	t.Helper()
	select {
	case r := <-got:
		return r
	case <-time.After(patience):
		t.Fatal("no answer: a wake-up was lost")
		panic("unreachable")
	}
}

func values(timestampMs int64, vs ...string) []byte {
	b := batch.NewBuilder(batch.BuilderOptions{})
	for i, v := range vs {
		b.Add(timestampMs+int64(i), nil, []byte(v))
	}
	return b.Build()
}

// produceRequest is one batch for one partition, by name and by id.
func produceRequest(topic string, id metadata.TopicID, partition int32, acks int16, records []byte) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis = acks, 1000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, id
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

func (c *testClient) produceTo(topic string, partition int32, records []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	resp := askAs[*kmsg.ProduceResponse](c, 9, produceRequest(topic, metadata.TopicID{}, partition, -1, records))
	return resp.Topics[0].Partitions[0]
}

func (c *testClient) mustProduce(topic string, partition int32, vs ...string) int64 {
	c.t.Helper()
	row := c.produceTo(topic, partition, values(1_700_000_000_000, vs...))
	if row.ErrorCode != 0 {
		c.t.Fatalf("produce: %v", kerr.ErrorForCode(row.ErrorCode))
	}
	return row.BaseOffset
}

// fetchRequest reads one partition from an offset, without a session.
func fetchRequest(topic string, id metadata.TopicID, partition int32, offset int64) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.SessionEpoch = 500, 1, 1<<20, -1
	addFetch(r, topic, id, partition, offset)
	return r
}

func addFetch(r *kmsg.FetchRequest, topic string, id metadata.TopicID, partition int32, offset int64) {
	if n := len(r.Topics); n == 0 || r.Topics[n-1].Topic != topic || r.Topics[n-1].TopicID != id {
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = topic, id
		r.Topics = append(r.Topics, t)
	}
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	t := &r.Topics[len(r.Topics)-1]
	t.Partitions = append(t.Partitions, p)
}

// contents are the values of whole batches.
func contents(t *testing.T, records []byte) (vs []string) {
	t.Helper()
	for len(records) > 0 {
		v, rest, err := batch.Next(records)
		if err != nil {
			break // the last batch may be cut
		}
		if err := batch.Records(v, 0, func(r batch.Record) error { vs = append(vs, string(r.Value)); return nil }); err != nil {
			t.Fatal(err)
		}
		records = rest
	}
	return vs
}
