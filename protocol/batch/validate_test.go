package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/protocol"
)

const now = 1_700_000_000_000

// open are options that accept any timestamp of the tests.
var open = Options{NowMs: now, TimestampBeforeMaxMs: math.MaxInt64, TimestampAfterMaxMs: math.MaxInt64}

func three(o BuilderOptions) View {
	b := NewBuilder(o)
	b.Add(now, []byte("k0"), []byte("v0"))
	b.Add(now+5, []byte("k1"), []byte("v1"), Header{"h", nil})
	b.Add(now-5, []byte("k2"), nil)
	return b.Build()
}

// with changes a copy of v and redoes the checksum.
func with(v View, change func(View)) View {
	v = bytes.Clone(v)
	change(v)
	v.updateCRC()
	return v
}

func put32(pos int, n int32) func(View) {
	return func(v View) { binary.BigEndian.PutUint32(v[pos:], uint32(n)) }
}

func attrs(set int16) func(View) {
	return func(v View) { binary.BigEndian.PutUint16(v[posAttributes:], uint16(v.Attributes()|set)) }
}

// raw is a batch of n records whose record bytes are given.
func raw(n int32, records ...byte) View {
	v := with(three(BuilderOptions{}), func(View) {})[:HeaderSize]
	v = append(v, records...)
	put32(posLength, int32(len(v)-LogOverhead))(v)
	put32(posNumRecords, n)(v)
	put32(posLastOffsetDelta, n-1)(v)
	v.updateCRC()
	return v
}

