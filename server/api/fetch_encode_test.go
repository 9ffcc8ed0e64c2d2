package api

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/network"
	"github.com/barnabas-mq/barnabas/storage"
)

// drawAnswer is any answer that a Fetch of a version may have.
func drawAnswer(t *rapid.T, version int16) *fetchAnswer {
	a := &fetchAnswer{version: version, sessionID: rapid.Int32().Draw(t, "session"), committed: rapid.Bool().Draw(t, "committed")}
	if rapid.IntRange(0, 9).Draw(t, "refused") == 0 {
		a.errorCode = kerr.FetchSessionIDNotFound.Code
		return a
	}
	errs := []error{nil, nil, nil, kerr.OffsetOutOfRange, kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition}
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		topic := rapid.IntRange(0, 2).Draw(t, "topic")
		p := &fetchPart{partition: new(replica.Partition), leader: -1, leaderEpochNow: -1, err: rapid.SampledFrom(errs).Draw(t, "error")}
		p.key.partition = rapid.Int32Range(0, 100_000).Draw(t, "partition")
		if version >= 13 {
			p.key.id = metadata.TopicID{byte(topic), 7}
		} else {
			p.key.topic = []string{"a", "orders", string(bytes.Repeat([]byte("t"), 200))}[topic]
		}
		if p.err == nil {
			p.read = replica.ReadResult{
				HighWatermark: rapid.Int64().Draw(t, "hw"), LastStableOffset: rapid.Int64().Draw(t, "lso"), LogStartOffset: rapid.Int64().Draw(t, "start"),
				Data: bytes.Repeat([]byte{0xab}, rapid.SampledFrom([]int{0, 1, 100, 127, 128, copyBelowBytes, copyBelowBytes + 1, 40_000}).Draw(t, "size")),
			}
			if a.committed {
				for i := range rapid.Int64Range(0, 3).Draw(t, "aborted") {
					p.read.Aborted = append(p.read.Aborted, storage.AbortedTxn{ProducerID: i, FirstOffset: rapid.Int64().Draw(t, "first"), LastOffset: 7})
				}
			}
			if version >= 12 && rapid.Bool().Draw(t, "diverges") {
				p.read.Diverging = &replica.EpochEnd{Epoch: rapid.Int32Range(0, 9).Draw(t, "epoch"), EndOffset: rapid.Int64().Draw(t, "end")}
			}
		} else if rapid.Bool().Draw(t, "absent") {
			p.partition = nil
		}
		if p.err != nil && version >= 16 {
			p.leader, p.leaderEpochNow = rapid.Int32Range(0, 9).Draw(t, "leader"), rapid.Int32Range(0, 9).Draw(t, "leaderEpoch")
		}
		a.parts = append(a.parts, p)
	}
	if version >= 16 {
		for i := range rapid.Int32Range(0, 3).Draw(t, "nodes") {
			n := node{id: i, host: rapid.SampledFrom([]string{"localhost", "", "10.0.0.1"}).Draw(t, "host"), port: 9092}
			if rapid.Bool().Draw(t, "rack") {
				n.rack = kmsg.StringPtr("r1")
			}
			a.nodes = append(a.nodes, n)
		}
	}
	return a
}

// asKmsg is the same answer as the codec's own type.
func asKmsg(a *fetchAnswer) *kmsg.FetchResponse {
	r := kmsg.NewPtrFetchResponse()
	r.Version, r.ErrorCode, r.SessionID = a.version, a.errorCode, a.sessionID
	for i, p := range a.parts {
		if i == 0 || !p.sameTopic(a.parts[i-1]) {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = p.key.topic, p.key.id
			r.Topics = append(r.Topics, topic)
		}
		row := kmsg.NewFetchResponseTopicPartition()
		row.Partition, row.ErrorCode = p.key.partition, protocol.Code(p.err)
		row.HighWatermark, row.LastStableOffset, row.LogStartOffset = -1, -1, -1
		if p.err == nil {
			row.HighWatermark, row.LastStableOffset, row.LogStartOffset = p.read.HighWatermark, p.read.LastStableOffset, p.read.LogStartOffset
		}
		if p.err == nil && a.committed || p.partition == nil {
			row.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
		}
		for _, aborted := range p.read.Aborted {
			e := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
			e.ProducerID, e.FirstOffset = aborted.ProducerID, aborted.FirstOffset
			row.AbortedTransactions = append(row.AbortedTransactions, e)
		}
		row.PreferredReadReplica = -1
		row.RecordBatches = append([]byte{}, p.read.Data...)
		if d := p.read.Diverging; d != nil {
			row.DivergingEpoch.Epoch, row.DivergingEpoch.EndOffset = d.Epoch, d.EndOffset
		}
		row.CurrentLeader.LeaderID, row.CurrentLeader.LeaderEpoch = p.leader, p.leaderEpochNow
		topic := &r.Topics[len(r.Topics)-1]
		topic.Partitions = append(topic.Partitions, row)
	}
	for _, n := range a.nodes {
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = n.id, n.host, n.port, n.rack
		r.Brokers = append(r.Brokers, b)
	}
	return r
}

func flat(t interface{ Fatalf(string, ...any) }, r network.Response) []byte {
	var b []byte
	for _, s := range r.Segs {
		if s.Region == nil {
			b = append(b, s.Bytes...)
			continue
		}
		part := make([]byte, s.Region.Len())
		if _, err := s.Region.ReadAt(part, 0); err != nil {
			t.Fatalf("read a region: %v", err)
		}
		b = append(b, part...)
	}
	return b
}

func TestFetchEncoderEqualsTheCodec(t *testing.T) {
	for version := int16(0); version <= kmsg.NewPtrFetchRequest().MaxVersion(); version++ {
		rapid.Check(t, func(t *rapid.T) {
			a := drawAnswer(t, version)
			h := protocol.Header{Key: 1, Version: version, CorrelationID: rapid.Int32().Draw(t, "correlation")}
			want := protocol.AppendResponse(nil, h, asKmsg(a))
			if got := flat(t, encodeFetch(h, a)); !bytes.Equal(got, want) {
				t.Fatalf("v%d:\n got %x\nwant %x", version, got, want)
			}
		})
	}
}

// TestFetchEncoderReferencesRecords holds what the encoder is for.
func TestFetchEncoderReferencesRecords(t *testing.T) {
	data := make([]byte, copyBelowBytes+1)
	p := &fetchPart{read: replica.ReadResult{Data: data}, leader: -1, leaderEpochNow: -1, partition: new(replica.Partition)}
	r := encodeFetch(protocol.Header{}, &fetchAnswer{version: 17, parts: []*fetchPart{p}})
	for _, s := range r.Segs {
		if len(s.Bytes) == len(data) && &s.Bytes[0] == &data[0] {
			return
		}
	}
	t.Fatal("the records were copied")
}
