package main

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// storedGroup leaves offsets of every kind for one group: by hand, by a classic member, and in transactions.
func storedGroup(c *Case, s *side) int32 {
	topic, group := s.topic(c, 1), s.group(c)
	s.commit(group, topic, 5)
	s.join(group, topic, str("i-1"))
	for _, commit := range []bool{true, false} {
		p := s.transactionalProducer(c)
		s.addOffsets(p, group)
		s.commitInTransaction(p, group, topic)
		retried(s, endRequest(3, p, commit), func(r *kmsg.EndTxnResponse) int16 { return r.ErrorCode })
		s.settled(p)
	}
	return internalPartition(group)
}

// storedTransactions leaves a commit and an abort under one transactional id.
func storedTransactions(c *Case, s *side) int32 {
	topic := s.topic(c, 1)
	s.transact(c, topic, true)
	s.transact(c, topic, false)
	return internalPartition(s.name(c, "x"))
}

// internalPartition is where a group or a transactional id is kept, among the 50 partitions of an internal topic.
func internalPartition(key string) int32 {
	var hash int32
	for _, c := range []byte(key) {
		hash = 31*hash + int32(c)
	}
	return (hash & 0x7fffffff) % 50
}

func batchesOf(raw []byte) (out []kmsg.RecordBatch) {
	for len(raw) >= 12 {
		size := 12 + int(binary.BigEndian.Uint32(raw[8:]))
		if size > len(raw) {
			break
		}
		var b kmsg.RecordBatch
		if b.ReadFrom(raw[:size]) == nil {
			out = append(out, b)
		}
		raw = raw[size:]
	}
	return out
}

func rawRecords(b kmsg.RecordBatch) (out []kmsg.Record) {
	body := b.Records
	for range b.NumRecords {
		size, n := binary.Varint(body)
		if n <= 0 || size < 0 || int(size)+n > len(body) {
			break
		}
		var r kmsg.Record
		if r.ReadFrom(body[:n+int(size)]) == nil {
			out = append(out, r)
		}
		body = body[n+int(size):]
	}
	return out
}

const controlBit = 1 << 5

// internalRecord shows a record of this run, decoded, without what belongs to one broker or moment.
func (s *side) internalRecord(c *Case, topic string, b kmsg.RecordBatch, r kmsg.Record) string {
	where := fmt.Sprintf("attributes %d sequence %d producer %s: ", b.Attributes, b.FirstSequence, kindOf(fmt.Sprint(b.ProducerID)))
	if b.Attributes&controlBit != 0 {
		if !s.producers[b.ProducerID] {
			return "" // another case's
		}
		return where + fmt.Sprintf("control key %x value %x", r.Key, r.Value)
	}
	if !strings.Contains(string(r.Key), "-"+c.slug()+"-v0-"+runID) {
		return ""
	}
	key, value := decodeInternal(topic, r)
	return masked(fmt.Sprintf("%s%T%+v = %T%+v", where, key, key, value, value))
}

// masked hides times, ids made by the broker and pointers' addresses.
func masked(line string) string {
	for _, m := range []struct{ pattern, with string }{
		{`(Timestamp|ExpireTimestamp|LastUpdateTimestamp|StartTimestamp|CurrentStateTimestamp):[1-9]\d+`, "$1:time"},
		{`(ProducerID|PreviousProducerID|NextProducerID|ProducerIDPrev):[1-9]?\d+`, "$1:id"},
		{`0x[0-9a-f]{6,}`, "pointer"},
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "uuid"},
		{`(i-1|compat)-[A-Za-z0-9_-]{22,}`, "$1-member"},
		{`ClientHost:\S+`, "ClientHost:host"},
	} {
		line = regexp.MustCompile(m.pattern).ReplaceAllString(line, m.with)
	}
	return line
}

func decodeInternal(topic string, r kmsg.Record) (key, value any) {
	version := int16(binary.BigEndian.Uint16(r.Key))
	var k interface{ ReadFrom([]byte) error }
	var v interface{ ReadFrom([]byte) error }
	switch {
	case topic == transactionsTopic:
		k, v = &kmsg.TxnMetadataKey{}, &kmsg.TxnMetadataValue{}
	case version < 2:
		k, v = &kmsg.OffsetCommitKey{}, &kmsg.OffsetCommitValue{}
	case version == 2:
		k, v = &kmsg.GroupMetadataKey{}, &kmsg.GroupMetadataValue{}
	default:
		return fmt.Sprintf("key %q", r.Key), fmt.Sprintf("%d bytes", len(r.Value))
	}
	if err := k.ReadFrom(r.Key); err != nil {
		return r.Key, err
	}
	if r.Value == nil {
		return deref(k), "a tombstone"
	}
	if err := v.ReadFrom(r.Value); err != nil {
		return deref(k), err
	}
	return deref(k), deref(v)
}

func deref(v any) any {
	switch v := v.(type) {
	case *kmsg.TxnMetadataKey:
		return *v
	case *kmsg.TxnMetadataValue:
		return *v
	case *kmsg.OffsetCommitKey:
		return *v
	case *kmsg.OffsetCommitValue:
		return *v
	case *kmsg.GroupMetadataKey:
		return *v
	case *kmsg.GroupMetadataValue:
		return *v
	}
	return v
}