func TestValidateCodes(t *testing.T) {
	idempotent := BuilderOptions{Producer: &ProducerStamp{ID: 7, Epoch: 0, BaseSequence: -1}}
	compacted := open
	compacted.Compacted = true
	noKey := NewBuilder(BuilderOptions{})
	noKey.Add(now, []byte{}, nil)
	noKey.Add(now, nil, nil)
	small := open
	small.MaxMessageBytes = 80
	noZstd := open
	noZstd.NoZstd = true
	for _, tc := range []struct {
		name string
		v    View
		o    Options
		want *kerr.Error
	}{
		{"good", three(BuilderOptions{}), open, nil},
		{"keys are there", three(BuilderOptions{}), compacted, nil},
		{"crc", func() View { v := three(BuilderOptions{}); v[len(v)-1]++; return v }(), open, kerr.CorruptMessage},
		{"size", three(BuilderOptions{})[:70], open, kerr.CorruptMessage},
		{"header only", three(BuilderOptions{})[:10], open, kerr.CorruptMessage},
		{"magic", with(three(BuilderOptions{}), func(v View) { v[posMagic] = 1 }), open, kerr.CorruptMessage},
		{"too large", three(BuilderOptions{}), small, kerr.MessageTooLarge},
		{"zstd before its time", three(BuilderOptions{Codec: Zstd}), noZstd, kerr.UnsupportedCompressionType},
		{"no such codec", with(three(BuilderOptions{}), attrs(5)), open, kerr.UnsupportedCompressionType},
		{"base offset", three(BuilderOptions{BaseOffset: 9}), open, kerr.InvalidRecord},
		{"control", three(BuilderOptions{Control: true}), open, kerr.InvalidRecord},
		{"sequence", three(idempotent), open, kerr.InvalidRecord},
		{"no records", with(three(BuilderOptions{}), put32(posNumRecords, 0)), open, kerr.InvalidRecord},
		{"negative count", with(three(BuilderOptions{}), put32(posNumRecords, -1)), open, kerr.InvalidRecord},
		{"fewer than counted", with(three(BuilderOptions{}), func(v View) { put32(posNumRecords, 4)(v); put32(posLastOffsetDelta, 3)(v) }), open, kerr.InvalidRecord},
		{"more than counted", with(three(BuilderOptions{}), func(v View) { put32(posNumRecords, 2)(v); put32(posLastOffsetDelta, 1)(v) }), open, kerr.InvalidRecord},
		{"last offset delta", with(three(BuilderOptions{}), put32(posLastOffsetDelta, 5)), open, kerr.InvalidRecord},
		{"negative last offset delta", with(three(BuilderOptions{}), put32(posLastOffsetDelta, -1)), open, kerr.InvalidRecord},
		{"no key on a compacted topic", noKey.Build(), compacted, kerr.InvalidRecord},
		{"offset deltas", raw(1, 14, 0, 0, 2, 1, 1, 0, 0), open, kerr.InvalidRecord},
		{"one record", raw(1, 12, 0, 0, 0, 1, 1, 0), open, nil},
		{"record ends early", raw(1, 14, 0, 0, 0, 1, 1, 0, 0), open, kerr.InvalidRecord},
		{"record ends late", raw(1, 10, 0, 0, 0, 1, 1, 0), open, kerr.InvalidRecord},
		{"record length negative", raw(1, 1, 0, 0, 0, 1, 1, 0), open, kerr.InvalidRecord},
		{"record length lies", raw(1, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 1, 1, 0), open, kerr.InvalidRecord},
		{"key length lies", raw(1, 12, 0, 0, 0, 40, 1, 0), open, kerr.InvalidRecord},
		{"header count lies", raw(1, 12, 0, 0, 0, 1, 1, 40), open, kerr.InvalidRecord},
		{"header count negative", raw(1, 12, 0, 0, 0, 1, 1, 3), open, kerr.InvalidRecord},
		{"header without key", raw(1, 16, 0, 0, 0, 1, 1, 2, 1, 0), open, kerr.InvalidRecord},
		{"varint too long", raw(1, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0, 0), open, kerr.InvalidRecord},
		{"bytes behind", raw(1, 12, 0, 0, 0, 1, 1, 0, 9), open, kerr.InvalidRecord},
		{"not compressed at all", with(three(BuilderOptions{}), attrs(int16(Gzip))), open, kerr.InvalidRecord},
		{"not snappy", with(three(BuilderOptions{}), attrs(int16(Snappy))), open, kerr.InvalidRecord},
		{"not lz4", with(three(BuilderOptions{}), attrs(int16(LZ4))), open, kerr.InvalidRecord},
		{"not zstd", with(three(BuilderOptions{}), attrs(int16(Zstd))), open, kerr.InvalidRecord},
		{"header timestamp type alone", with(three(BuilderOptions{}), attrs(attrLogAppendTime)), open, nil},
	} {
		_, err := Validate(tc.v, tc.o)
		if want := codeOf(tc.want); protocol.Code(err) != want {
			t.Errorf("%s: %v, want code %d", tc.name, err, want)
		}
	}
}

func codeOf(e *kerr.Error) int16 {
	if e == nil {
		return 0
	}
	return e.Code
}

func TestTimestampLimits(t *testing.T) {
	at := func(ts int64) View {
		b := NewBuilder(BuilderOptions{})
		b.Add(now, nil, nil)
		b.Add(ts, nil, nil)
		return b.Build()
	}
	o := Options{NowMs: now, TimestampBeforeMaxMs: 1000, TimestampAfterMaxMs: 50}
	for _, tc := range []struct {
		ts int64
		ok bool
	}{
		{now - 1000, true}, {now - 1001, false}, {now + 50, true}, {now + 51, false},
		{NoTimestamp, true}, {-2, false}, {math.MaxInt64, false}, {math.MinInt64, false},
	} {
		_, err := Validate(at(tc.ts), o)
		if tc.ok != (err == nil) {
			t.Errorf("timestamp %d: %v", tc.ts, err)
		}
		var bad *InvalidRecordsError
		if err != nil && (!errors.As(err, &bad) || protocol.Code(err) != kerr.InvalidTimestamp.Code ||
			len(bad.Records) != 1 || bad.Records[0].Index != 1) {
			t.Errorf("timestamp %d: %v, %+v", tc.ts, err, bad)
		}
	}
}

