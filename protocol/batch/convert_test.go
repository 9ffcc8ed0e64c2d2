package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/protocol"
)

var oldCodecs = []Codec{None, Gzip, Snappy, LZ4}

// set is messages one after another.
func set(messages ...message) []byte {
	var out []byte
	for i := range messages {
		out = appendMessage(out, &messages[i])
	}
	return out
}

// wrap is a wrapper message around a set.
func wrap(m message, codec Codec, inner []byte) []byte {
	w := &appendWriter{}
	if err := compressInto(w, codec, 0, inner); err != nil {
		panic(err)
	}
	m.value = w.b
	m.attributes |= int8(codec)
	return set(m)
}

// messagesOf reads a set as an old client does: wrappers opened, offsets absolute.
func messagesOf(t interface{ Fatalf(string, ...any) }, b []byte) []message {
	var out []message
	for len(b) > 0 {
		offset, raw, rest, err := nextMessage(b)
		if err != nil {
			t.Fatalf("message %d: %v", len(out), err)
		}
		b = rest
		if err := checkMessageCRC(raw); err != nil {
			t.Fatalf("message %d: %v", len(out), err)
		}
		m, err := parseMessage(offset, raw)
		if err != nil {
			t.Fatalf("message %d: %v", len(out), err)
		}
		if m.codec() == None {
			out = append(out, m)
			continue
		}
		if m.key != nil {
			t.Fatalf("a wrapper has a key")
		}
		out = append(out, innerOf(t, m)...)
	}
	return out
}

func innerOf(t interface{ Fatalf(string, ...any) }, wrapper message) []message {
	in, done, err := openWrapper(&wrapper, 1<<30)
	if err != nil {
		t.Fatalf("wrapper: %v", err)
	}
	defer done()
	plain := &appendWriter{}
	for {
		offset, raw, err := in.next()
		if err != nil {
			break
		}
		plain.b = binary.BigEndian.AppendUint64(plain.b, uint64(offset))
		plain.b = binary.BigEndian.AppendUint32(plain.b, uint32(len(raw)))
		plain.b = append(plain.b, raw...)
	}
	inner := messagesOf(t, plain.b)
	if n := len(inner); n > 0 && wrapper.magic == 1 {
		base, maxTs := wrapper.offset-inner[n-1].offset, int64(NoTimestamp)
		for i := range inner {
			inner[i].offset += base
			maxTs = max(maxTs, inner[i].timestampMs)
		}
		if maxTs != wrapper.timestampMs {
			t.Fatalf("the wrapper has timestamp %d, its messages at most %d", wrapper.timestampMs, maxTs)
		}
	}
	return inner
}

func TestConvertDownAndUpAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := genRecords(t)
		codec := rapid.SampledFrom(oldCodecs).Draw(t, "codec")
		magic := int8(rapid.IntRange(0, 1).Draw(t, "magic"))
		o := BuilderOptions{Codec: codec, BaseOffset: rapid.Int64Range(0, 1<<40).Draw(t, "offset")}
		if rapid.Bool().Draw(t, "append time") {
			o.AppendTimeMs = 77
		}
		stored := build(o, records)
		d, err := ConvertDown(stored, DownOptions{Magic: magic, FromOffset: o.BaseOffset, MaxBytes: 1 << 30})
		if err != nil || d.NumRecords != len(records) || d.NextOffset != stored.NextOffset() {
			t.Fatalf("%d records, next %d: %v", d.NumRecords, d.NextOffset, err)
		}
		got := messagesOf(t, d.Set)
		for i, m := range got {
			want := message{offset: o.BaseOffset + int64(i), magic: magic, timestampMs: records[i].TimestampMs, key: records[i].Key, value: records[i].Value}
			if o.AppendTimeMs != 0 {
				want.timestampMs, want.attributes = o.AppendTimeMs, attrLogAppendTime
			}
			if magic == 0 {
				want.timestampMs, want.attributes = NoTimestamp, 0
			}
			if err := sameMessage(m, want); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		up, s, err := ConvertUp(d.Set, Options{})
		if err != nil || int(s.NumRecords) != len(records) || up.Codec() != codec {
			t.Fatalf("up: %+v, %v", s, err)
		}
		again, err := Validate(up, Options{})
		if err != nil || again != s {
			t.Fatalf("the batch has %+v (%v), ConvertUp said %+v", again, err, s)
		}
		for i, r := range collect(t, up) {
			want := Record{Offset: int64(i), TimestampMs: got[i].timestampMs, Key: records[i].Key, Value: records[i].Value}
			if !sameRecord(r, want) {
				t.Fatalf("record %d is %+v, want %+v", i, r, want)
			}
		}
	})
}

