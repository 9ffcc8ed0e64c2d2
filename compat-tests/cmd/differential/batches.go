package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// firstTimestampMs is when the records of the cases were made; it lies in the past, and is the same on both sides.
const firstTimestampMs = 1_760_000_000_000

// record is one record of a batch, or one message of a message set.
type record struct {
	key, value  []byte
	headers     []kmsg.Header
	timestampMs int64
}

// plainRecords are n records a second apart.
func plainRecords(n int) []record {
	var out []record
	for i := range n {
		out = append(out, record{
			key: fmt.Appendf(nil, "key-%d", i), value: fmt.Appendf(nil, "value-%d", i),
			headers: []kmsg.Header{{Key: "h", Value: []byte{byte(i)}}}, timestampMs: firstTimestampMs + int64(i)*1000,
		})
	}
	return out
}

// batch describes a record batch of format v2; the zero values of the producer's fields mean none.
type batch struct {
	records          []record
	attributes       int16
	producerID       int64
	producerEpoch    int16
	sequence         int32
	idempotent       bool
	badCRC, badCount bool
	// body, where it is given, stands for the encoded records.
	body []byte
}

const gzipCodec, lz4Codec, transactionalBit = 1, 3, 1 << 4

func (b batch) bytes() []byte {
	var body []byte
	first, last := b.records[0].timestampMs, int64(0)
	for i, r := range b.records {
		last = max(last, r.timestampMs)
		rec := kmsg.Record{TimestampDelta64: r.timestampMs - first, OffsetDelta: int32(i), Key: r.key, Value: r.value, Headers: r.headers}
		sized := rec.AppendTo(nil)
		rec.Length = int32(len(sized) - 1) // the length itself took one byte, being 0
		body = rec.AppendTo(body)
	}
	if b.attributes&7 == gzipCodec {
		body = gzipped(body)
	}
	if b.body != nil {
		body = b.body
	}
	if !b.idempotent {
		b.producerID, b.producerEpoch, b.sequence = -1, -1, -1
	}
	n := int32(len(b.records))
	if b.badCount {
		n++
	}
	raw := (&kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: b.attributes, LastOffsetDelta: int32(len(b.records) - 1),
		FirstTimestamp: first, MaxTimestamp: last, ProducerID: b.producerID, ProducerEpoch: b.producerEpoch,
		FirstSequence: b.sequence, NumRecords: n, Records: body,
	}).AppendTo(nil)
	const lengthAt, crcAt, crcFrom = 8, 17, 21
	binary.BigEndian.PutUint32(raw[lengthAt:], uint32(len(raw)-lengthAt-4))
	sum := crc32.Checksum(raw[crcFrom:], crc32.MakeTable(crc32.Castagnoli))
	if b.badCRC {
		sum++
	}
	binary.BigEndian.PutUint32(raw[crcAt:], sum)
	return raw
}

// lz4Frame is an LZ4 frame of one block that is not compressed. The descriptor's checksum is a byte of XXH32.
func lz4Frame(dependent bool, b []byte) []byte {
	frame := []byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82}
	if dependent {
		copy(frame[4:], []byte{0x40, 0x40, 0xc0})
	}
	frame = append(binary.LittleEndian.AppendUint32(frame, uint32(len(b))|1<<31), b...)
	return append(frame, 0, 0, 0, 0)
}

// oddRecord is a record with any lengths before its key and value, which are empty.
func oddRecord(keyLength, valueLength int64) []byte {
	fields := []byte{0, 0, 0} // attributes, timestamp and offset delta
	fields = binary.AppendVarint(fields, keyLength)
	fields = binary.AppendVarint(fields, valueLength)
	fields = append(fields, 0) // headers
	return append(binary.AppendVarint(nil, int64(len(fields))), fields...)
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// messageSet is records in the message format v0 or v1, as clients before 0.11 send them; gzip wraps them in one.
func messageSet(magic int8, codec int8, records []record) []byte {
	var inner []byte
	for i, r := range records {
		inner = appendMessage(inner, int64(i), magic, 0, r.timestampMs, r.key, r.value)
	}
	if codec == 0 {
		return inner
	}
	last := records[len(records)-1]
	return appendMessage(nil, int64(len(records)-1), magic, codec, last.timestampMs, nil, gzipped(inner))
}

func appendMessage(b []byte, offset int64, magic, attributes int8, timestampMs int64, key, value []byte) []byte {
	m := []byte{byte(magic), byte(attributes)}
	if magic > 0 {
		m = binary.BigEndian.AppendUint64(m, uint64(timestampMs))
	}
	m = appendBytes(m, key)
	m = appendBytes(m, value)
	b = binary.BigEndian.AppendUint64(b, uint64(offset))
	b = binary.BigEndian.AppendUint32(b, uint32(len(m)+4))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(m))
	return append(b, m...)
}

