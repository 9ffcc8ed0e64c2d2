package api

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/network"
	"github.com/barnabas-mq/barnabas/storage"
)

// copyBelowBytes is the size up to which records are copied between the other
// fields of a response: below it a piece of its own costs more than the copy.
const copyBelowBytes = 4 << 10

// fetchAnswer is what a Fetch answers.
type fetchAnswer struct {
	version   int16
	errorCode int16
	sessionID int32
	throttle  time.Duration
	committed bool
	parts     []*fetchPart
	nodes     []node
}

// highWatermark and the other offsets are -1 with an error, as in Kafka.
func (p *fetchPart) highWatermark() int64 { return p.offsetOr(p.read.HighWatermark) }

func (p *fetchPart) startOffset() int64 { return p.offsetOr(p.read.LogStartOffset) }

func (p *fetchPart) stableOffset() int64 { return p.offsetOr(p.read.LastStableOffset) }

func (p *fetchPart) offsetOr(offset int64) int64 {
	if p.err != nil {
		return -1
	}
	return offset
}

// sameTopic says that two parts belong in one topic of the response.
func (p *fetchPart) sameTopic(q *fetchPart) bool {
	return p.key.id == q.key.id && p.key.topic == q.key.topic
}

// fetchWriter builds a response in pieces: fields in a buffer of its own, records
// by reference. kmsg would copy every fetched byte once more.
type fetchWriter struct {
	b     []byte
	start int // of the piece of b that is not in segs yet
	segs  []network.Seg
	flex  bool
}

// encodeFetch is the whole frame. Fetch responses are flexible from v12 on.
func encodeFetch(h protocol.Header, a *fetchAnswer) network.Response {
	w := fetchWriter{flex: a.version >= 12, b: make([]byte, 0, 64+96*len(a.parts)+64*len(a.nodes))}
	w.b = append(w.b, 0, 0, 0, 0)
	w.i32(h.CorrelationID)
	w.noTags()
	if a.version >= 1 {
		w.i32(int32(a.throttle.Milliseconds()))
	}
	if a.version >= 7 {
		w.i16(a.errorCode)
		w.i32(a.sessionID)
	}
	w.topics(a)
	if w.flex {
		w.nodes(a)
	}
	w.cut(nil, nil)
	size := -4
	for _, s := range w.segs {
		size += len(s.Bytes)
		if s.Region != nil {
			size += s.Region.Len()
		}
	}
	binary.BigEndian.PutUint32(w.segs[0].Bytes, uint32(size))
	return network.Response{Segs: w.segs}
}

// topics groups neighbours of the same topic, as Kafka does: a session's order
// may put a topic's partitions apart.
func (w *fetchWriter) topics(a *fetchAnswer) {
	n := 0
	for i, p := range a.parts {
		if i == 0 || !p.sameTopic(a.parts[i-1]) {
			n++
		}
	}
	w.arrayLen(n)
	for from := 0; from < len(a.parts); {
		to := from + 1
		for to < len(a.parts) && a.parts[to].sameTopic(a.parts[from]) {
			to++
		}
		if first := a.parts[from]; a.version >= 13 {
			w.b = append(w.b, first.key.id[:]...)
		} else {
			w.str(first.key.topic)
		}
		w.arrayLen(to - from)
		for _, p := range a.parts[from:to] {
			w.partition(a, p)
		}
		w.noTags()
		from = to
	}
}

