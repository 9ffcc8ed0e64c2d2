package batch

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// keySink keeps the last key.
type keySink struct{ bytes.Buffer }

// TestRewriteKeepsTheRest takes any records out of any batch: what stays is as it
// was, and so is all of the header that does not speak of records.
func TestRewriteKeepsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawBatch(t)
		var want []Record
		keep := map[int32]bool{}
		o := RewriteOptions{Keep: func(i int32) bool { return keep[i] }, MaxTimestampMs: NoTimestamp,
			BaseTimestampMs: rapid.Int64Range(-1, 1<<50).Draw(t, "base"), DeleteHorizon: rapid.Bool().Draw(t, "horizon")}
		i := int32(0)
		err := Records(v, 0, func(r Record) error {
			if rapid.Bool().Draw(t, "keep") || i == v.NumRecords()-1 && len(want) == 0 {
				keep[i] = true
				want = append(want, r)
				o.MaxTimestampMs = max(o.MaxTimestampMs, r.TimestampMs)
			}
			i++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Kept = int32(len(want))
		dst, err := Rewrite([]byte("before"), v, o)
		if err != nil || string(dst[:6]) != "before" {
			t.Fatalf("%q, %v", dst[:min(6, len(dst))], err)
		}
		got, rest, err := Next(dst[6:])
		if err != nil || len(rest) != 0 || got.CRC() != got.ComputeCRC() {
			t.Fatalf("%d bytes are left, %v", len(rest), err)
		}
		var records []Record
		if err := Records(got, 0, func(r Record) error { records = append(records, r); return nil }); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(records, want) {
			t.Fatalf("kept\n%v, not\n%v", records, want)
		}
		if got.NumRecords() != o.Kept || got.HasDeleteHorizon() != o.DeleteHorizon || got.BaseTimestamp() != o.BaseTimestampMs || got.MaxTimestamp() != o.MaxTimestampMs {
			t.Fatalf("%d records, horizon %v, base %d, max %d", got.NumRecords(), got.HasDeleteHorizon(), got.BaseTimestamp(), got.MaxTimestamp())
		}
		sameFront(t, v, got)
		if got.Codec() != v.Codec() {
			t.Fatalf("codec %v, not %v", got.Codec(), v.Codec())
		}
	})
}

// sameFront compares what compaction never changes.
func sameFront(t *rapid.T, v, got View) {
	t.Helper()
	if got.BaseOffset() != v.BaseOffset() || got.LastOffset() != v.LastOffset() || got.PartitionLeaderEpoch() != v.PartitionLeaderEpoch() ||
		got.ProducerID() != v.ProducerID() || got.ProducerEpoch() != v.ProducerEpoch() || got.BaseSequence() != v.BaseSequence() ||
		got.TimestampType() != v.TimestampType() || got.IsTransactional() != v.IsTransactional() || got.IsControl() != v.IsControl() || got.Magic() != 2 {
		t.Fatalf("the header changed from\n%x to\n%x", []byte(v[:HeaderSize]), []byte(got[:HeaderSize]))
	}
}

func TestHeadsAndEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawBatch(t)
		var want []Record
		if err := Records(v, 0, func(r Record) error { want = append(want, r); return nil }); err != nil {
			t.Fatal(err)
		}
		n := 0
		var key keySink
		err := Heads(v, 0, &key, func(h Head) error {
			r := want[n]
			if int(h.Index) != n || h.Offset != r.Offset || h.TimestampMs != r.TimestampMs || h.NullKey != (r.Key == nil) || h.NullValue != (r.Value == nil) || key.String() != string(r.Key) {
				t.Fatalf("record %d is %+v with key %q, not %+v", n, h, key.String(), r)
			}
			n++
			if n == 5 {
				return ErrStop
			}
			return nil
		})
		if err != nil || n != min(5, len(want)) {
			t.Fatalf("%d of %d records, %v", n, len(want), err)
		}
		got := View(AppendEmpty(nil, v))
		if len(got) != HeaderSize || got.SizeBytes() != HeaderSize || got.CRC() != got.ComputeCRC() || got.NumRecords() != 0 ||
			got.Codec() != None || got.MaxTimestamp() != v.MaxTimestamp() || got.BaseTimestamp() != NoTimestamp {
			t.Fatalf("%x", []byte(got))
		}
		sameFront(t, v, got)
		if err := Records(got, 0, func(Record) error { return fmt.Errorf("a record") }); err != nil {
			t.Fatal(err)
		}
		if err := Heads(got, 0, &key, func(Head) error { return fmt.Errorf("a record") }); err != nil {
			t.Fatal(err)
		}
	})
}

func drawBatch(t *rapid.T) View {
	o := BuilderOptions{
		BaseOffset: rapid.Int64Range(0, 1<<40).Draw(t, "offset"), LeaderEpoch: rapid.Int32Range(0, 9).Draw(t, "epoch"),
		Codec: rapid.SampledFrom(allCodecs).Draw(t, "codec"), Transactional: rapid.Bool().Draw(t, "txn"),
	}
	if rapid.Bool().Draw(t, "producer") {
		o.Producer = &ProducerStamp{ID: 5, Epoch: 2, BaseSequence: rapid.Int32Range(0, 1000).Draw(t, "sequence")}
	}
	if rapid.Bool().Draw(t, "append time") {
		o.AppendTimeMs = rapid.Int64Range(1, 1<<45).Draw(t, "appended")
	}
	b := NewBuilder(o)
	field := func(name string) []byte {
		switch rapid.IntRange(0, 8).Draw(t, name) {
		case 0:
			return nil
		case 1:
			return bytes.Repeat([]byte("long "), rapid.IntRange(1, 9000).Draw(t, "length")) // beyond a window
		}
		return rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, name)
	}
	for range rapid.IntRange(1, 12).Draw(t, "records") {
		var headers []Header
		for range rapid.IntRange(0, 2).Draw(t, "headers") {
			headers = append(headers, Header{Key: "h", Value: field("header")})
		}
		b.Add(rapid.Int64Range(-1, 1<<45).Draw(t, "timestamp"), field("key"), field("value"), headers...)
	}
	return b.Build()
}

func FuzzFilter(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _, err := Next(b)
		if err != nil {
			return
		}
		var key keySink
		n := int32(0)
		if err := Heads(v, fuzzBytes, &key, func(Head) error { n++; return nil }); err != nil || n == 0 {
			return
		}
		got, err := Rewrite(nil, v, RewriteOptions{Keep: func(i int32) bool { return i%2 == 0 }, Kept: (n + 1) / 2, MaxDecodedBytes: fuzzBytes})
		if err != nil {
			t.Fatalf("Heads accepts what Rewrite does not: %v", err)
		}
		kept := int32(0)
		if err := Heads(got, 2*fuzzBytes, &key, func(Head) error { kept++; return nil }); err != nil || kept != (n+1)/2 {
			t.Fatalf("%d of %d records are kept: %v", kept, n, err)
		}
	})
}
