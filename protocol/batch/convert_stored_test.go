package batch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// storedSet draws what an old log may hold, compacted or not: messages and
// wrappers with rising offsets and gaps between them. The messages come beside it.
func storedSet(t *rapid.T) (log []byte, all []message) {
	next := rapid.Int64Range(0, 1<<40).Draw(t, "first offset")
	draw := func(magic int8) message {
		next += rapid.SampledFrom([]int64{1, 1, 1, 2, 1000}).Draw(t, "gap")
		m := message{offset: next, magic: magic, timestampMs: NoTimestamp, value: []byte(rapid.StringN(0, 20, -1).Draw(t, "value"))}
		if magic > 0 {
			m.timestampMs = rapid.Int64Range(0, 1<<42).Draw(t, "timestamp")
		}
		if rapid.Bool().Draw(t, "key") {
			m.key = []byte(rapid.StringN(0, 4, -1).Draw(t, "key text"))
		}
		return m
	}
	for range rapid.IntRange(1, 8).Draw(t, "pieces") {
		magic := rapid.SampledFrom([]int8{0, 1}).Draw(t, "magic")
		appendTime := magic > 0 && rapid.IntRange(0, 3).Draw(t, "append time") == 0
		codec := rapid.SampledFrom([]Codec{None, None, Gzip, Snappy, LZ4}).Draw(t, "codec")
		if codec == None {
			m := draw(magic)
			if appendTime {
				m.attributes |= attrLogAppendTime
			}
			log, all = append(log, set(m)...), append(all, m)
			continue
		}
		log, all = storedWrapper(t, log, all, draw, magic, codec, appendTime)
	}
	return log, all
}

func storedWrapper(t *rapid.T, log []byte, all []message, draw func(int8) message, magic int8, codec Codec, appendTime bool) ([]byte, []message) {
	n := rapid.IntRange(1, 5).Draw(t, "inside")
	inside := make([]message, n)
	var inner []byte
	for i := range inside {
		inside[i] = draw(magic)
	}
	wrapper := message{magic: magic, offset: inside[n-1].offset, timestampMs: inside[n-1].timestampMs}
	for _, m := range inside {
		if magic > 0 {
			m.offset -= inside[0].offset
		}
		inner = append(inner, set(m)...)
	}
	if appendTime {
		wrapper.attributes |= attrLogAppendTime
		wrapper.timestampMs = 77
		for i := range inside {
			inside[i].timestampMs = 77
		}
	}
	if magic == 0 && codec == LZ4 {
		codec = Gzip // the old framing of LZ4 is tried with Kafka's own bytes
	}
	return append(log, wrap(wrapper, codec, inner)...), append(all, inside...)
}

// What an old log holds is the same afterwards, offset by offset.
func TestConvertStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log, want := storedSet(t)
		var got []message
		last := int64(-1)
		for len(log) > 0 {
			v, rest, err := ConvertStored(log, 3, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(rest) >= len(log) || v.BaseOffset() <= last || v.CRC() != v.ComputeCRC() || v.PartitionLeaderEpoch() != 3 {
				t.Fatalf("a batch at %d of epoch %d follows offset %d, %d bytes left of %d", v.BaseOffset(), v.PartitionLeaderEpoch(), last, len(rest), len(log))
			}
			maxTs := int64(NoTimestamp)
			err = Records(v, 0, func(r Record) error {
				got = append(got, message{offset: r.Offset, timestampMs: r.TimestampMs, key: r.Key, value: r.Value})
				maxTs = max(maxTs, r.TimestampMs)
				last = r.Offset
				return nil
			})
			if err != nil || v.LastOffset() != last || v.MaxTimestamp() != maxTs {
				t.Fatalf("the batch at %d ends at %d (the records at %d), max timestamp %d (%d): %v", v.BaseOffset(), v.LastOffset(), last, v.MaxTimestamp(), maxTs, err)
			}
			log = rest
		}
		for i := range want {
			if i >= len(got) || fmt.Sprintf("%d %d %x %x", got[i].offset, got[i].timestampMs, got[i].key, got[i].value) !=
				fmt.Sprintf("%d %d %x %x", want[i].offset, want[i].timestampMs, want[i].key, want[i].value) || (got[i].key == nil) != (want[i].key == nil) {
				t.Fatalf("message %d of %d: got %+v, want %+v", i, len(want), got[min(i, len(got)-1)], want[i])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d records of %d messages", len(got), len(want))
		}
	})
}

// Sets that Kafka's own clients made.
func TestConvertStoredOfKafka(t *testing.T) {
	for _, magic := range []int8{0, 1} {
		for _, codec := range oldCodecs {
			name := fmt.Sprintf("testdata/sets/v%d-%s.set", magic, codec)
			log, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want := messagesOf(t, log)
			n := 0
			for len(log) > 0 {
				v, rest, err := ConvertStored(log, 0, 0)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				err = Records(v, 0, func(r Record) error {
					if m := want[n]; r.Offset != m.offset || !bytes.Equal(r.Key, m.key) || !bytes.Equal(r.Value, m.value) || r.TimestampMs != m.timestampMs {
						t.Errorf("%s: record %d is %+v, want %+v", name, n, r, m)
					}
					n++
					return nil
				})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				log = rest
			}
			if n != len(want) {
				t.Errorf("%s: %d records, want %d", name, n, len(want))
			}
		}
	}
}

// A byte that was changed is found, and a message that ends early is not half
// converted.
func TestConvertStoredOfDamage(t *testing.T) {
	log := append(set(message{offset: 4, magic: 1, key: []byte("k"), value: []byte("v")}), wrap(message{offset: 6, magic: 1}, Gzip, set(
		message{offset: 0, magic: 1, value: []byte("a")}, message{offset: 1, magic: 1, value: []byte("b")}))...)
	whole, rest, err := ConvertStored(log, 0, 0)
	if err != nil || whole.BaseOffset() != 4 || whole.NumRecords() != 1 {
		t.Fatalf("%v", err)
	}
	if v, _, err := ConvertStored(rest, 0, 0); err != nil || v.BaseOffset() != 5 || v.LastOffset() != 6 || v.Codec() != Gzip {
		t.Fatalf("%v", err)
	}
	for i := LogOverhead; i < len(rest); i++ {
		bad := bytes.Clone(rest)
		bad[i] ^= 0x40
		if _, _, err := ConvertStored(bad, 0, 0); err == nil {
			t.Fatalf("byte %d is not missed", i)
		}
	}
	if _, _, err := ConvertStored(rest[:len(rest)-1], 0, 0); !errors.Is(err, ErrTruncated) {
		t.Errorf("cut: %v", err)
	}
}