func appendBytes(b, s []byte) []byte {
	if s == nil {
		return binary.BigEndian.AppendUint32(b, 0xffffffff)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// renderBatches shows what was fetched: the header fields and the records of batches, or the messages of a set.
func renderBatches(path string, raw []byte) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, path+fmt.Sprintf(format, args...)) }
	const magicAt, least = 16, 17
	for n := 0; len(raw) >= least; n++ {
		size := 12 + int(binary.BigEndian.Uint32(raw[8:]))
		if size > len(raw) {
			add("[%d] = cut", n)
			return lines
		}
		if raw[magicAt] < 2 {
			m := raw[:size]
			add("[%d].message = offset %d magic %d attributes %d crc ok %t body %q", n, binary.BigEndian.Uint64(m), m[magicAt], m[17],
				binary.BigEndian.Uint32(m[12:]) == crc32.ChecksumIEEE(m[16:]), messageBody(m))
			raw = raw[size:]
			continue
		}
		var b kmsg.RecordBatch
		if err := b.ReadFrom(raw[:size]); err != nil {
			add("[%d] = %v", n, err)
			return lines
		}
		ok := uint32(b.CRC) == crc32.Checksum(raw[21:size], crc32.MakeTable(crc32.Castagnoli))
		add("[%d].header = offset %d epoch %d attributes %d last delta %d %s producer %s/%d sequence %d records %d crc ok %t", n, b.FirstOffset,
			b.PartitionLeaderEpoch, b.Attributes, b.LastOffsetDelta, batchTimes(b), kindOf(fmt.Sprint(b.ProducerID)), b.ProducerEpoch, b.FirstSequence, b.NumRecords, ok)
		for i, r := range recordsOf(b) {
			add("[%d].record[%d] = %s", n, i, r)
		}
		raw = raw[size:]
	}
	if len(raw) > 0 {
		add("[rest] = %d bytes", len(raw))
	}
	return lines
}

// messageBody unwraps gzip, whose bytes depend on who compressed.
func messageBody(m []byte) []byte {
	body := m[18:]
	if m[17]&7 != gzipCodec {
		return body
	}
	at := 0
	if m[16] == 1 {
		at = 8
	}
	at += 4 // no key
	return append(bytes.Clone(body[:at]), gunzipped(body[at+4:])...)
}

func gunzipped(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return []byte(err.Error())
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(r); err != nil {
		return []byte(err.Error())
	}
	return out.Bytes()
}

func batchTimes(b kmsg.RecordBatch) string {
	if b.Attributes&(1<<3) != 0 || b.Attributes&(1<<5) != 0 {
		return "at a time of the broker's"
	}
	return fmt.Sprintf("times %d %d", b.FirstTimestamp, b.MaxTimestamp)
}

func recordsOf(b kmsg.RecordBatch) (out []string) {
	body := b.Records
	if b.Attributes&7 == gzipCodec {
		body = gunzipped(body)
	}
	for range b.NumRecords {
		size, n := binary.Varint(body)
		if n <= 0 || size < 0 || int(size)+n > len(body) {
			return append(out, "cut")
		}
		var r kmsg.Record
		if err := r.ReadFrom(body[:n+int(size)]); err != nil {
			return append(out, err.Error())
		}
		out = append(out, fmt.Sprintf("+%dms +%d key %q value %q headers %q", r.TimestampDelta64, r.OffsetDelta, r.Key, r.Value, r.Headers))
		body = body[n+int(size):]
	}
	return out
}
