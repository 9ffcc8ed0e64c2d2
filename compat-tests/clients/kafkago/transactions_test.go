//go:build !old

package kafkago

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func TestTransactions(t *testing.T) {
	cases.Run(t, transactor{}, []string{"transaction", "fencing"}, nil)
}

// requests is a producer with a transactional id, made of the client's requests. It has one for each step, but leaves
// the producer out of its batches.
type requests struct {
	*kafka.Client
	id, group, input string
	session          *kafka.ProducerSession
	sequences        map[int32]int32
}

// transactor reads with another client: the readers of this one give out aborted records and markers too, with
// read_committed as well, and whoever the broker is.
type transactor struct{ administrator }

func (transactor) Read(ctx context.Context, topic string, partitions int, level cases.Isolation, deliver func(cases.Record) bool) error {
	offsets := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		offsets[p] = kgo.NewOffset().AtStart()
	}
	opts := []kgo.Opt{kgo.SeedBrokers(harness.Shared.Addr()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets})}
	if level == cases.ReadCommitted {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			if !deliver(cases.Record{Partition: r.Partition, Offset: r.Offset, Value: r.Value}) {
				return nil
			}
		}
	}
}

// ask repeats a request as long as it is answered by what passes: the client leaves that to its user.
func ask(request func() error) error {
	for {
		err := request()
		var code kafka.Error
		if !errors.As(err, &code) || !code.Temporary() && code != kafka.ConcurrentTransactions {
			return err
		}
	}
}

func (transactor) Transactional(ctx context.Context, id, group, input string) (cases.Transactional, error) {
	p := &requests{Client: apart(), id: id, group: group, input: input, sequences: map[int32]int32{}}
	return p, ask(func() error {
		resp, err := p.InitProducerID(ctx, &kafka.InitProducerIDRequest{
			TransactionalID: id, TransactionTimeoutMs: 60_000, ProducerID: -1, ProducerEpoch: -1,
		})
		if err != nil {
			return err
		}
		p.session = resp.Producer
		return resp.Error
	})
}

func (transactor) Fenced(err error) bool {
	return errors.Is(err, kafka.ProducerFenced) || errors.Is(err, kafka.InvalidProducerEpoch)
}

func (p *requests) Begin() error { return nil }

func (p *requests) Send(ctx context.Context, topic string, records []cases.Record) error {
	byPartition := map[int32][]protocol.Record{}
	for _, r := range records {
		byPartition[r.Partition] = append(byPartition[r.Partition], protocol.Record{Value: protocol.NewBytes(r.Value)})
	}
	for partition, records := range byPartition {
		if err := p.add(ctx, topic, partition); err != nil {
			return err
		}
		batch, err := p.batch(p.sequences[partition], records)
		if err != nil {
			return err
		}
		resp, err := p.RawProduce(ctx, &kafka.RawProduceRequest{
			Topic: topic, Partition: int(partition), RequiredAcks: kafka.RequireAll, TransactionalID: p.id,
			RawRecords: protocol.RawRecordSet{Reader: batch},
		})
		if err == nil {
			err = resp.Error
		}
		if err != nil {
			return err
		}
		p.sequences[partition] += int32(len(records))
	}
	return nil
}

// batch is the client's batch, with its size before it, and with the producer put in.
func (p *requests) batch(sequence int32, records []protocol.Record) (*bytes.Reader, error) {
	var encoded bytes.Buffer
	set := protocol.RecordSet{Version: 2, Attributes: protocol.Transactional, Records: protocol.NewRecordReader(records...)}
	if _, err := set.WriteTo(&encoded); err != nil {
		return nil, err
	}
	const sizeBytes, crcAt, attributesAt, producerIDAt, producerEpochAt, sequenceAt = 4, 17, 21, 43, 51, 53
	batch := encoded.Bytes()[sizeBytes:]
	binary.BigEndian.PutUint64(batch[producerIDAt:], uint64(p.session.ProducerID))
	binary.BigEndian.PutUint16(batch[producerEpochAt:], uint16(p.session.ProducerEpoch))
	binary.BigEndian.PutUint32(batch[sequenceAt:], uint32(sequence))
	binary.BigEndian.PutUint32(batch[crcAt:], crc32.Checksum(batch[attributesAt:], crc32.MakeTable(crc32.Castagnoli)))
	return bytes.NewReader(encoded.Bytes()), nil
}

func (p *requests) add(ctx context.Context, topic string, partition int32) error {
	return ask(func() error {
		resp, err := p.AddPartitionsToTxn(ctx, &kafka.AddPartitionsToTxnRequest{
			TransactionalID: p.id, ProducerID: p.session.ProducerID, ProducerEpoch: p.session.ProducerEpoch,
			Topics: map[string][]kafka.AddPartitionToTxn{topic: {{Partition: int(partition)}}},
		})
		if err != nil {
			return err
		}
		return resp.Topics[topic][0].Error
	})
}

func (p *requests) SendOffset(ctx context.Context, next int64) error {
	err := ask(func() error {
		resp, err := p.AddOffsetsToTxn(ctx, &kafka.AddOffsetsToTxnRequest{
			TransactionalID: p.id, ProducerID: p.session.ProducerID, ProducerEpoch: p.session.ProducerEpoch, GroupID: p.group,
		})
		if err != nil {
			return err
		}
		return resp.Error
	})
	if err != nil {
		return err
	}
	return ask(func() error {
		resp, err := p.TxnOffsetCommit(ctx, &kafka.TxnOffsetCommitRequest{
			TransactionalID: p.id, ProducerID: p.session.ProducerID, ProducerEpoch: p.session.ProducerEpoch,
			GroupID: p.group, GenerationID: -1, Topics: map[string][]kafka.TxnOffsetCommit{p.input: {{Offset: next}}},
		})
		if err != nil {
			return err
		}
		return resp.Topics[p.input][0].Error
	})
}

func (p *requests) end(ctx context.Context, committed bool) error {
	resp, err := p.EndTxn(ctx, &kafka.EndTxnRequest{
		TransactionalID: p.id, ProducerID: p.session.ProducerID, ProducerEpoch: p.session.ProducerEpoch, Committed: committed,
	})
	if err != nil {
		return err
	}
	return resp.Error
}

func (p *requests) Commit(ctx context.Context) error { return p.end(ctx, true) }

func (p *requests) Abort(ctx context.Context) error { return p.end(ctx, false) }

func (p *requests) Close() {}
