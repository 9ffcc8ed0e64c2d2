package harness

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FirstAck produces one record until it is acknowledged, dialling as often as it takes: what a restart or a start costs
// the first client. The topic is created by asking for it when it is missing.
func FirstAck(addr, topic string, partition int32, value []byte, limit time.Duration) (offset int64, err error) {
	deadline := time.Now().Add(limit)
	for {
		if offset, err = tryProduce(addr, topic, partition, value); err == nil {
			return offset, nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("no produce was acknowledged within %v: %w", limit, err)
		}
		time.Sleep(time.Millisecond)
	}
}

func tryProduce(addr, topic string, partition int32, value []byte) (int64, error) {
	w, err := Dial(addr, time.Second)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	meta := kmsg.NewPtrMetadataRequest()
	meta.Version = 4
	meta.AllowAutoTopicCreation = true
	mt := kmsg.NewMetadataRequestTopic()
	mt.Topic = &topic
	meta.Topics = append(meta.Topics, mt)
	if _, err := w.Ask(meta, 5*time.Second); err != nil {
		return 0, err
	}
	resp, err := w.Ask(ProduceRequest(topic, partition, value), 5*time.Second)
	if err != nil {
		return 0, err
	}
	p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return 0, fmt.Errorf("produce answers error %d", p.ErrorCode)
	}
	return p.BaseOffset, nil
}

// ProduceRequest is one record in one plain batch, acks=all.
func ProduceRequest(topic string, partition int32, value []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version = 7
	req.Acks = -1
	req.TimeoutMillis = 5000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition = partition
	rp.Records = oneRecord(value)
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func oneRecord(value []byte) []byte {
	record := kmsg.Record{Value: value}
	sized := record.AppendTo(nil)
	record.Length = int32(len(sized) - 1) // the length itself took one byte, being 0
	now := time.Now().UnixMilli()
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1, Records: record.AppendTo(nil),
	}
	raw := batch.AppendTo(nil)
	const lengthAt, crcAt, crcFrom = 8, 17, 21
	binary.BigEndian.PutUint32(raw[lengthAt:], uint32(len(raw)-lengthAt-4))
	binary.BigEndian.PutUint32(raw[crcAt:], crc32.Checksum(raw[crcFrom:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}
