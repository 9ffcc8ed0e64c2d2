package main

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

type answer = func(*Case, *side) (kmsg.Response, error)

// produceTo sends records to partition 0 of a topic in the version that is walked.
func produceTo(s *side, topic string, records []byte) (kmsg.Response, error) {
	return produceRaw(s, topic, 0, records, -1, nil)
}

func produceRaw(s *side, topic string, partition int32, records []byte, acks int16, transactionalID *string) (kmsg.Response, error) {
	req := produceRequest(s.version, topic, partition, records)
	req.Topics[0].TopicID = s.ids[topic]
	req.Acks, req.TransactionID = acks, transactionalID
	return s.try(req)
}

// records are what a client of the walked version of Produce sends.
func recordsFor(version int16, records []record, codec int8) []byte {
	switch {
	case version < 2:
		return messageSet(0, codec, records)
	case version < 3:
		return messageSet(1, codec, records)
	}
	return batch{records: records, attributes: int16(codec)}.bytes()
}

func produceCases(b *book) {
	written := func(codec int8, configs ...string) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			return produceTo(s, s.topic(c, 1, configs...), recordsFor(s.version, plainRecords(3), codec))
		}
	}
	b.good(kmsg.Produce, "three records", written(0)).masks("LogAppendTime")
	b.good(kmsg.Produce, "gzip", written(gzipCodec)).masks("LogAppendTime")
	b.good(kmsg.Produce, "LogAppendTime", written(0, "message.timestamp.type", "LogAppendTime"))
	b.good(kmsg.Produce, "acks=1", func(c *Case, s *side) (kmsg.Response, error) {
		return produceRaw(s, s.topic(c, 1), 0, recordsFor(s.version, plainRecords(1), 0), 1, nil)
	})
	b.good(kmsg.Produce, "a repeated batch", func(c *Case, s *side) (kmsg.Response, error) {
		topic := s.topic(c, 1)
		one := batch{records: plainRecords(2), idempotent: true, producerID: s.producerID()}.bytes()
		s.produce(topic, 0, one)
		return produceTo(s, topic, one)
	}).from(3)
	b.bad(kmsg.Produce, "a gap in the sequence", func(c *Case, s *side) (kmsg.Response, error) {
		topic, id := s.topic(c, 1), s.producerID()
		s.produce(topic, 0, batch{records: plainRecords(2), idempotent: true, producerID: id}.bytes())
		return produceTo(s, topic, batch{records: plainRecords(2), idempotent: true, producerID: id, sequence: 7}.bytes())
	}).from(3)
	b.bad(kmsg.Produce, "an old epoch", func(c *Case, s *side) (kmsg.Response, error) {
		topic, id := s.topic(c, 1), s.producerID()
		s.produce(topic, 0, batch{records: plainRecords(2), idempotent: true, producerID: id, producerEpoch: 3}.bytes())
		return produceTo(s, topic, batch{records: plainRecords(2), idempotent: true, producerID: id, producerEpoch: 2}.bytes())
	}).from(3)
	b.bad(kmsg.Produce, "an unknown topic", func(c *Case, s *side) (kmsg.Response, error) {
		return produceTo(s, s.name(c, "missing"), recordsFor(s.version, plainRecords(1), 0))
	})
	b.bad(kmsg.Produce, "an unknown partition", func(c *Case, s *side) (kmsg.Response, error) {
		return produceRaw(s, s.topic(c, 1), 7, recordsFor(s.version, plainRecords(1), 0), -1, nil)
	})
	b.bad(kmsg.Produce, "acks=2", func(c *Case, s *side) (kmsg.Response, error) {
		return produceRaw(s, s.topic(c, 1), 0, recordsFor(s.version, plainRecords(1), 0), 2, nil)
	})
	b.bad(kmsg.Produce, "a wrong checksum", func(c *Case, s *side) (kmsg.Response, error) {
		records := recordsFor(s.version, plainRecords(1), 0)
		records[len(records)-1] ^= 1
		return produceTo(s, s.topic(c, 1), records)
	})
	b.bad(kmsg.Produce, "a wrong count", func(c *Case, s *side) (kmsg.Response, error) {
		return produceTo(s, s.topic(c, 1), batch{records: plainRecords(1), badCount: true}.bytes())
	}).from(3)
	odd := func(attributes int16, body []byte) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			return produceTo(s, s.topic(c, 1), batch{records: plainRecords(1), attributes: attributes, body: body}.bytes())
		}
	}
	b.good(kmsg.Produce, "an lz4 frame", odd(lz4Codec, lz4Frame(false, oddRecord(0, 0)))).from(3).masks("LogAppendTime")
	b.bad(kmsg.Produce, "an lz4 frame of dependent blocks", odd(lz4Codec, lz4Frame(true, oddRecord(0, 0)))).from(3)
	b.bad(kmsg.Produce, "two lz4 frames", odd(lz4Codec, append(lz4Frame(false, oddRecord(0, 0)[:3]), lz4Frame(false, oddRecord(0, 0)[3:])...))).from(3)
	b.good(kmsg.Produce, "lengths of -2 for null", odd(0, oddRecord(-2, -2))).from(3)
	b.bad(kmsg.Produce, "too large", func(c *Case, s *side) (kmsg.Response, error) {
		r := plainRecords(1)
		r[0].value = make([]byte, 5000)
		return produceTo(s, s.topic(c, 1, "max.message.bytes", "1000"), recordsFor(s.version, r, 0))
	})
	b.bad(kmsg.Produce, "no key in a compacted topic", func(c *Case, s *side) (kmsg.Response, error) {
		r := plainRecords(2)
		r[1].key = nil
		return produceTo(s, s.topic(c, 1, "cleanup.policy", "compact"), recordsFor(s.version, r, 0))
	})
	b.bad(kmsg.Produce, "a timestamp too far ahead", func(c *Case, s *side) (kmsg.Response, error) {
		r := plainRecords(1)
		r[0].timestampMs = 4_000_000_000_000
		return produceTo(s, s.topic(c, 1, "message.timestamp.after.max.ms", "3600000"), recordsFor(s.version, r, 0))
	}).from(2)
	b.bad(kmsg.Produce, "an internal topic", func(c *Case, s *side) (kmsg.Response, error) {
		s.group(c)
		s.learn("__consumer_offsets")
		return produceTo(s, "__consumer_offsets", recordsFor(s.version, plainRecords(1), 0))
	})
	b.bad(kmsg.Produce, "transactional without an open transaction", func(c *Case, s *side) (kmsg.Response, error) {
		p := s.transactionalProducer(c)
		records := batch{records: plainRecords(1), idempotent: true, producerID: p.id, producerEpoch: p.epoch, attributes: transactionalBit}
		return produceRaw(s, s.topic(c, 1), 0, records.bytes(), -1, &p.transactionalID)
	}).from(3).to(11)
	b.good(kmsg.Produce, "transactional, added by the append", func(c *Case, s *side) (kmsg.Response, error) {
		p := s.transactionalProducer(c)
		records := batch{records: plainRecords(1), idempotent: true, producerID: p.id, producerEpoch: p.epoch, attributes: transactionalBit}
		return produceRaw(s, s.topic(c, 1), 0, records.bytes(), -1, &p.transactionalID)
	}).from(12)
	b.good(kmsg.Produce, "transactional, added before", func(c *Case, s *side) (kmsg.Response, error) {
		p, topic := s.transactionalProducer(c), s.topic(c, 1)
		s.addPartition(p, topic)
		records := batch{records: plainRecords(1), idempotent: true, producerID: p.id, producerEpoch: p.epoch, attributes: transactionalBit}
		return produceRaw(s, topic, 0, records.bytes(), -1, &p.transactionalID)
	}).from(3)
}

// producerID asks for the id of an idempotent producer.
func (s *side) producerID() int64 {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.ProducerID, req.ProducerEpoch = 4, -1, -1
	resp := retried(s, req, func(r *kmsg.InitProducerIDResponse) int16 { return r.ErrorCode })
	return resp.ProducerID
}

// learn asks for the id of a topic that the case has not made.
func (s *side) learn(topic string) {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &topic})
	s.remember(topic, must[*kmsg.MetadataResponse](s, req).Topics[0].TopicID)
}
