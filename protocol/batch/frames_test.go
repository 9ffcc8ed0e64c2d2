package batch

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// compressed is three records as a codec's writer makes them, behind the header of a
// batch that change may replace.
func compressed(codec Codec, change func([]byte) []byte) View {
	v := three(BuilderOptions{Codec: codec})
	body := change(bytes.Clone(v.records()))
	v = append(bytes.Clone(v[:HeaderSize]), body...)
	binary.BigEndian.PutUint32(v[posLength:], uint32(len(v)-LogOverhead))
	v.updateCRC()
	return v
}

// lz4With changes the flags of an LZ4 frame and makes its header's checksum right.
func lz4With(set, clear byte) func([]byte) []byte {
	return func(frame []byte) []byte {
		frame[4] = frame[4]&^clear | set
		return rightLZ4Checksum(frame)
	}
}

func before(head ...byte) func([]byte) []byte {
	return func(b []byte) []byte { return append(head, b...) }
}

func behind(tail ...byte) func([]byte) []byte {
	return func(b []byte) []byte { return append(b, tail...) }
}

func twice(b []byte) []byte { return slices.Concat(b, b) }

// What Apache Kafka 4.4 takes of each codec, asked byte for byte; what it refuses its
// Java consumers could not read.
func TestFramesThatKafkaReads(t *testing.T) {
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9}
	for _, tc := range []struct {
		name  string
		codec Codec
		frame func([]byte) []byte
		takes bool
	}{
		{"lz4", LZ4, behind(), true},
		{"lz4, dependent blocks", LZ4, lz4With(0, lz4IndependentBlock), false},
		{"lz4, a reserved flag", LZ4, lz4With(2, 0), false},
		{"lz4, another version", LZ4, lz4With(0x80, 0x40), false},
		{"lz4, a frame to skip before", LZ4, before(skippable...), false},
		{"lz4, bytes behind", LZ4, behind(0, 1, 2), true},
		{"lz4, a frame to skip behind", LZ4, behind(skippable...), true},
		{"lz4, another sum of the content", LZ4, func(b []byte) []byte { return behind(1, 2, 3, 4)(lz4With(lz4ContentChecksum, 0)(b)) }, true},
		{"lz4, without the sum of its content", LZ4, lz4With(lz4ContentChecksum, 0), false},
		{"lz4, without its end", LZ4, func(b []byte) []byte { return b[:len(b)-8] }, false},
		{"lz4, with half of its end", LZ4, func(b []byte) []byte { return b[:len(b)-2] }, false},
		{"lz4, nothing", LZ4, func([]byte) []byte { return nil }, false},
		{"gzip, bytes behind", Gzip, behind(1, 2, 3), true},
		{"gzip, more bytes behind", Gzip, behind(make([]byte, 40)...), true},
		{"gzip, without its trailer", Gzip, func(b []byte) []byte { return b[:len(b)-8] }, false},
		{"gzip, another sum", Gzip, func(b []byte) []byte { b[len(b)-8]++; return b }, false},
		{"snappy, bytes behind", Snappy, behind(0), true},
		{"snappy, a block behind that is none", Snappy, behind(0, 0, 0, 0, 0), false},
		{"zstd, a frame to skip before", Zstd, before(skippable...), true},
		{"zstd, a frame to skip behind", Zstd, behind(skippable...), true},
		{"zstd, bytes behind", Zstd, behind(1, 2, 3), false},
	} {
		_, err := Validate(compressed(tc.codec, tc.frame), open)
		if tc.takes && err != nil || !tc.takes && protocol.Code(err) != kerr.InvalidRecord.Code {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// A codec's output may come in several pieces, each complete, but for LZ4, of which
// Kafka reads one.
func TestSeveralFramesInOneBatch(t *testing.T) {
	plain := three(BuilderOptions{}).records()
	for _, codec := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		var body []byte
		for _, part := range [][]byte{plain[:11], plain[11:]} {
			var w appendWriter
			if err := compressInto(&w, codec, 0, part); err != nil {
				t.Fatal(err)
			}
			body = append(body, w.b...)
		}
		v := compressed(codec, func([]byte) []byte { return body })
		if _, err := Validate(v, open); (err == nil) != (codec != LZ4) {
			t.Errorf("%v: %v", codec, err)
		}
	}
	if _, err := Validate(compressed(LZ4, twice), open); err != nil {
		t.Errorf("a second LZ4 frame is not looked at: %v", err)
	}
}