func sameMessage(a, b message) error {
	if a.offset != b.offset || a.magic != b.magic || a.attributes != b.attributes || a.timestampMs != b.timestampMs ||
		!sameBytes(a.key, b.key) || !sameBytes(a.value, b.value) {
		return fmt.Errorf("is %+v, want %+v", a, b)
	}
	return nil
}

// TestJavaSets converts what Kafka's own client builds: twelve messages in each
// format and codec.
func TestJavaSets(t *testing.T) {
	for magic := range int8(2) {
		for _, codec := range oldCodecs {
			name := fmt.Sprintf("v%d-%v.set", magic, codec)
			b, err := os.ReadFile("testdata/sets/" + name)
			if err != nil {
				t.Fatal(err)
			}
			v, s, err := ConvertUp(b, Options{})
			if err != nil || s.NumRecords != 12 || v.Codec() != codec {
				t.Fatalf("%s: %+v, %v", name, s, err)
			}
			for i, r := range collect(t, v) {
				want := Record{Offset: int64(i), TimestampMs: NoTimestamp}
				if magic == 1 {
					want.TimestampMs = int64(1500000000000 + i%4*1000 - i)
				}
				if i%3 != 0 {
					want.Key = fmt.Append(nil, "key-", i)
				}
				if i%5 != 4 {
					want.Value = []byte(strings.Repeat(fmt.Sprintf("value %d the quick brown fox jumps over the lazy dog", i), i))
				}
				if !sameRecord(r, want) {
					t.Errorf("%s: record %d is %+v", name, i, r)
				}
			}
			d, err := ConvertDown(v, DownOptions{Magic: magic, MaxBytes: 1 << 20})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch {
			case codec == None && !bytes.Equal(d.Set, b):
				t.Errorf("%s comes back as other bytes", name)
			case codec == LZ4 && !bytes.Equal(d.Set[LogOverhead+messageHeadV0+8+8*int(magic):][:7], b[LogOverhead+messageHeadV0+8+8*int(magic):][:7]):
				t.Errorf("%s: the LZ4 frame begins otherwise than Kafka's", name)
			}
		}
	}
}

