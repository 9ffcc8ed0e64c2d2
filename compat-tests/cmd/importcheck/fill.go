package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// filler writes what an import has to take over.
type filler struct {
	addr  string
	older bool
	adm   *kadm.Client
	rng   *rand.Rand
	// openOffset is where a transaction begins that nobody ends.
	openOffset int64
	openID     int64
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func client(addr string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.DisableClientMetrics(), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)...)
}

func value(s string) *string { return &s }

// topics are made with their settings before anything is written.
var topics = []struct {
	name       string
	partitions int32
	configs    map[string]*string
}{
	{"codec-none", 2, nil}, {"codec-gzip", 2, nil}, {"codec-snappy", 2, nil}, {"codec-lz4", 2, nil}, {"codec-zstd", 2, nil},
	{"stored-zstd", 1, map[string]*string{"compression.type": value("zstd"), "message.timestamp.type": value("LogAppendTime")}},
	{"compacted", 2, map[string]*string{"cleanup.policy": value("compact"), "segment.ms": value("50"), "segment.bytes": value("1048576"),
		"min.cleanable.dirty.ratio": value("0.01"), "delete.retention.ms": value("100")}},
	{"both.policies", 1, map[string]*string{"cleanup.policy": value("compact,delete"), "retention.ms": value("-1"), "max.message.bytes": value("2097152")}},
	{"transactions", 3, nil},
	{"open-transaction", 1, nil},
	{"trimmed", 2, map[string]*string{"segment.bytes": value("1048576")}},
	{"empty", 4, map[string]*string{"retention.bytes": value("123456789"), "min.insync.replicas": value("1")}},
	{"killed-large", 6, map[string]*string{"segment.bytes": value("16777216")}},
	{"killed-small", 1, nil},
	{"gone", 1, nil},
	{"made-again", 1, nil},
	{"grown", 1, nil},
	{"old-v0", 1, nil}, {"old-v1", 1, nil},
}

func (f *filler) fill(ctx context.Context) error {
	cl, err := client(f.addr)
	if err != nil {
		return err
	}
	defer cl.Close()
	f.adm, f.rng = kadm.NewClient(cl), rand.New(rand.NewPCG(1, 2))
	steps := []func(context.Context) error{f.make, f.codecs, f.large, f.compacted, f.transactions, f.trimmed, f.changed, f.groups, f.memberGroups, f.oldTopics, f.open}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) make(ctx context.Context) error {
	for _, t := range topics {
		if _, err := f.adm.CreateTopic(ctx, t.partitions, 1, t.configs, t.name); err != nil {
			return fmt.Errorf("create %s: %w", t.name, err)
		}
	}
	return nil
}

// records are n of about a size, with what records may have.
func (f *filler) records(topic string, partition int32, n, size int) []*kgo.Record {
	list := make([]*kgo.Record, n)
	for i := range list {
		r := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(strings.Repeat(fmt.Sprint(f.rng.Uint64()), size/19+1))}
		if f.rng.IntN(4) > 0 {
			r.Key = []byte(fmt.Sprint("key-", f.rng.IntN(100)))
		}
		if f.rng.IntN(3) == 0 {
			r.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte{0, 1, 2}}, {Key: "", Value: nil}, {Key: "h", Value: []byte("again")}}
		}
		if f.rng.IntN(2) == 0 {
			r.Timestamp = time.Now().Add(-time.Duration(f.rng.IntN(1e6)) * time.Millisecond)
		}
		list[i] = r
	}
	return list
}

func (f *filler) write(ctx context.Context, opts []kgo.Opt, records ...*kgo.Record) error {
	cl, err := client(f.addr, opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	return cl.ProduceSync(ctx, records...).FirstErr()
}

func (f *filler) codecs(ctx context.Context) error {
	for name, codec := range codecs {
		for partition := range int32(2) {
			opts := []kgo.Opt{kgo.ProducerBatchCompression(codec)}
			if err := f.write(ctx, opts, f.records("codec-"+name, partition, 700, 200)...); err != nil {
				return err
			}
			opts = append(opts, kgo.DisableIdempotentWrite())
			if err := f.write(ctx, opts, f.records("codec-"+name, partition, 100, 2000)...); err != nil {
				return err
			}
		}
	}
	return f.write(ctx, nil, f.records("stored-zstd", 0, 500, 300)...)
}

func (f *filler) large(ctx context.Context) error {
	for partition := range int32(6) {
		if err := f.write(ctx, nil, f.records("killed-large", partition, 4000, 5000)...); err != nil {
			return err
		}
	}
	return f.write(ctx, nil, f.records("killed-small", 0, 10, 10)...)
}

// compacted writes the same keys again and again, and tombstones, until Kafka has compacted some of it.
func (f *filler) compacted(ctx context.Context) error {
	for range 6 {
		var list []*kgo.Record
		for partition := range int32(2) {
			for range 300 {
				r := &kgo.Record{Topic: "compacted", Partition: partition, Key: []byte(fmt.Sprint(f.rng.IntN(40)))}
				if f.rng.IntN(5) > 0 {
					r.Value = []byte(strings.Repeat("v", f.rng.IntN(2000)))
				}
				list = append(list, r)
			}
		}
		if err := f.write(ctx, nil, list...); err != nil {
			return err
		}
		time.Sleep(400 * time.Millisecond)
	}
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		n, err := count(ctx, f.addr, "compacted")
		if err != nil {
			return err
		}
		if n < 2*6*300-500 {
			list := f.records("both.policies", 0, 100, 100)
			for i, r := range list {
				r.Key = []byte(fmt.Sprint(i))
			}
			return f.write(ctx, nil, list...)
		}
	}
	return errors.New("Kafka has compacted nothing within a minute")
}