func (w *fetchWriter) partition(a *fetchAnswer, p *fetchPart) {
	w.i32(p.key.partition)
	w.i16(knownCode(protocol.Code(p.err), a.version, firstStorageErrorFetch))
	w.i64(p.highWatermark())
	if a.version < 4 {
		w.records(p)
		return
	}
	w.i64(p.stableOffset())
	if a.version >= 5 {
		w.i64(p.startOffset())
	}
	// There is a list of aborted transactions for read_committed and, empty, for a
	// partition that was not found and for records in a codec that the client can't
	// have; for all others it is null, as in Kafka.
	if a.committed && p.err == nil || p.partition == nil || protocol.Code(p.err) == kerr.UnsupportedCompressionType.Code {
		w.aborted(p.read.Aborted)
	} else {
		w.nullArray()
	}
	if a.version >= 11 {
		w.i32(-1) // no preferred read replica
	}
	w.records(p)
	if !w.flex {
		return
	}
	diverging, leader := p.read.Diverging, p.leader >= 0 || p.leaderEpochNow >= 0
	n := byte(0)
	if diverging != nil {
		n++
	}
	if leader {
		n++
	}
	w.b = append(w.b, n)
	if diverging != nil {
		w.b = append(w.b, 0, 4+8+1)
		w.i32(diverging.Epoch)
		w.i64(diverging.EndOffset)
		w.noTags()
	}
	if leader {
		w.b = append(w.b, 1, 4+4+1)
		w.i32(p.leader)
		w.i32(p.leaderEpochNow)
		w.noTags()
	}
}

func (w *fetchWriter) aborted(list []storage.AbortedTxn) {
	w.arrayLen(len(list))
	for _, t := range list {
		w.i64(t.ProducerID)
		w.i64(t.FirstOffset)
		w.noTags()
	}
}

func (w *fetchWriter) records(p *fetchPart) {
	n := p.sizeBytes()
	if w.flex {
		w.b = binary.AppendUvarint(w.b, uint64(n)+1)
	} else {
		w.i32(int32(n))
	}
	switch {
	case p.read.Region != nil:
		w.cut(nil, p.read.Region)
	case n > copyBelowBytes:
		w.cut(p.read.Data, nil)
	default:
		w.b = append(w.b, p.read.Data...)
	}
}

// nodes are the addresses of the leaders that the rows name (tag 0, v16 on).
func (w *fetchWriter) nodes(a *fetchAnswer) {
	if len(a.nodes) == 0 {
		w.noTags()
		return
	}
	tag := fetchWriter{flex: true}
	tag.arrayLen(len(a.nodes))
	for _, n := range a.nodes {
		tag.i32(n.id)
		tag.str(n.host)
		tag.i32(n.port)
		tag.nullStr(n.rack)
		tag.noTags()
	}
	w.b = append(w.b, 1, 0)
	w.b = binary.AppendUvarint(w.b, uint64(len(tag.b)))
	w.b = append(w.b, tag.b...)
}

// cut ends the piece of the buffer and puts records behind it. The buffer may
// move when it grows; earlier pieces keep the bytes that they had.
func (w *fetchWriter) cut(data []byte, region network.Region) {
	if len(w.b) > w.start {
		w.segs = append(w.segs, network.Seg{Bytes: w.b[w.start:len(w.b):len(w.b)]})
		w.start = len(w.b)
	}
	switch {
	case region != nil:
		w.segs = append(w.segs, network.Seg{Region: region})
	case data != nil:
		w.segs = append(w.segs, network.Seg{Bytes: data})
	}
}

func (w *fetchWriter) i16(v int16) { w.b = binary.BigEndian.AppendUint16(w.b, uint16(v)) }
func (w *fetchWriter) i32(v int32) { w.b = binary.BigEndian.AppendUint32(w.b, uint32(v)) }
func (w *fetchWriter) i64(v int64) { w.b = binary.BigEndian.AppendUint64(w.b, uint64(v)) }

// noTags is an empty set of tagged fields, where the version has them.
func (w *fetchWriter) noTags() {
	if w.flex {
		w.b = append(w.b, 0)
	}
}

func (w *fetchWriter) arrayLen(n int) {
	if w.flex {
		w.b = binary.AppendUvarint(w.b, uint64(n)+1)
		return
	}
	w.i32(int32(n))
}

func (w *fetchWriter) nullArray() {
	if w.flex {
		w.b = append(w.b, 0)
		return
	}
	w.i32(-1)
}

func (w *fetchWriter) str(s string) {
	if w.flex {
		w.b = binary.AppendUvarint(w.b, uint64(len(s))+1)
	} else {
		w.i16(int16(len(s)))
	}
	w.b = append(w.b, s...)
}

// nullStr is a compact string; only flexible versions have one.
func (w *fetchWriter) nullStr(s *string) {
	if s == nil {
		w.b = append(w.b, 0)
		return
	}
	w.str(*s)
}
