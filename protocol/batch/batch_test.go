package batch

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var allCodecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

func genBytes(t *rapid.T, label string) []byte {
	switch rapid.IntRange(0, 4).Draw(t, label+" kind") {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return bytes.Repeat([]byte("abcdefg "), rapid.IntRange(0, 1500).Draw(t, label+" repeats"))
	}
	return rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, label)
}

func genRecords(t *rapid.T) []Record {
	n := rapid.IntRange(1, 12).Draw(t, "records")
	base := rapid.Int64Range(0, 1<<41).Draw(t, "base")
	out := make([]Record, n)
	for i := range out {
		r := &out[i]
		r.Offset = int64(i)
		r.TimestampMs = base + rapid.Int64Range(-1000, 1<<33).Draw(t, "delta")
		r.Key, r.Value = genBytes(t, "key"), genBytes(t, "value")
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			r.Headers = append(r.Headers, Header{rapid.String().Draw(t, "header key"), genBytes(t, "header value")})
		}
	}
	return out
}

func build(o BuilderOptions, records []Record) View {
	b := NewBuilder(o)
	for _, r := range records {
		b.Add(r.TimestampMs, r.Key, r.Value, r.Headers...)
	}
	return b.Build()
}

func collect(t interface{ Fatalf(string, ...any) }, v View) []Record {
	var out []Record
	err := Records(v, 0, func(r Record) error { out = append(out, r); return nil })
	if err != nil {
		t.Fatalf("Records: %v", err)
	}
	return out
}

func sameRecords(a, b []Record) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d records, want %d", len(a), len(b))
	}
	for i := range a {
		if !sameRecord(a[i], b[i]) {
			return fmt.Errorf("record %d is\n%#v, want\n%#v", i, a[i], b[i])
		}
	}
	return nil
}

func sameRecord(a, b Record) bool {
	return a.Offset == b.Offset && a.TimestampMs == b.TimestampMs && sameBytes(a.Key, b.Key) && sameBytes(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(x, y Header) bool { return x.Key == y.Key && sameBytes(x.Value, y.Value) })
}

// sameBytes tells null from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func TestRecordsGiveBackWhatWasBuilt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genRecords(t)
		o := BuilderOptions{
			Codec: rapid.SampledFrom(allCodecs).Draw(t, "codec"),
			Level: rapid.IntRange(0, 4).Draw(t, "level"),
		}
		v := build(o, want)
		head, rest, err := Next(append(bytes.Clone(v), 1, 2, 3))
		if err != nil || !bytes.Equal(head, v) || len(rest) != 3 {
			t.Fatalf("Next gave %d bytes, %d left, %v; the batch has %d", len(head), len(rest), err, len(v))
		}
		if v.CRC() != v.ComputeCRC() || v.SizeBytes() != len(v) || int(v.NumRecords()) != len(want) {
			t.Fatalf("bad header: %x", v[:HeaderSize])
		}
		if err := sameRecords(collect(t, v), want); err != nil {
			t.Fatalf("%v: %v", o.Codec, err)
		}
	})
}