// transactions commits and aborts, interleaved, and commits offsets in some.
func (f *filler) transactions(ctx context.Context) error {
	for producer := range 3 {
		cl, err := client(f.addr, kgo.TransactionalID(fmt.Sprint("tx-", producer)), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
		if err != nil {
			return err
		}
		for i := range 8 {
			if err := cl.BeginTransaction(); err != nil {
				return err
			}
			for partition := range int32(3) {
				if err := cl.ProduceSync(ctx, f.records("transactions", partition, 20, 100)...).FirstErr(); err != nil {
					return err
				}
			}
			if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(i%3 != 1)); err != nil {
				return err
			}
		}
		cl.Close()
	}
	return nil
}

func (f *filler) trimmed(ctx context.Context) error {
	for partition := range int32(2) {
		if err := f.write(ctx, nil, f.records("trimmed", partition, 2000, 2000)...); err != nil {
			return err
		}
	}
	to := kadm.Offsets{}
	to.AddOffset("trimmed", 0, 1234, -1)
	to.AddOffset("trimmed", 1, 2000, -1)
	_, err := f.adm.DeleteRecords(ctx, to)
	return err
}

// changed deletes topics, makes one again, adds partitions and changes settings.
func (f *filler) changed(ctx context.Context) error {
	if err := f.write(ctx, nil, append(f.records("gone", 0, 5, 5), f.records("made-again", 0, 5, 5)...)...); err != nil {
		return err
	}
	commit := kadm.Offsets{}
	commit.AddOffset("made-again", 0, 5, -1)
	if err := f.adm.CommitAllOffsets(ctx, "of-the-first", commit); err != nil {
		return err
	}
	for _, t := range []string{"gone", "made-again"} {
		if _, err := f.adm.DeleteTopic(ctx, t); err != nil {
			return err
		}
	}
	time.Sleep(500 * time.Millisecond)
	if _, err := f.adm.CreateTopic(ctx, 1, 1, nil, "made-again"); err != nil {
		return err
	}
	if err := f.write(ctx, nil, f.records("made-again", 0, 3, 5)...); err != nil {
		return err
	}
	if _, err := f.adm.CreatePartitions(ctx, 3, "grown"); err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond)
	if err := f.write(ctx, nil, f.records("grown", 3, 30, 50)...); err != nil {
		return err
	}
	set := []kadm.AlterConfig{{Name: "retention.ms", Value: value("86400001")}, {Name: "segment.bytes", Value: value("2097152")}}
	if _, err := f.adm.AlterTopicConfigs(ctx, set, "grown", "trimmed"); err != nil {
		return err
	}
	_, err := f.adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "segment.bytes"}}, "grown")
	return err
}

// groups commits plainly and in transactions, that end well, badly and not at all.
func (f *filler) groups(ctx context.Context) error {
	for g := range 12 {
		commit := kadm.Offsets{}
		for p := range int32(2) {
			commit.Add(kadm.Offset{Topic: "codec-none", Partition: p, At: int64(100*g) + int64(p), LeaderEpoch: 0, Metadata: fmt.Sprint("group ", g)})
			commit.AddOffset("compacted", p, int64(g), -1)
		}
		commit.AddOffset("trimmed", 0, int64(1000+50*g), -1)
		if err := f.adm.CommitAllOffsets(ctx, fmt.Sprint("simple-", g), commit); err != nil {
			return err
		}
	}
	if _, err := f.adm.DeleteGroups(ctx, "simple-11"); err != nil {
		return err
	}
	for i, commits := range []bool{true, false, true} {
		tx := newTxn(f.addr, fmt.Sprint("offsets-", i))
		if err := tx.begin(ctx, "transactional", "transactions", 0, int64(10*(i+1))); err != nil {
			return err
		}
		if err := tx.end(ctx, commits); err != nil {
			return err
		}
	}
	// A plain commit after a pending one is newer.
	tx := newTxn(f.addr, "offsets-late")
	if err := tx.begin(ctx, "mixed", "transactions", 1, 5); err != nil {
		return err
	}
	commit := kadm.Offsets{}
	commit.AddOffset("transactions", 1, 50, -1)
	if err := f.adm.CommitAllOffsets(ctx, "mixed", commit); err != nil {
		return err
	}
	if err := tx.end(ctx, true); err != nil {
		return err
	}
	commit = kadm.Offsets{}
	commit.AddOffset("transactions", 2, 7, -1)
	if err := f.adm.CommitAllOffsets(ctx, "pending", commit); err != nil {
		return err
	}
	return newTxn(f.addr, "offsets-open").begin(ctx, "pending", "transactions", 2, 70)
}