func TestLogAppendTimeFromAProducerIsRefused(t *testing.T) {
	o := open
	o.LogAppendTime = true
	_, err := Validate(three(BuilderOptions{AppendTimeMs: now}), o)
	if protocol.Code(err) != kerr.InvalidTimestamp.Code {
		t.Errorf("%v", err)
	}
	v, s, err := Prepare(three(BuilderOptions{}), o)
	if err != nil || v.TimestampType() != LogAppendTime || v.MaxTimestamp() != now || s.MaxTimestampMs != now || v.CRC() != v.ComputeCRC() {
		t.Errorf("%v, %+v, %v", v[:HeaderSize], s, err)
	}
	for _, r := range collect(t, v) {
		if r.TimestampMs != now {
			t.Errorf("record %d has timestamp %d", r.Offset, r.TimestampMs)
		}
	}
}

func TestRecordErrorsAreListed(t *testing.T) {
	b := NewBuilder(BuilderOptions{Codec: LZ4})
	for range 3 * maxRecordErrors {
		b.Add(now, nil, []byte("v"))
	}
	o := open
	o.Compacted = true
	_, err := Validate(b.Build(), o)
	var bad *InvalidRecordsError
	if !errors.As(err, &bad) || len(bad.Records) != maxRecordErrors || protocol.Code(err) != kerr.InvalidRecord.Code {
		t.Fatalf("%v, %+v", err, bad)
	}
	for i, r := range bad.Records {
		if int(r.Index) != i || r.Msg == "" {
			t.Errorf("error %d is %+v", i, r)
		}
	}
	if msg := *protocol.Message(err); !strings.Contains(msg, "300 record errors") {
		t.Errorf("message %q", msg)
	}
}

func TestPrepareKeepsABatchThatNeedsNothing(t *testing.T) {
	v := three(BuilderOptions{Codec: Zstd})
	before := bytes.Clone(v)
	o := open
	o.Recompress, o.Codec = true, Zstd
	got, s, err := Prepare(v, o)
	if err != nil || &got[0] != &v[0] || !bytes.Equal(got, before) {
		t.Fatalf("changed: %v", err)
	}
	if s.NumRecords != 3 || s.MaxTimestampMs != now+5 || s.MaxTimestampDelta != 1 {
		t.Errorf("%+v", s)
	}
}

func TestPrepareCorrectsTheMaxTimestamp(t *testing.T) {
	v := with(three(BuilderOptions{}), func(v View) { binary.BigEndian.PutUint64(v[posMaxTimestamp:], 5) })
	got, _, err := Prepare(v, open)
	if err != nil || got.MaxTimestamp() != now+5 || got.CRC() != got.ComputeCRC() || &got[0] != &v[0] {
		t.Fatalf("max timestamp %d, %v", got.MaxTimestamp(), err)
	}
}

func TestRecompression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genRecords(t)
		from, to := rapid.SampledFrom(allCodecs).Draw(t, "from"), rapid.SampledFrom(allCodecs).Draw(t, "to")
		v := build(BuilderOptions{Codec: from, Producer: &ProducerStamp{ID: 5, Epoch: 6, BaseSequence: 7}, LeaderEpoch: 3}, want)
		o := open
		o.Recompress, o.Codec, o.Level = true, to, rapid.IntRange(0, 3).Draw(t, "level")
		got, s, err := Prepare(bytes.Clone(v), o)
		if err != nil {
			t.Fatalf("%v to %v: %v", from, to, err)
		}
		if got.Codec() != to || got.SizeBytes() != len(got) || got.CRC() != got.ComputeCRC() {
			t.Fatalf("bad header %x", got[:HeaderSize])
		}
		if got.ProducerID() != 5 || got.ProducerEpoch() != 6 || got.BaseSequence() != 7 || got.PartitionLeaderEpoch() != 3 || got.NumRecords() != v.NumRecords() {
			t.Fatalf("the header lost something: %x", got[:HeaderSize])
		}
		if int(s.NumRecords) != len(want) || got.MaxTimestamp() != s.MaxTimestampMs {
			t.Fatalf("%+v", s)
		}
		if err := sameRecords(collect(t, got), want); err != nil {
			t.Fatalf("%v to %v: %v", from, to, err)
		}
		if _, err := Validate(got, open); err != nil {
			t.Fatalf("%v to %v: %v", from, to, err)
		}
	})
}

