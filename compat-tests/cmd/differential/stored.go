package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// compareStored compares what is in the logs after the same requests: the batches that each version of Produce leaves,
// and the records of the internal topics.
func (r *run) compareStored() {
	for _, what := range storedProduce() {
		r.walk(what)
	}
	r.storedRecords("stored: a group's offsets and metadata", offsetsTopic, storedGroup)
	r.storedRecords("stored: transactions", transactionsTopic, storedTransactions)
}

const (
	offsetsTopic      = "__consumer_offsets"
	transactionsTopic = "__transaction_state"
)

// storedProduce are cases that write in the version that is walked and read everything back in one that all serve.
func storedProduce() []*Case {
	b := &book{}
	stored := func(name string, codec int8, configs ...string) *Case {
		return b.good(kmsg.Produce, "stored: "+name, func(c *Case, s *side) (kmsg.Response, error) {
			topic := s.topic(c, 1, configs...)
			if _, err := produceTo(s, topic, recordsFor(s.version, plainRecords(3), codec)); err != nil {
				return nil, err
			}
			req := fetchRequest(s, topic, 0)
			req.Version = 12
			return s.try(req)
		})
	}
	stored("as sent", 0)
	stored("gzip", gzipCodec)
	stored("gzip made plain", gzipCodec, "compression.type", "uncompressed")
	stored("plain made gzip", 0, "compression.type", "gzip")
	stored("LogAppendTime", 0, "message.timestamp.type", "LogAppendTime")
	stored("gzip with LogAppendTime", gzipCodec, "message.timestamp.type", "LogAppendTime")
	return b.cases
}

// storedRecords runs a scenario on the broker under test and on the newest Kafka and compares one partition of an
// internal topic, record by record.
func (r *run) storedRecords(name, topic string, scenario func(c *Case, s *side) (partition int32)) {
	c := &Case{Name: name}
	var seen [2][]string
	for i, s := range []*side{r.b.ours, r.b.newest} {
		lines, err := s.recordsAfter(c, topic, scenario)
		if err != nil {
			r.faults = append(r.faults, fmt.Sprintf("%s: %v", name, err))
			return
		}
		seen[i] = lines
	}
	r.compared++
	for _, d := range diff(seen[0], seen[1]) {
		d.Case, d.Judge = name, string(r.b.newest.kind)
		r.note(d)
	}
}

func (s *side) recordsAfter(c *Case, topic string, scenario func(*Case, *side) int32) (lines []string, err error) {
	defer func() {
		if fault, ok := recover().(caseFault); ok {
			err = fault.err
		}
	}()
	s.version, s.producers = 0, map[int64]bool{}
	partition := scenario(c, s)
	s.learn(topic)
	return s.internalRecords(c, topic, partition), nil
}

// internalRecords are the records of one run's names in a partition of an internal topic.
func (s *side) internalRecords(c *Case, topic string, partition int32) (lines []string) {
	for offset := int64(0); ; {
		s.version = 12
		req := fetchRequest(s, topic, offset)
		req.Topics[0].Partitions[0].Partition = partition
		p := must[*kmsg.FetchResponse](s, req).Topics[0].Partitions[0]
		if p.ErrorCode != 0 {
			panic(caseFault{fmt.Errorf("%s: read %s-%d: error %d", s.kind, topic, partition, p.ErrorCode)})
		}
		if len(p.RecordBatches) == 0 {
			return lines
		}
		for _, b := range batchesOf(p.RecordBatches) {
			offset = b.FirstOffset + int64(b.LastOffsetDelta) + 1
			for _, r := range rawRecords(b) {
				if line := s.internalRecord(c, topic, b, r); line != "" {
					lines = append(lines, fmt.Sprintf("record[%d] = %s", len(lines), line))
				}
			}
		}
	}
}
