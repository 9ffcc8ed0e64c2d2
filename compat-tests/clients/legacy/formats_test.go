package legacy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The codecs, by number.
const (
	none = iota
	gzipped
	snappied
	lz4ed
	zstded
)

var codecNames = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// msg is one message of format v0 or v1.
type msg struct {
	magic      int8
	offset     int64
	attributes int8
	timestamp  int64
	key, value []byte
}

func text(s string) []byte { return []byte(s) }

// set is messages one after another.
func set(messages ...msg) []byte {
	var out []byte
	for _, m := range messages {
		start := len(out)
		if m.magic == 0 {
			v0 := kmsg.MessageV0{Offset: m.offset, Attributes: m.attributes, Key: m.key, Value: m.value}
			out = v0.AppendTo(out)
		} else {
			v1 := kmsg.MessageV1{Offset: m.offset, Magic: m.magic, Attributes: m.attributes, Timestamp: m.timestamp, Key: m.key, Value: m.value}
			out = v1.AppendTo(out)
		}
		seal(out[start:])
	}
	return out
}

// seal writes a message's size and checksum.
func seal(b []byte) {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
}

// wrapped is a wrapper message around a set.
func wrapped(wrapper msg, codec int8, inner []byte) []byte {
	wrapper.attributes |= codec
	wrapper.value = compress(codec, inner)
	return set(wrapper)
}

func compress(codec int8, plain []byte) []byte {
	var b bytes.Buffer
	write := func(w io.WriteCloser) []byte {
		if _, err := w.Write(plain); err != nil {
			panic(err)
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
		return b.Bytes()
	}
	switch codec {
	case gzipped:
		return write(gzip.NewWriter(&b))
	case snappied:
		return xerial(plain)
	case lz4ed:
		w := lz4.NewWriter(&b)
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)); err != nil {
			panic(err)
		}
		return write(w)
	case zstded:
		w, err := zstd.NewWriter(&b)
		if err != nil {
			panic(err)
		}
		return write(w)
	}
	return plain
}

var xerialHeader = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

func xerial(plain []byte) []byte {
	block := snappy.Encode(nil, plain)
	out := binary.BigEndian.AppendUint32(bytes.Clone(xerialHeader), uint32(len(block)))
	return append(out, block...)
}

