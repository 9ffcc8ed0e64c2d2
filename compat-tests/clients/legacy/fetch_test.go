package legacy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetched is what a fetch answers.
type fetched struct {
	Code          int16
	HighWatermark int64
	LastStable    int64
	LogStart      int64
	Aborted       string
	Records       []string
}

func (s *side) fetchAs(version int16, req *kmsg.FetchRequest) (out []fetched) {
	s.t.Helper()
	resp := ask[*kmsg.FetchResponse](s, version, req)
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			f := fetched{Code: p.ErrorCode, HighWatermark: p.HighWatermark, LastStable: p.LastStableOffset, LogStart: p.LogStartOffset}
			if p.AbortedTransactions != nil {
				f.Aborted = fmt.Sprint(p.AbortedTransactions)
			}
			f.Records = describe(s.t, p.RecordBatches)
			out = append(out, f)
		}
	}
	return out
}

func someRecords() []record {
	h := []kmsg.Header{{Key: "h", Value: text("x")}, {Key: "null"}}
	return []record{
		{past, text("k0"), text("v0"), h}, {past + 5, nil, text(strings.Repeat("v1 ", 200)), nil}, {past - 5, text("k2"), nil, nil}, {past + 5, text(""), text(""), h},
	}
}

// TestFetchNewRecords reads what new producers wrote, in every version, from every offset.
func TestFetchNewRecords(t *testing.T) {
	for codec := int8(none); codec <= zstded; codec++ {
		for config, name := range map[string]string{"CreateTime": "", "LogAppendTime": " append time"} {
			t.Run(codecNames[codec]+name, func(t *testing.T) {
				compare(t, map[string]string{"message.timestamp.type": config}, func(s *side) (out []string) {
					for range 2 {
						if row := s.produce(7, -1, 0, batch(codec, 0, -1, -1, someRecords()...)); row.ErrorCode != 0 {
							s.t.Fatalf("%s: produce: error %d", s.name, row.ErrorCode)
						}
					}
					for version := int16(0); version <= 12; version++ {
						for offset := int64(-1); offset <= 9; offset++ {
							answer := s.fetchAs(version, s.fetchRequest(offset, 10<<20))
							if version < 4 {
								answer[0].Records = firstOf(answer[0].Records) // how many come at once differs
							}
							out = append(out, fmt.Sprintf("v%d from %d: %+v", version, offset, answer))
						}
					}
					return out
				})
			})
		}
	}
}

// firstOf is the first message, with those inside it.
func firstOf(lines []string) []string {
	for i, l := range lines {
		if i > 0 && !strings.HasPrefix(l, " ") {
			return lines[:i]
		}
	}
	return lines
}

// TestFetchFromTopicsInZstd asks for a topic whose own codec is zstd.
func TestFetchFromTopicsInZstd(t *testing.T) {
	compare(t, map[string]string{"compression.type": "zstd"}, func(s *side) (out []string) {
		s.produce(7, -1, 0, batch(none, 0, -1, -1, someRecords()...))
		for version := int16(0); version <= 12; version++ {
			for _, offset := range []int64{0, 4, 5} {
				out = append(out, fmt.Sprintf("v%d from %d: %+v", version, offset, s.fetchAs(version, s.fetchRequest(offset, 1<<20))))
			}
		}
		return out
	})
}

// TestFetchMixed reads batches of several codecs and producers in one fetch.
func TestFetchMixed(t *testing.T) {
	compare(t, nil, func(s *side) (out []string) {
		id := s.producerID()
		for i, codec := range []int8{gzipped, none, snappied, lz4ed, none, gzipped} {
			producer, sequence := int64(-1), int32(-1)
			if i%2 == 1 {
				producer, sequence = id, int32(i/2*4)
			}
			if row := s.produce(7, -1, 0, batch(codec, 0, producer, sequence, someRecords()...)); row.ErrorCode != 0 {
				s.t.Fatalf("%s: produce: error %d", s.name, row.ErrorCode)
			}
		}
		for version := int16(0); version <= 3; version++ {
			var all []string
			for _, line := range describe(s.t, s.everything(version)) {
				all = append(all, line)
			}
			out = append(out, fmt.Sprintf("v%d %s", version, strings.Join(all, "\n")))
		}
		return out
	})
}

