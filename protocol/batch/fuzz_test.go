package batch

import (
	"bytes"
	"os"
	"testing"

	"github.com/klauspost/compress/snappy"
)

func rawSnappy(plain []byte) []byte { return snappy.Encode(nil, plain) }

// javaBatches are batches of twelve records that Kafka's Java producer sent,
// idempotent and with linger, one for each codec.
func javaBatches(t testing.TB) map[Codec]View {
	out := map[Codec]View{}
	for _, codec := range allCodecs {
		b, err := os.ReadFile("testdata/java/" + codec.String() + ".batch")
		if err != nil {
			t.Fatal(err)
		}
		out[codec] = b
	}
	return out
}

func TestJavaBatches(t *testing.T) {
	for codec, v := range javaBatches(t) {
		s, err := Validate(v, Options{})
		if err != nil || s.NumRecords != 12 || v.Codec() != codec || !v.HasProducerID() || v.BaseSequence() != 0 {
			t.Fatalf("%v: %+v, %v", codec, s, err)
		}
		records := collect(t, v)
		if !bytes.HasPrefix(records[3].Value, []byte("the quick brown fox")) || records[3].Key != nil || records[11].Offset != 11 {
			t.Errorf("%v: %+v", codec, records[3])
		}
		if off, _, found, err := OffsetOfMaxTimestamp(v, 0); err != nil || !found || off < 0 || off > 11 {
			t.Errorf("%v: %d, %v, %v", codec, off, found, err)
		}
	}
}

func seeds(f *testing.F) {
	for _, v := range javaBatches(f) {
		f.Add([]byte(v))
	}
	for _, codec := range allCodecs {
		f.Add([]byte(three(BuilderOptions{Codec: codec})))
		f.Add([]byte(three(BuilderOptions{Codec: codec, Producer: &ProducerStamp{ID: 1, BaseSequence: 2}, Transactional: true})))
	}
	f.Add([]byte(three(BuilderOptions{Control: true, AppendTimeMs: 5})))
	f.Add([]byte(raw(1, 12, 0, 0, 0, 40, 1, 0)))
	f.Add([]byte(raw(1, 16, 0, 0, 0, 1, 1, 2, 1, 0)))
}

func FuzzNext(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			v, rest, err := Next(b)
			if err != nil {
				return
			}
			if len(v) < HeaderSize || v.SizeBytes() != len(v) || len(v)+len(rest) != len(b) {
				t.Fatalf("%d bytes split into %d and %d", len(b), len(v), len(rest))
			}
			b = rest
		}
	})
}

// fuzzBytes keeps the fuzzer from spending its time on one large expansion.
const fuzzBytes = 1 << 20

func FuzzValidate(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _, err := Next(b)
		if err != nil {
			return
		}
		// The checksum would keep the fuzzer out of the records.
		v = with(v, func(View) {})
		o := open
		o.MaxDecodedBytes = fuzzBytes
		s, err := Validate(v, o)
		if err != nil {
			return
		}
		n := 0
		if err := Records(v, fuzzBytes, func(Record) error { n++; return nil }); err != nil || n != int(s.NumRecords) {
			t.Fatalf("Validate accepts what Records does not: %d of %d, %v", n, s.NumRecords, err)
		}
		o.Recompress, o.Codec = true, LZ4
		got, _, err := Prepare(bytes.Clone(v), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Validate(got, o); err != nil {
			t.Fatalf("Prepare makes what Validate does not accept: %v", err)
		}
	})
}

func FuzzRecords(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _, err := Next(b)
		if err != nil {
			return
		}
		_ = Records(v, fuzzBytes, func(r Record) error {
			if len(r.Key)+len(r.Value) > fuzzBytes {
				t.Fatal("a record larger than the bound")
			}
			return nil
		})
		_, _, _, _ = OffsetForTimestamp(v, 5, 0, fuzzBytes)
		_, _, _, _ = OffsetOfMaxTimestamp(v, fuzzBytes)
		_ = WorkingBytes(v)
	})
}