func TestRecompressionHonoursMaxMessageBytes(t *testing.T) {
	b := NewBuilder(BuilderOptions{Codec: Zstd})
	b.Add(now, nil, make([]byte, 100_000))
	o := open
	o.Recompress, o.Codec, o.MaxMessageBytes = true, None, 50_000
	if _, _, err := Prepare(b.Build(), o); protocol.Code(err) != kerr.MessageTooLarge.Code {
		t.Errorf("%v", err)
	}
}

// TestBombs builds batches that are small and become large.
func TestBombs(t *testing.T) {
	bomb := 32 << 20
	if raceEnabled {
		bomb = 4 << 20
	}
	b := NewBuilder(BuilderOptions{})
	b.Add(now, nil, make([]byte, bomb))
	plain := b.Build()
	for _, codec := range allCodecs[1:] {
		o := open
		o.Recompress, o.Codec = true, codec
		v, _, err := Prepare(bytes.Clone(plain), o)
		if err != nil {
			t.Fatalf("%v: %v", codec, err)
		}
		bounded := open
		bounded.MaxDecodedBytes = 1 << 20
		if _, err := Validate(v, bounded); protocol.Code(err) != kerr.MessageTooLarge.Code {
			t.Errorf("%v: %v", codec, err)
		}
		if err := Records(v, 1<<20, func(Record) error { return nil }); protocol.Code(err) != kerr.MessageTooLarge.Code {
			t.Errorf("%v: %v", codec, err)
		}
		allocated := int64(allocatedBy(func() {
			if _, err := Validate(v, open); err != nil {
				t.Fatal(err)
			}
		}))
		if limit := int64(WorkingBytes(v)); allocated > limit && !raceEnabled {
			t.Errorf("%v: validating %d bytes allocated %d, WorkingBytes says %d", codec, len(v), allocated, limit)
		}
	}
}

func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // twice: pools keep their victims for one more round
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestSearch(t *testing.T) {
	for _, codec := range allCodecs {
		v := three(BuilderOptions{Codec: codec, BaseOffset: 100})
		for _, tc := range []struct {
			ts, from, want int64
		}{
			{0, 0, 100}, {now, 0, 100}, {now + 1, 0, 101}, {now + 5, 0, 101}, {now + 6, 0, -1},
			{0, 102, 102}, {now, 102, -1}, {0, 103, -1},
		} {
			off, _, found, err := OffsetForTimestamp(v, tc.ts, tc.from, 0)
			if err != nil || found != (tc.want >= 0) || found && off != tc.want {
				t.Errorf("%v, %+v: %d, %v, %v", codec, tc, off, found, err)
			}
		}
		off, ts, found, err := OffsetOfMaxTimestamp(v, 0)
		if err != nil || !found || off != 101 || ts != now+5 {
			t.Errorf("%v: max timestamp %d at %d, %v, %v", codec, ts, off, found, err)
		}
	}
}

func TestSequencesWrap(t *testing.T) {
	for _, tc := range [][3]int32{{0, 5, 5}, {math.MaxInt32, 0, math.MaxInt32}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 1, 4, 2}} {
		if got := AddSequence(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%d + %d = %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}

func TestNext(t *testing.T) {
	v := three(BuilderOptions{})
	for _, tc := range []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, ErrTruncated},
		{"length cut", v[:11], ErrTruncated},
		{"magic cut", v[:16], ErrTruncated},
		{"records cut", v[:len(v)-1], ErrTruncated},
		{"whole", v, nil},
		{"negative length", with(v, put32(posLength, -5)), ErrCorrupt},
		{"length below the header", with(v, put32(posLength, 48)), ErrCorrupt},
		{"magic 3", with(v, func(v View) { v[posMagic] = 3 }), ErrCorrupt},
		{"magic -1", with(v, func(v View) { v[posMagic] = 0xff }), ErrCorrupt},
		{"magic 1", with(v, func(v View) { v[posMagic] = 1 }), ErrOldMagic},
	} {
		if _, _, err := Next(tc.b); !errors.Is(err, tc.want) && err != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}