// memberGroups are groups with members, of both protocols.
func (f *filler) memberGroups(ctx context.Context) error {
	kinds := []string{"classic"}
	if !f.older {
		kinds = append(kinds, "consumer")
	}
	for _, kind := range kinds {
		opts := []kgo.Opt{kgo.ConsumerGroup(kind + "-members"), kgo.ConsumeTopics("codec-gzip", "codec-lz4"), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
		if kind == "consumer" {
			opts = append(opts, kgo.WithContext(context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true))) //nolint:staticcheck // kgo's own key
		}
		cl, err := client(f.addr, opts...)
		if err != nil {
			return err
		}
		for n := 0; n < 900; {
			fetches := cl.PollRecords(ctx, 300)
			if err := fetches.Err(); err != nil {
				return err
			}
			n += fetches.NumRecords()
		}
		if err := cl.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
		cl.Close()
	}
	return nil
}

// open leaves a transaction that nobody ends.
func (f *filler) open(ctx context.Context) error {
	if err := f.write(ctx, nil, f.records("open-transaction", 0, 10, 10)...); err != nil {
		return err
	}
	cl, err := client(f.addr, kgo.TransactionalID("left-open"), kgo.TransactionTimeout(10*time.Minute))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	f.openOffset = 10
	if f.openID, _, err = cl.ProducerID(ctx); err != nil {
		return err
	}
	if err := cl.ProduceSync(ctx, f.records("open-transaction", 0, 5, 10)...).FirstErr(); err != nil {
		return err
	}
	return f.write(ctx, nil, f.records("open-transaction", 0, 10, 10)...)
}

func (f *filler) expectNotes(report string) error {
	for _, want := range []string{
		fmt.Sprintf("producer %d (epoch ", f.openID), "--partition open-transaction:0 --start-offset 10",
		`group "pending" has offsets for 1 partitions in a transaction that has not ended`,
	} {
		if !strings.Contains(report, want) {
			return fmt.Errorf("the import does not say %q:\n%s", want, report)
		}
	}
	return nil
}

// txn is a transaction that commits offsets.
type txn struct {
	addr, id string
	cl       *kgo.Client
	producer int64
	epoch    int16
}

func newTxn(addr, id string) *txn { return &txn{addr: addr, id: id} }

func (t *txn) begin(ctx context.Context, group, topic string, partition int32, offset int64) (err error) {
	if t.cl, err = client(t.addr); err != nil {
		return err
	}
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionalID, init.TransactionTimeoutMillis = &t.id, 600_000
	ir, err := init.RequestWith(ctx, t.cl)
	if err == nil {
		err = kerr.ErrorForCode(ir.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("init %s: %w", t.id, err)
	}
	t.producer, t.epoch = ir.ProducerID, ir.ProducerEpoch
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = t.id, t.producer, t.epoch, group
	ar, err := add.RequestWith(ctx, t.cl)
	if err == nil {
		err = kerr.ErrorForCode(ar.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("add offsets to %s: %w", t.id, err)
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = t.id, t.producer, t.epoch, group
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, offset
	ct := kmsg.NewTxnOffsetCommitRequestTopic()
	ct.Topic, ct.Partitions = topic, append(ct.Partitions, p)
	commit.Topics = append(commit.Topics, ct)
	cl, err := client(t.addr, kgo.MaxVersions(txnVersions()))
	if err != nil {
		return err
	}
	defer cl.Close()
	cr, err := commit.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(cr.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("commit offsets in %s: %w", t.id, err)
	}
	return nil
}

func (t *txn) end(ctx context.Context, commits bool) error {
	defer t.cl.Close()
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = t.id, t.producer, t.epoch, commits
	er, err := end.RequestWith(ctx, t.cl)
	if err == nil {
		err = kerr.ErrorForCode(er.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("end %s: %w", t.id, err)
	}
	return nil
}