func (s *side) producerID() int64 { return s.initProducer(nil).ProducerID }

// initProducer asks for a producer id until the coordinator has loaded.
func (s *side) initProducer(transactionalID *string) *kmsg.InitProducerIDResponse {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = transactionalID, 60_000
		if transactionalID != nil {
			f := kmsg.NewPtrFindCoordinatorRequest()
			f.CoordinatorKey, f.CoordinatorType = *transactionalID, 1
			ask[*kmsg.FindCoordinatorResponse](s, 1, f)
		}
		resp := ask[*kmsg.InitProducerIDResponse](s, 0, req)
		if resp.ErrorCode == 0 {
			return resp
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: producer id: error %d", s.name, resp.ErrorCode)
		}
	}
}

// transact writes one transaction of a producer and ends it.
func (s *side) transact(id string, producer *kmsg.InitProducerIDResponse, sequence int32, codec int8, commit bool) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		add := kmsg.NewPtrAddPartitionsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch = id, producer.ProducerID, producer.ProducerEpoch
		add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: s.topic, Partitions: []int32{0}}}
		code := ask[*kmsg.AddPartitionsToTxnResponse](s, 0, add).Topics[0].Partitions[0].ErrorCode
		if code == 0 {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: add partition: error %d", s.name, code)
		}
	}
	const transactional = 0x10
	req := produceRequest(s.topic, -1, 0, batch(codec, transactional, producer.ProducerID, sequence, someRecords()...))
	req.TransactionID = &id
	if code := ask[*kmsg.ProduceResponse](s, 3, req).Topics[0].Partitions[0].ErrorCode; code != 0 {
		s.t.Fatalf("%s: produce: error %d", s.name, code)
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, producer.ProducerID, producer.ProducerEpoch, commit
	if code := ask[*kmsg.EndTxnResponse](s, 0, end).ErrorCode; code != 0 {
		s.t.Fatalf("%s: end: error %d", s.name, code)
	}
}

// TestFetchTransactions reads committed and aborted records, and what is between them, by clients that know nothing of it.
func TestFetchTransactions(t *testing.T) {
	for codec := int8(none); codec <= lz4ed; codec++ {
		t.Run(codecNames[codec], func(t *testing.T) {
			compare(t, nil, func(s *side) (out []string) {
				id := s.topic
				producer := s.initProducer(&id)
				for i, commit := range []bool{true, false, true} {
					s.transact(id, producer, int32(4*i), codec, commit)
				}
				const end = 15 // three transactions of four records and a marker
				for deadline := time.Now().Add(20 * time.Second); s.fetch(4, 0).LastStableOffset != end; time.Sleep(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						s.t.Fatalf("%s: the last marker is not written", s.name)
					}
				}
				for version := int16(0); version <= 12; version++ {
					for offset := int64(0); offset <= end; offset++ {
						answer := s.fetchAs(version, s.fetchRequest(offset, 10<<20))
						if version < 4 {
							answer[0].Records = firstOf(answer[0].Records)
						}
						// The ids of producers differ.
						line := fmt.Sprintf("v%d from %d: %+v", version, offset, answer)
						out = append(out, strings.ReplaceAll(line, fmt.Sprintf("producer %d/", producer.ProducerID), "producer "))
					}
				}
				return out
			})
		})
	}
}

// TestFetchErrors asks for what is not there.
func TestFetchErrors(t *testing.T) {
	compare(t, nil, func(s *side) (out []string) {
		s.produce(2, -1, 0, set(msg{value: text("x")}))
		for version := int16(0); version <= 12; version++ {
			for _, offset := range []int64{-7, 2, 1 << 60} {
				out = append(out, fmt.Sprintf("v%d from %d: %+v", version, offset, s.fetchAs(version, s.fetchRequest(offset, 1<<20))))
			}
			req := s.fetchRequest(0, 1<<20)
			req.Topics[0].Partitions[0].Partition = 9
			out = append(out, fmt.Sprintf("v%d partition 9: %+v", version, s.fetchAs(version, req)))
			req.Topics[0].Topic = "no-such-topic"
			out = append(out, fmt.Sprintf("v%d other topic: %+v", version, s.fetchAs(version, req)))
		}
		return out
	})
}