func TestRecordsStops(t *testing.T) {
	n := 0
	err := Records(three(BuilderOptions{}), 0, func(Record) error { n++; return ErrStop })
	if err != nil || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
	if err := Records(three(BuilderOptions{}), 0, func(Record) error { return errSnappy }); err != errSnappy {
		t.Errorf("%v", err)
	}
}

func TestRawSnappyAndConcatenatedBlocks(t *testing.T) {
	plain := three(BuilderOptions{})
	block := rawSnappy(plain.records())
	v := append(bytes.Clone(plain[:HeaderSize]), block...)
	fix := func(v View) View {
		put32(posLength, int32(len(v)-LogOverhead))(v)
		attrs(int16(Snappy))(v)
		v.updateCRC()
		return v
	}
	if err := sameRecords(collect(t, fix(v)), collect(t, plain)); err != nil {
		t.Error(err)
	}
	if _, err := Validate(fix(v), open); err != nil {
		t.Error(err)
	}
	// A block larger than the bound is not decoded at all.
	large := append(bytes.Clone(plain[:HeaderSize]), rawSnappy(make([]byte, 8<<20))...)
	bounded := open
	bounded.MaxDecodedBytes = 1 << 20
	v = fix(large)
	if used := allocatedBy(func() {
		if _, err := Validate(v, bounded); protocol.Code(err) != kerr.MessageTooLarge.Code {
			t.Errorf("%v", err)
		}
	}); used > 1<<20 {
		t.Errorf("%d bytes for a block that is too large", used)
	}
	// A block that claims to be four GiB costs nothing.
	lie := append(bytes.Clone(plain[:HeaderSize]), 0xff, 0xff, 0xff, 0xff, 0x0f, 0)
	if _, err := Validate(fix(lie), open); protocol.Code(err) != kerr.InvalidRecord.Code {
		t.Errorf("%v", err)
	}
}

func TestAccessorsDoNotAllocate(t *testing.T) {
	v := three(BuilderOptions{})
	var sum int64
	allocs := testing.AllocsPerRun(100, func() {
		head, _, err := Next(v)
		if err != nil {
			t.Fatal(err)
		}
		sum += head.BaseOffset() + head.LastOffset() + head.MaxTimestamp() + int64(head.LastSequence()) + int64(head.NumRecords())
		head.SetBaseOffset(0)
		head.SetPartitionLeaderEpoch(4)
		if _, _, err := Prepare(head, open); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 && !raceEnabled {
		t.Errorf("%v allocations", allocs)
	}
}

func TestLargeZstdWindows(t *testing.T) {
	// A frame header that announces a window of 64 MiB, as level 21 does.
	var buf bytes.Buffer
	w, err := zstd.NewWriter(&buf, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	plain := three(BuilderOptions{})
	// Nothing is known of the length when the header is written.
	for _, part := range [][]byte{plain.records()[:5], plain.records()[5:]} {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	v := View(append(bytes.Clone(plain[:HeaderSize]), buf.Bytes()...))
	put32(posLength, int32(len(v)-LogOverhead))(v)
	attrs(int16(Zstd))(v)
	v.updateCRC()
	if n := WorkingBytes(v); n < 64<<20 || n < LargeBytes {
		t.Fatalf("working bytes %d", n)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := Validate(v, open); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := sameRecords(collect(t, v), collect(t, plain)); err != nil {
		t.Error(err)
	}
}
