package legacy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// past is a timestamp that no broker's clock gives.
const past = 1_600_000_000_000

// appended is what a produce answers and what is stored then.
type appended struct {
	Code                 int16
	Base                 int64
	AppendTime           string
	LogStart             int64
	Stored               []string
	OldFetch0, OldFetch2 []string
	ThrottleMillis       int32
}

func (s *side) produce(version int16, acks int16, partition int32, records []byte) kmsg.ProduceResponseTopicPartition {
	s.t.Helper()
	return ask[*kmsg.ProduceResponse](s, version, produceRequest(s.topic, acks, partition, records)).Topics[0].Partitions[0]
}

func produceRequest(topic string, acks int16, partition int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func (s *side) fetchRequest(offset int64, partitionBytes int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 0, 0, 50<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = s.topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, partitionBytes
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func (s *side) fetch(version int16, offset int64) kmsg.FetchResponseTopicPartition {
	s.t.Helper()
	return ask[*kmsg.FetchResponse](s, version, s.fetchRequest(offset, 10<<20)).Topics[0].Partitions[0]
}

// stored are all records, as a version of Fetch tells them.
func (s *side) stored(version int16) []string {
	s.t.Helper()
	row := s.fetch(version, 0)
	out := describe(s.t, row.RecordBatches)
	if row.ErrorCode != 0 {
		out = append(out, fmt.Sprintf("error %d", row.ErrorCode))
	}
	return out
}

func (s *side) append(version int16, records []byte) appended {
	s.t.Helper()
	row := s.produce(version, -1, 0, records)
	a := appended{Code: row.ErrorCode, Base: row.BaseOffset, AppendTime: stamp(row.LogAppendTime), LogStart: row.LogStartOffset}
	a.Stored, a.OldFetch0, a.OldFetch2 = s.stored(4), s.stored(0), s.stored(2)
	return a
}

type produceCase struct {
	name   string
	config map[string]string
	set    []byte
	// undecodable marks what Kafka answers with UNKNOWN_SERVER_ERROR, because it fails somewhere within; ours says that
	// the record is invalid.
	undecodable bool
}

func produceCases() []produceCase {
	hello := []msg{
		{key: text("k0"), value: text("hello")}, {offset: 1, value: text("")}, {offset: 2, key: text("")}, {offset: 3, key: text("k3"), value: text(strings.Repeat("long ", 100))},
	}
	old := func(magic int8) []msg {
		out := make([]msg, len(hello))
		for i, m := range hello {
			m.magic = magic
			if magic == 1 {
				m.timestamp = past + int64(10*(i%3))
			}
			out[i] = m
		}
		return out
	}
	wrapper := func(magic int8) msg { return msg{magic: magic, offset: 3, timestamp: past + 20} }
	var cases []produceCase
	add := func(name string, set []byte, config ...string) {
		c := map[string]string{}
		for i := 0; i < len(config); i += 2 {
			c[config[i]] = config[i+1]
		}
		cases = append(cases, produceCase{name: name, config: c, set: set})
	}
	add0 := func(name string, set []byte) { add(name, set) }
	undecodable := func(name string, set []byte) {
		cases = append(cases, produceCase{name: name, set: set, undecodable: true})
	}
	for magic := range int8(2) {
		v := fmt.Sprintf("v%d ", magic)
		add(v+"plain", set(old(magic)...))
		add(v+"one", set(old(magic)[0]))
		add(v+"append time", set(old(magic)...), "message.timestamp.type", "LogAppendTime")
		for codec := int8(gzipped); codec <= lz4ed; codec++ {
			n := v + codecNames[codec]
			add(n, wrapped(wrapper(magic), codec, set(old(magic)...)))
			add(n+" append time", wrapped(wrapper(magic), codec, set(old(magic)...)), "message.timestamp.type", "LogAppendTime")
			add(n+" into a topic in none", wrapped(wrapper(magic), codec, set(old(magic)...)), "compression.type", "uncompressed")
			add(n+" into a topic in zstd", wrapped(wrapper(magic), codec, set(old(magic)...)), "compression.type", "zstd")
			add("plain "+v+"into a topic in "+n, set(old(magic)...), "compression.type", codecNames[codec])
		}
		add(v+"raw snappy", set(msg{magic: magic, offset: 3, timestamp: past, attributes: snappied, value: rawSnappy(set(old(magic)...))}))
		add(v+"compacted without key", set(old(magic)[1]), "cleanup.policy", "compact")
		add(v+"compacted wrapper without key", wrapped(wrapper(magic), gzipped, set(old(magic)...)), "cleanup.policy", "compact")
		add(v+"compacted with keys", set(old(magic)[0], old(magic)[2]), "cleanup.policy", "compact")
		add(v+"too large", set(msg{magic: magic, timestamp: past, value: make([]byte, 2000)}), "max.message.bytes", "1000")
		add(v+"too large together", set(slicesRepeat(msg{magic: magic, timestamp: past, value: make([]byte, 300)}, 5)...), "max.message.bytes", "1000")
		add(v+"just fits before, not after", set(slicesRepeat(msg{magic: magic, timestamp: past, value: make([]byte, 400)}, 1)...), "max.message.bytes", "470")
		add(v+"damaged", flip(set(old(magic)...), 30))
		add(v+"damaged later", append(set(old(magic)...), flip(set(old(magic)...), 30)...))
		add(v+"damaged inside", wrapped(wrapper(magic), gzipped, flip(set(old(magic)...), 30)))
		add(v+"incomplete", set(old(magic)...)[:60])
		add(v+"incomplete at once", set(old(magic)...)[:20])
		add(v+"incomplete inside", wrapped(wrapper(magic), gzipped, set(old(magic)...)[:60]))
		add(v+"two wrappers", append(wrapped(wrapper(magic), gzipped, set(old(magic)...)), wrapped(wrapper(magic), gzipped, set(old(magic)...))...))
		add(v+"wrapper, then plain", append(wrapped(wrapper(magic), gzipped, set(old(magic)...)), set(old(magic)...)...))
		add(v+"plain, then wrapper", append(set(old(magic)...), wrapped(wrapper(magic), gzipped, set(old(magic)...))...))
		add(v+"wrapper in a wrapper", wrapped(wrapper(magic), gzipped, wrapped(wrapper(magic), gzipped, set(old(magic)...))))
		add(v+"empty wrapper", wrapped(wrapper(magic), gzipped, nil))
		add(v+"null wrapper", set(msg{magic: magic, attributes: gzipped}))
		undecodable(v+"garbage in gzip", set(msg{magic: magic, attributes: gzipped, value: text("garbage")}))
		undecodable(v+"garbage in snappy", set(msg{magic: magic, attributes: snappied, value: text("garbage")}))
		undecodable(v+"garbage in lz4", set(msg{magic: magic, attributes: lz4ed, value: text("garbage")}))
		undecodable(v+"cut gzip", set(msg{magic: magic, attributes: gzipped, value: compress(gzipped, set(old(magic)...))[:40]}))
		add(v+"zstd", wrapped(wrapper(magic), zstded, set(old(magic)...)))
		add(v+"codec 5", set(msg{magic: magic, attributes: 5, value: text("x")}))
		wrongChecksum := add0
		if magic == 1 {
			wrongChecksum = undecodable
		}
		wrongChecksum(v+"wrong lz4 checksum", set(msg{magic: magic, offset: 3, timestamp: past, attributes: lz4ed, value: flip(compress(lz4ed, set(old(magic)...)), 6)}))
		add(v+"other format inside", wrapped(wrapper(1-magic), gzipped, set(old(magic)...)))
		add(v+"then the other", append(set(old(magic)...), set(old(1-magic)...)...))
		add(v+"size of 3", flip(set(msg{magic: magic, value: text("hello")}), 11))
		add(v+"then format 2", append(set(old(magic)...), batch(none, 0, -1, -1, record{timestamp: past, value: text("v2")})...))
		add(v+"offsets that are not relative", wrapped(wrapper(magic), gzipped, set(renumbered(old(magic), 7)...)))
		add(v+"all offsets 0", wrapped(msg{magic: magic, timestamp: past}, gzipped, set(renumbered(old(magic), 0)...)))
		add(v+"wrapper's offset below", wrapped(msg{magic: magic, offset: 1, timestamp: past}, gzipped, set(old(magic)...)))
		longKey := set(old(magic)[0])
		longKey[18+8*int(magic)] = 0x7f
		seal(longKey)
		undecodable(v+"key beyond the message", longKey)
		add(v+"bytes behind the value", behind(set(old(magic)[0])))
	}
	add("v1 too old", set(msg{magic: 1, timestamp: 5, value: text("x")}), "message.timestamp.before.max.ms", "1000")
	add("v1 too old inside", wrapped(msg{magic: 1, timestamp: 5}, gzipped, set(msg{magic: 1, timestamp: 5, value: text("x")})), "message.timestamp.before.max.ms", "1000")
	add("v0 has no age", set(msg{value: text("x")}), "message.timestamp.before.max.ms", "1000")
	add("v1 without timestamp", set(msg{magic: 1, timestamp: -1, value: text("x")}))
	add("v1 append time by the client", set(msg{magic: 1, attributes: 8, timestamp: -1, value: text("x")}))
	add("v1 append time by the client, with a timestamp", set(msg{magic: 1, attributes: 8, timestamp: past, value: text("x")}))
	add("v1 append time in the wrapper", wrapped(msg{magic: 1, attributes: 8, offset: 1, timestamp: past}, gzipped, set(msg{magic: 1, timestamp: 1, value: text("x")}, msg{magic: 1, offset: 1, timestamp: 2})))
	add("v1 append time in the wrapper, topic too", wrapped(msg{magic: 1, attributes: 8, timestamp: past}, gzipped, set(msg{magic: 1, timestamp: 1, value: text("x")})), "message.timestamp.type", "LogAppendTime")
	add("v1 append time inside", wrapped(msg{magic: 1, timestamp: past}, gzipped, set(msg{magic: 1, attributes: 8, timestamp: 1, value: text("x")})))
	add("v0 with the bit of append time", set(msg{attributes: 8, value: text("x")}))
	add("format 9", append(make([]byte, 11), 14, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	two := record{timestamp: past, key: text("k"), value: text("v2"), headers: []kmsg.Header{{Key: "h", Value: text("x")}}}
	for codec := int8(none); codec <= zstded; codec++ {
		add("format 2 in "+codecNames[codec], batch(codec, 0, -1, -1, two, two))
	}
	add("two batches", append(batch(none, 0, -1, -1, two), batch(none, 0, -1, -1, two)...))
	add("batch, then half of one", append(batch(none, 0, -1, -1, two), batch(none, 0, -1, -1, two)[:50]...))
	add("batch, then a message", append(batch(none, 0, -1, -1, two), set(hello...)...))
	return cases
}

func renumbered(messages []msg, offset int64) []msg {
	for i := range messages {
		messages[i].offset = offset
	}
	return messages
}

// behind puts bytes behind the value of a message.
func behind(b []byte) []byte {
	b = append(b, 1, 2, 3)
	seal(b)
	return b
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x10
	return b
}

func slicesRepeat(m msg, n int) (out []msg) {
	for i := range n {
		m.offset = int64(i)
		out = append(out, m)
	}
	return out
}

func TestProduce(t *testing.T) {
	for _, c := range produceCases() {
		for version := int16(0); version <= 2; version++ {
			if version != 2 && len(c.config) > 0 {
				continue // the version makes no difference to these
			}
			t.Run(fmt.Sprintf("%s, Produce v%d", c.name, version), func(t *testing.T) {
				compare(t, c.config, func(s *side) appended {
					a := s.append(version, bytes.Clone(c.set))
					if c.undecodable && a.Code == kerr.InvalidRecord.Code {
						a.Code = kerr.UnknownServerError.Code
					}
					return a
				})
			})
		}
	}
}

// TestStoredBytes compares what is stored of messages that are not compressed byte for byte.
func TestStoredBytes(t *testing.T) {
	for magic := range int8(2) {
		t.Run(fmt.Sprintf("v%d", magic), func(t *testing.T) {
			compare(t, nil, func(s *side) string {
				messages := []msg{{magic: magic, timestamp: past + 7, key: text("k"), value: text("a")}, {magic: magic, timestamp: past, value: text(strings.Repeat("b", 300))}, {magic: magic, timestamp: past + 9}}
				s.produce(2, -1, 0, set(messages...))
				s.produce(2, -1, 0, set(messages...))
				out := ""
				for version := int16(0); version <= 5; version++ {
					out += fmt.Sprintf("v%d %x\n", version, s.everything(version))
				}
				return out
			})
		})
	}
}

// everything is what a client gets that fetches until there is no more. How much of it comes at once differs: Kafka fills
// up what the batches take in the newer format, and more than that only for the first of them.
func (s *side) everything(version int16) (all []byte) {
	s.t.Helper()
	for offset, end := int64(0), s.fetch(version, 0).HighWatermark; offset < end; {
		b := whole(s.fetch(version, offset).RecordBatches)
		if len(b) == 0 {
			s.t.Fatalf("%s: Fetch v%d from %d of %d has nothing", s.name, version, offset, end)
		}
		all = append(all, b...)
		for ; len(b) > 0; b = b[12+binary.BigEndian.Uint32(b[8:]):] {
			offset = int64(binary.BigEndian.Uint64(b)) + 1
			if b[16] == 2 {
				offset += int64(binary.BigEndian.Uint32(b[23:]))
			}
		}
	}
	return all
}

// whole cuts b behind its last whole message.
func whole(b []byte) []byte {
	end := 0
	for len(b)-end >= 12 {
		size := 12 + int(binary.BigEndian.Uint32(b[end+8:]))
		if size > len(b)-end {
			break
		}
		end += size
	}
	return b[:end]
}

func TestAcks(t *testing.T) {
	for _, acks := range []int16{1, -1, 2, -2} {
		compare(t, nil, func(s *side) appended {
			row := s.produce(1, acks, 0, set(msg{value: text("x")}))
			return appended{Code: row.ErrorCode, Base: row.BaseOffset}
		})
	}
	compare(t, nil, func(s *side) appended {
		row := s.produce(1, 1, 77, set(msg{value: text("x")}))
		return appended{Code: row.ErrorCode, Base: row.BaseOffset}
	})
}
