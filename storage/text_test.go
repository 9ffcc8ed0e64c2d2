package storage

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestOffsetCheckpointFormat(t *testing.T) {
	c := OffsetCheckpoint{{"b", 10}: 5, {"a.x", 0}: 0, {"b", 2}: 1 << 40}
	want := "0\n3\na.x 0 0\nb 2 1099511627776\nb 10 5\n"
	if got := string(c.Encode()); got != want {
		t.Fatalf("%q", got)
	}
	back, err := ParseOffsetCheckpoint([]byte(want))
	if err != nil || !maps.Equal(back, c) {
		t.Fatalf("%v, %v", back, err)
	}
	if empty, err := ParseOffsetCheckpoint(nil); err != nil || empty == nil || len(empty) != 0 {
		t.Errorf("an empty file: %v, %v", empty, err)
	}
	for _, bad := range []string{"\n", "0", "0\n0", "1\n0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na x 1\n", "0\n1\na -1 1\n", "0\n1\na 0 -1\n", "0\n1\na 0 1", "x\n0\n"} {
		if _, err := ParseOffsetCheckpoint([]byte(bad)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestPartitionMetadataFormat(t *testing.T) {
	id := TopicID{0x55, 0x74, 0xd8, 0xc9, 0xb4, 0xa8, 0x4a, 0x73, 0x8c, 0x8a, 0x70, 0x66, 0x44, 0xde, 0xb5, 0x59}
	want := "version: 0\ntopic_id: " + FormatID(id)
	if got := string(EncodePartitionMetadata(id)); got != want || len(FormatID(id)) != 22 {
		t.Fatalf("%q", got)
	}
	if back, err := ParsePartitionMetadata([]byte(want + "\n")); err != nil || back != id {
		t.Fatalf("%v, %v", back, err)
	}
	for _, bad := range []string{"", "version: 1\ntopic_id: " + FormatID(id), "version: 0\n", "version: 0\ntopic_id: short", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"} {
		if _, err := ParsePartitionMetadata([]byte(bad)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCleanShutdownFormat(t *testing.T) {
	if got := string(encodeCleanShutdown(7)); got != `{"version":0,"brokerEpoch":7}` {
		t.Fatal(got)
	}
	for text, want := range map[string]int64{`{"version":0,"brokerEpoch":7}`: 7, "": -1, "\n": -1} {
		if got, err := ParseCleanShutdown([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestDumpOfTextFiles(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"recovery-point-offset-checkpoint": {"0\n1\na 3 9\n", "a-3 offset: 9\n"},
		"cleaner-offset-checkpoint":        {"0\n1\na 3 9\n", "a-3 offset: 9\n"},
		"d/cleaner-offset-checkpoint":      {"", ""},
		"e/leader-epoch-checkpoint":        {"", ""},
		"d/leader-epoch-checkpoint":        {"0\n2\n0 0\n4 10\n", "leaderEpoch: 0 startOffset: 0\nleaderEpoch: 4 startOffset: 10\n"},
		"partition.metadata":               {"version: 0\ntopic_id: AQIDAAAAAAAAAAAAAAAAAA", "topicId: AQIDAAAAAAAAAAAAAAAAAA\n"},
		"meta.properties":                  {"#x\nnode.id=1\nversion=1\n", "#\nnode.id=1\nversion=1\n"},
		".kafka_cleanshutdown":             {`{"version":0,"brokerEpoch":7}`, "brokerEpoch: 7\n"},
		"metadata-end":                     {"version: 0\nindex: 00000000000000000057\ncrc: d0c112bd\n", "index: 57\n"},
	} {
		var out strings.Builder
		if !IsDataFile(name) {
			t.Errorf("%s: not known as a data file", name)
		}
		if err := Dump(&out, name, strings.NewReader(test.content), int64(len(test.content))); err != nil || out.String() != test.want {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
	if err := Dump(io.Discard, "what.txt", strings.NewReader(""), 0); err == nil || IsDataFile("what.txt") {
		t.Error("an unknown file was printed")
	}
}

func FuzzOffsetCheckpoint(f *testing.F) {
	f.Add([]byte("0\n1\na 0 5\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseOffsetCheckpoint(b)
		if err != nil {
			return
		}
		if back, err := ParseOffsetCheckpoint(c.Encode()); err != nil || !maps.Equal(back, c) {
			t.Fatalf("%q became %q: %v", b, c.Encode(), err)
		}
	})
}

func FuzzEpochs(f *testing.F) {
	f.Add([]byte("0\n2\n0 0\n1 5\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ParseEpochs(b)
		if err != nil {
			return
		}
		if back, err := ParseEpochs(EncodeEpochs(list)); err != nil || !slices.Equal(back, list) {
			t.Fatalf("%q became %q: %v", b, EncodeEpochs(list), err)
		}
	})
}

func FuzzPartitionMetadata(f *testing.F) {
	f.Add([]byte("version: 0\ntopic_id: AQIDAAAAAAAAAAAAAAAAAA"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := ParsePartitionMetadata(b)
		if err != nil {
			return
		}
		if back, err := ParsePartitionMetadata(EncodePartitionMetadata(id)); err != nil || back != id {
			t.Fatalf("%q: %v", b, err)
		}
	})
}

func FuzzMetaProperties(f *testing.F) {
	f.Add([]byte("#Sun\nnode.id=1\nversion=1\ncluster.id=abc\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMetaProperties(b)
		if err != nil {
			return
		}
		if _, err := ParseMetaProperties(m.Encode()); err != nil && !bytes.ContainsAny(b, "\r\v\f\u0085\u2028") {
			t.Fatalf("%q became %q: %v", b, m.Encode(), err)
		}
	})
}

// A metadata-end that is damaged anywhere is not believed.
func TestMetadataEndFormat(t *testing.T) {
	whole := EncodeMetadataEnd(57)
	if len(whole) != len(EncodeMetadataEnd(math.MaxUint64)) {
		t.Fatal("its length changes: it is replaced in place")
	}
	for _, index := range []uint64{0, 1, 57, math.MaxUint64} {
		if got, err := ParseMetadataEnd(EncodeMetadataEnd(index)); err != nil || got != index {
			t.Errorf("%d reads as %d, %v", index, got, err)
		}
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		if got, err := ParseMetadataEnd(flipped); err == nil {
			t.Errorf("byte %d flipped: %d", i, got)
		}
		if got, err := ParseMetadataEnd(whole[:i]); err == nil && i > 0 {
			t.Errorf("cut to %d bytes: %d", i, got)
		}
	}
	for _, empty := range [][]byte{{}, make([]byte, len(whole))} {
		if got, err := ParseMetadataEnd(empty); err != nil || got != 0 {
			t.Errorf("empty: %d, %v", got, err)
		}
	}
}