func TestConvertUpRefuses(t *testing.T) {
	hello := message{value: []byte("hello")}
	one := message{magic: 1, timestampMs: 1000, key: []byte("k"), value: []byte("hello")}
	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 0x10
		return b
	}
	appended := message{magic: 1, attributes: attrLogAppendTime, timestampMs: NoTimestamp}
	badInner := set(one)
	badInner[len(badInner)-1]++
	longKey := set(message{})
	longKey[LogOverhead+messageHeadV0] = 0x7f
	finishMessage(longKey)
	for _, tc := range []struct {
		name string
		set  []byte
		o    Options
		want *kerr.Error
	}{
		{"flipped byte", flip(set(hello), len(set(hello))-1), Options{}, kerr.CorruptMessage},
		{"flipped byte in a later message", append(set(hello), flip(set(hello), 20)...), Options{}, kerr.CorruptMessage},
		{"size below all", flip(set(hello), 11), Options{}, kerr.CorruptMessage},
		{"unknown format", append(make([]byte, 11), 14, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0), Options{}, kerr.CorruptMessage},
		{"two formats", set(hello, one), Options{}, kerr.InvalidRecord},
		{"message beyond the limit", set(hello, message{value: make([]byte, 200)}), Options{MaxMessageBytes: 100}, kerr.MessageTooLarge},
		{"batch beyond the limit", set(hello, hello, hello, hello, hello, hello), Options{MaxMessageBytes: 100}, kerr.MessageTooLarge},
		{"two wrappers", append(wrap(message{}, Gzip, set(hello)), wrap(message{}, Gzip, set(hello))...), Options{}, kerr.InvalidRecord},
		{"wrapper and message", append(wrap(message{}, Gzip, set(hello)), set(hello)...), Options{}, kerr.InvalidRecord},
		{"wrapper in zstd", wrap(message{magic: 1}, Zstd, set(one)), Options{}, kerr.InvalidRecord},
		{"wrapper without value", set(message{attributes: int8(Gzip)}), Options{}, kerr.InvalidRecord},
		{"wrapper without messages", wrap(message{}, Snappy, nil), Options{}, kerr.InvalidRecord},
		{"wrapper of garbage", set(message{attributes: int8(Gzip), value: []byte("garbage")}), Options{}, kerr.InvalidRecord},
		{"wrapper in a wrapper", wrap(message{}, Gzip, wrap(message{}, Gzip, set(hello))), Options{}, kerr.InvalidRecord},
		{"other format inside", wrap(message{magic: 1}, Gzip, set(hello)), Options{}, kerr.InvalidRecord},
		{"flipped byte inside", wrap(message{magic: 1}, Gzip, badInner), Options{}, kerr.CorruptMessage},
		{"wrapper's offset", wrap(message{magic: 1, offset: 3}, Gzip, set(message{magic: 1, offset: 4})), Options{}, kerr.InvalidRecord},
		{"wrapper expands too far", wrap(message{}, Gzip, set(message{value: make([]byte, 1<<20)})), Options{MaxDecodedBytes: 1 << 16}, kerr.MessageTooLarge},
		{"key missing", set(hello), Options{Compacted: true}, kerr.InvalidRecord},
		{"key missing inside", wrap(message{}, Gzip, set(hello)), Options{Compacted: true}, kerr.InvalidRecord},
		{"key missing and too large", append(set(hello), set(message{value: make([]byte, 90)})...), Options{Compacted: true, MaxMessageBytes: 120}, kerr.InvalidRecord},
		{"too old", set(one), Options{NowMs: 100_000, TimestampBeforeMaxMs: 10}, kerr.InvalidTimestamp},
		{"negative time", set(message{magic: 1, timestampMs: -5}), Options{NowMs: 5, TimestampBeforeMaxMs: math.MaxInt64}, kerr.InvalidTimestamp},
		{"negative time inside", wrap(message{magic: 1}, Gzip, set(message{magic: 1, timestampMs: -2})), Options{NowMs: 5, TimestampBeforeMaxMs: math.MaxInt64, LogAppendTime: true}, kerr.InvalidTimestamp},
		{"key beyond the message", longKey, Options{}, kerr.InvalidRecord},
		{"append time by the client", set(appended), Options{NowMs: 5}, kerr.InvalidTimestamp},
	} {
		v, _, err := ConvertUp(tc.set, tc.o)
		if v != nil || protocol.Code(err) != tc.want.Code {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}

func TestConvertUpLeavesOutAnIncompleteMessage(t *testing.T) {
	whole := set(message{value: []byte("a")}, message{value: []byte("b")})
	for cut := range whole {
		v, s, err := ConvertUp(whole[:cut], Options{})
		if want := int32(cut / (len(whole) / 2)); err != nil || s.NumRecords != want || (v == nil) != (want == 0) {
			t.Errorf("%d of %d bytes: %d records, %v", cut, len(whole), s.NumRecords, err)
		}
	}
}

func TestConvertUpAsTheTopicAsks(t *testing.T) {
	one := message{magic: 1, timestampMs: 1000, key: []byte("k"), value: bytes.Repeat([]byte("hello"), 100)}
	v, s, err := ConvertUp(set(one, one), Options{NowMs: 5000, LogAppendTime: true, Recompress: true, Codec: Zstd})
	if err != nil || v.Codec() != Zstd || v.TimestampType() != LogAppendTime || v.MaxTimestamp() != 5000 || s.MaxTimestampMs != 5000 || v.BaseTimestamp() != 1000 {
		t.Fatalf("%+v, %v", s, err)
	}
	// With append time in the wrapper its timestamp is that of all inside.
	appended := wrap(message{magic: 1, attributes: attrLogAppendTime, timestampMs: 4000, offset: 1}, LZ4, set(one, message{magic: 1, offset: 1, timestampMs: 5}))
	v, s, err = ConvertUp(appended, Options{NowMs: 5000, TimestampBeforeMaxMs: 1 << 40})
	if err != nil || v.Codec() != LZ4 || v.TimestampType() != CreateTime || s.MaxTimestampMs != 4000 {
		t.Fatalf("%+v, %v", s, err)
	}
}

func TestWrongLZ4ChecksumIsTakenInV0Only(t *testing.T) {
	for magic := range int8(2) {
		b := wrap(message{magic: magic}, LZ4, set(message{magic: magic, value: []byte("x")}))
		value := LogOverhead + messageHeadV0 + 8*int(magic) + 8
		b[value+6] ^= 0xff
		finishMessage(b)
		if _, _, err := ConvertUp(b, Options{}); (err == nil) != (magic == 0) {
			t.Errorf("v%d: %v", magic, err)
		}
	}
}

func TestRawSnappyWrapper(t *testing.T) {
	m := message{attributes: int8(Snappy), value: rawSnappy(set(message{value: []byte("x")}))}
	if _, s, err := ConvertUp(set(m), Options{}); err != nil || s.NumRecords != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestConvertDownLimits(t *testing.T) {
	plain := three(BuilderOptions{BaseOffset: 10})
	gzip := three(BuilderOptions{BaseOffset: 13, Codec: Gzip})
	zstd := three(BuilderOptions{BaseOffset: 16, Codec: Zstd})
	marker := three(BuilderOptions{BaseOffset: 19, Control: true, Transactional: true, Producer: &ProducerStamp{ID: 4}})
	last := three(BuilderOptions{BaseOffset: 22, Transactional: true, Producer: &ProducerStamp{ID: 4}})
	all := slices.Concat(plain, gzip, marker)
	for _, tc := range []struct {
		name     string
		batches  []byte
		from     int64
		maxBytes int
		// first, n and next are the first message's offset, how many there are and
		// NextOffset.
		first, n, next int64
		want           *kerr.Error
	}{
		{"everything", all, 10, 1 << 20, 10, 6, 22, nil},
		{"from the middle of plain records", all, 12, 1 << 20, 12, 4, 22, nil},
		{"from the middle of a wrapper", all[len(plain):], 14, 1 << 20, 13, 3, 22, nil},
		{"one message at least", all, 11, 1, 11, 1, 11, nil},
		{"one wrapper at least", all[len(plain):], 13, 1, 13, 3, 22, nil},
		{"a wrapper does not fit", all, 10, 200, 10, 3, 13, nil},
		{"markers only", marker, 19, 1 << 20, 0, 0, 22, nil},
		{"behind markers", slices.Concat(marker, last), 19, 1 << 20, 22, 3, 25, nil},
		{"zstd first", zstd, 16, 1 << 20, 0, 0, 16, kerr.UnsupportedCompressionType},
		{"zstd later", slices.Concat(gzip, zstd, last), 13, 1 << 20, 13, 3, 16, nil},
		{"cut in a batch", all[:len(plain)+9], 10, 1 << 20, 10, 3, 13, nil},
		{"damaged first", bytes.Repeat([]byte{7}, 100), 10, 1 << 20, 0, 0, 10, kerr.CorruptMessage},
		{"damaged later", slices.Concat(plain, bytes.Repeat([]byte{0}, 100)), 10, 1 << 20, 10, 3, 13, nil},
		{"nothing", nil, 10, 1 << 20, 0, 0, 10, nil},
	} {
		for magic := range int8(2) {
			d, err := ConvertDown(tc.batches, DownOptions{Magic: magic, FromOffset: tc.from, MaxBytes: tc.maxBytes})
			if tc.want != nil && protocol.Code(err) != tc.want.Code || tc.want == nil && err != nil {
				t.Errorf("%s v%d: %v", tc.name, magic, err)
				continue
			}
			got := messagesOf(t, d.Set)
			if int64(len(got)) != tc.n || d.NumRecords != len(got) || d.NextOffset != tc.next || len(got) > 0 && got[0].offset != tc.first {
				t.Errorf("%s v%d: %d messages, %d counted, next %d: %+v", tc.name, magic, len(got), d.NumRecords, d.NextOffset, got)
			}
		}
	}
}

// TestConvertDownAdds converts batches one by one into one set, which is as if they had
// been converted together, and ends where the set is full.
func TestConvertDownAdds(t *testing.T) {
	first := build(BuilderOptions{BaseOffset: 10}, []Record{{Offset: 10, Value: []byte("a")}, {Offset: 11, Value: []byte("b")}})
	second := build(BuilderOptions{BaseOffset: 12, Codec: Gzip}, []Record{{Offset: 12, Value: []byte("c")}})
	third := build(BuilderOptions{BaseOffset: 13}, []Record{{Offset: 13, Value: []byte("d")}})
	for magic := range int8(2) {
		whole, err := ConvertDown(slices.Concat(first, second, third), DownOptions{Magic: magic, FromOffset: 11, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		var set []byte
		for i, b := range [][]byte{first, second, third} {
			d, err := ConvertDown(b, DownOptions{Magic: magic, FromOffset: 11, Set: set, MaxBytes: len(whole.Set)})
			if err != nil || d.NumRecords != 1 || d.NextOffset != View(b).NextOffset() {
				t.Fatalf("v%d, batch %d: %+v, %v", magic, i, d, err)
			}
			set = d.Set
		}
		if !bytes.Equal(set, whole.Set) {
			t.Errorf("v%d: %d bytes, want the %d of one conversion", magic, len(set), len(whole.Set))
		}
		full, err := ConvertDown(third, DownOptions{Magic: magic, FromOffset: 11, Set: set, MaxBytes: len(set) + 1})
		if err != nil || len(full.Set) != len(set) || full.NumRecords != 0 || full.NextOffset != 11 {
			t.Errorf("v%d: %d bytes in a full set of %d, next %d, %v", magic, len(full.Set), len(set), full.NextOffset, err)
		}
	}
}

func TestConvertDownOfACompactedBatch(t *testing.T) {
	// Record 1 of three is gone, and then all but the first.
	records := []Record{{Offset: 0, TimestampMs: 5, Value: []byte("a")}, {Offset: 2, TimestampMs: 6, Value: []byte("c")}}
	for _, codec := range oldCodecs {
		v := build(BuilderOptions{BaseOffset: 40, Codec: codec}, records)
		v = withOffsetDeltas(t, v, 0, 2)
		for magic := range int8(2) {
			d, err := ConvertDown(v, DownOptions{Magic: magic, FromOffset: 40, MaxBytes: 1 << 20})
			got := messagesOf(t, d.Set)
			if err != nil || len(got) != 2 || got[0].offset != 40 || got[1].offset != 42 {
				t.Fatalf("%v v%d: %+v, %v", codec, magic, got, err)
			}
		}
		only := withOffsetDeltas(t, build(BuilderOptions{BaseOffset: 40, Codec: codec}, records[:1]), 0)
		binary.BigEndian.PutUint32(only[posLastOffsetDelta:], 2)
		only.updateCRC()
		d, err := ConvertDown(only, DownOptions{Magic: 1, FromOffset: 41, MaxBytes: 1 << 20})
		if err != nil || len(d.Set) != 0 || d.NextOffset != 43 {
			t.Errorf("%v: %d bytes, next %d, %v: a client would ask for the same for ever", codec, len(d.Set), d.NextOffset, err)
		}
	}
}

// withOffsetDeltas rewrites the records' offset deltas.
func withOffsetDeltas(t *testing.T, v View, deltas ...int32) View {
	t.Helper()
	w := &appendWriter{b: make([]byte, HeaderSize)}
	copy(w.b, v[:HeaderSize])
	var plain []byte
	for i, r := range collect(t, v) {
		body := appendRecord(nil, r.TimestampMs-v.BaseTimestamp(), deltas[i], r.Key, r.Value, r.Headers)
		plain = append(binary.AppendVarint(plain, int64(len(body))), body...)
	}
	if err := compressInto(w, v.Codec(), 0, plain); err != nil {
		t.Fatal(err)
	}
	out := View(w.b)
	binary.BigEndian.PutUint32(out[posLength:], uint32(len(out)-LogOverhead))
	binary.BigEndian.PutUint32(out[posLastOffsetDelta:], uint32(deltas[len(deltas)-1]))
	out.updateCRC()
	return out
}

func TestConvertDownIsBounded(t *testing.T) {
	b := NewBuilder(BuilderOptions{Codec: Gzip})
	b.Add(1, nil, make([]byte, 1<<20))
	_, err := ConvertDown(b.Build(), DownOptions{Magic: 1, MaxBytes: 1 << 20, MaxDecodedBytes: 1 << 16})
	if !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("%v", err)
	}
}

// TestOneMessageIsInMemory converts what expands to 60 MiB in one message, and what
// would to more than one may have.
func TestOneMessageIsInMemory(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("takes long")
	}
	for _, mib := range []int{60, 65} {
		set := wrap(message{magic: 1}, Gzip, set(message{magic: 1, value: make([]byte, mib<<20)}))
		b := NewBuilder(BuilderOptions{Codec: Gzip})
		b.Add(NoTimestamp, nil, make([]byte, mib<<20))
		stored := b.Build()
		for direction, convert := range map[string]func() error{
			"up":   func() error { _, _, err := ConvertUp(set, Options{}); return err },
			"down": func() error { _, err := ConvertDown(stored, DownOptions{Magic: 1, MaxBytes: 1 << 20}); return err },
		} {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			err := convert()
			runtime.ReadMemStats(&after)
			if mib > 64 && !errors.Is(err, kerr.MessageTooLarge) || mib <= 64 && err != nil {
				t.Errorf("%d MiB %s: %v", mib, direction, err)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 4*uint64(mib) {
				t.Errorf("%d MiB %s: %d MiB were allocated in all", mib, direction, used)
			}
		}
	}
}

func setSeeds(f *testing.F) {
	for magic := range 2 {
		for _, codec := range oldCodecs {
			b, err := os.ReadFile(fmt.Sprintf("testdata/sets/v%d-%v.set", magic, codec))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add(wrap(message{magic: 1, offset: 1}, Gzip, wrap(message{}, Gzip, set(message{}))))
	f.Add(set(message{magic: 1, timestampMs: -5}, message{magic: 1, timestampMs: 1 << 62}))
}

func FuzzConvertUp(f *testing.F) {
	setSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		// Without the right checksums the fuzzer would see little of the code.
		for rest := b; ; {
			_, raw, next, err := nextMessage(rest)
			if err != nil {
				break
			}
			finishMessage(rest[:LogOverhead+len(raw)])
			rest = next
		}
		v, s, err := ConvertUp(b, Options{MaxDecodedBytes: fuzzBytes, MaxMessageBytes: fuzzBytes})
		if err != nil || v == nil {
			return
		}
		again, err := Validate(v, Options{MaxDecodedBytes: 4 * fuzzBytes})
		if err != nil || again != s {
			t.Fatalf("the batch has %+v (%v), ConvertUp said %+v", again, err, s)
		}
	})
}

func FuzzConvertDown(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for magic := range int8(2) {
			d, err := ConvertDown(b, DownOptions{Magic: magic, MaxBytes: 1 << 16, MaxDecodedBytes: fuzzBytes})
			if err != nil && len(d.Set) > 0 {
				t.Fatalf("both a set and %v", err)
			}
			if n := len(messagesOf(t, d.Set)); n != d.NumRecords {
				t.Fatalf("%d messages, %d counted", n, d.NumRecords)
			}
		}
	})
}