func decompress(t *testing.T, codec int8, b []byte) []byte {
	t.Helper()
	var r io.Reader
	var err error
	switch codec {
	case none:
		return b
	case gzipped:
		r, err = gzip.NewReader(bytes.NewReader(b))
	case snappied:
		return unsnappy(t, b)
	case lz4ed:
		r = lz4.NewReader(bytes.NewReader(b))
	case zstded:
		r, err = zstd.NewReader(bytes.NewReader(b))
	}
	if err != nil {
		t.Fatalf("%s: %v", codecNames[codec], err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", codecNames[codec], err)
	}
	return plain
}

func unsnappy(t *testing.T, b []byte) []byte {
	t.Helper()
	var out []byte
	if !bytes.HasPrefix(b, xerialHeader[:8]) {
		out, err := snappy.Decode(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for b = b[16:]; len(b) > 0; {
		n := binary.BigEndian.Uint32(b)
		block, err := snappy.Decode(nil, b[4:4+n])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, block...)
		b = b[4+n:]
	}
	return out
}

// record is what the makers of batches take.
type record struct {
	timestamp  int64
	key, value []byte
	headers    []kmsg.Header
}

// batch is a record batch as a new producer sends it.
func batch(codec int8, attributes int16, producerID int64, baseSequence int32, records ...record) []byte {
	var plain []byte
	first, last := records[0].timestamp, int64(-1)
	for i, r := range records {
		rec := kmsg.Record{TimestampDelta64: r.timestamp - first, OffsetDelta: int32(i), Key: r.key, Value: r.value, Headers: r.headers}
		// The length in front of a record is itself of variable length.
		body := rec.AppendTo(nil)[1:]
		plain = append(binary.AppendVarint(plain, int64(len(body))), body...)
		last = max(last, r.timestamp)
	}
	epoch := int16(0)
	if producerID < 0 {
		epoch = -1
	}
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: attributes | int16(codec), LastOffsetDelta: int32(len(records) - 1),
		FirstTimestamp: first, MaxTimestamp: last, ProducerID: producerID, ProducerEpoch: epoch, FirstSequence: baseSequence,
		NumRecords: int32(len(records)), Records: compress(codec, plain),
	}
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// stamp is a timestamp as it is compared: what the broker's own clock gave is only told from what a client gave.
func stamp(ms int64) string {
	if age := time.Since(time.UnixMilli(ms)); age > -time.Minute && age < 5*time.Minute {
		return "now"
	}
	return fmt.Sprint(ms)
}

// describe tells what a fetch response's records are, in every format; a last one that is not whole is left out.
func describe(t *testing.T, b []byte) (out []string) {
	t.Helper()
	for len(b) > 17 {
		size := 12 + int(binary.BigEndian.Uint32(b[8:]))
		if size > len(b) {
			break
		}
		if b[16] == 2 {
			out = append(out, describeBatch(t, b[:size])...)
		} else {
			out = append(out, describeMessage(t, b[:size], "")...)
		}
		b = b[size:]
	}
	return out
}

func describeBatch(t *testing.T, raw []byte) (out []string) {
	t.Helper()
	var b kmsg.RecordBatch
	if err := b.ReadFrom(raw); err != nil {
		t.Fatal(err)
	}
	if crc := crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)); uint32(b.CRC) != crc {
		t.Fatalf("a batch's checksum is %x, not %x", uint32(b.CRC), crc)
	}
	out = append(out, fmt.Sprintf("batch %d+%d attributes %x first %s max %s producer %d/%d/%d, %d records",
		b.FirstOffset, b.LastOffsetDelta, b.Attributes, stamp(b.FirstTimestamp), stamp(b.MaxTimestamp),
		b.ProducerID, b.ProducerEpoch, b.FirstSequence, b.NumRecords))
	plain := decompress(t, int8(b.Attributes&7), b.Records)
	for range b.NumRecords {
		length, n := binary.Varint(plain)
		var r kmsg.Record
		if err := r.ReadFrom(plain[:n+int(length)]); err != nil {
			t.Fatal(err)
		}
		plain = plain[n+int(length):]
		out = append(out, fmt.Sprintf(" +%d %s %s=%s %v", r.OffsetDelta, stamp(b.FirstTimestamp+r.TimestampDelta64), show(r.Key), show(r.Value), r.Headers))
	}
	return out
}

func describeMessage(t *testing.T, raw []byte, indent string) (out []string) {
	t.Helper()
	if crc := binary.BigEndian.Uint32(raw[12:]); crc != crc32.ChecksumIEEE(raw[16:]) {
		t.Fatalf("a message's checksum is %x, not %x", crc, crc32.ChecksumIEEE(raw[16:]))
	}
	var m msg
	if raw[16] == 0 {
		var v0 kmsg.MessageV0
		if err := v0.ReadFrom(raw); err != nil {
			t.Fatal(err)
		}
		m = msg{0, v0.Offset, v0.Attributes, -1, v0.Key, v0.Value}
	} else {
		var v1 kmsg.MessageV1
		if err := v1.ReadFrom(raw); err != nil {
			t.Fatal(err)
		}
		m = msg{1, v1.Offset, v1.Attributes, v1.Timestamp, v1.Key, v1.Value}
	}
	line := fmt.Sprintf("%sv%d %d attributes %x %s", indent, m.magic, m.offset, m.attributes, stamp(m.timestamp))
	codec := m.attributes & 7
	if codec == none {
		return append(out, fmt.Sprintf("%s %s=%s", line, show(m.key), show(m.value)))
	}
	payload := bytes.Clone(m.value)
	if codec == lz4ed {
		// The two formats have different checksums in the frame's header.
		line += fmt.Sprintf(" frame %x", payload[:7])
		payload[6] = 0x82
	}
	out = append(out, line+" key "+show(m.key)+":")
	for inner := decompress(t, codec, payload); len(inner) > 0; {
		size := 12 + int(binary.BigEndian.Uint32(inner[8:]))
		out = append(out, describeMessage(t, inner[:size], " ")...)
		inner = inner[size:]
	}
	return out
}

func show(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 40:
		return fmt.Sprintf("%q... (%d, %x)", b[:20], len(b), crc32.ChecksumIEEE(b))
	}
	return fmt.Sprintf("%q", b)
}

func rawSnappy(plain []byte) []byte { return snappy.Encode(nil, plain) }
