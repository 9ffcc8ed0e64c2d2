package producer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/protocol"
)

// send is one append of a test: a batch of n records.
type send struct {
	epoch    int16
	sequence int32
	n        int32
	origin   Origin
	txn      bool
	marker   *Marker
	// want is the code of the refusal, 0 for none; dup the first offset of the
	// batch that it repeats.
	want  int16
	isDup bool
	dup   int64
}

func (s send) batch(id, offset int64) Batch {
	last := s.sequence + s.n - 1
	if int64(s.sequence)+int64(s.n)-1 > math.MaxInt32 {
		last = int32(int64(s.sequence) + int64(s.n) - 1 - math.MaxInt32 - 1)
	}
	return Batch{ProducerID: id, Epoch: s.epoch, BaseSequence: s.sequence, LastSequence: last,
		FirstOffset: offset, LastOffset: offset + int64(s.n) - 1, TimestampMs: offset, Transactional: s.txn, Marker: s.marker}
}

func TestTable(t *testing.T) {
	gap, fenced, txn := kerr.OutOfOrderSequenceNumber.Code, kerr.InvalidProducerEpoch.Code, kerr.InvalidTxnState.Code
	for _, test := range []struct {
		name  string
		sends []send
	}{
		{"in order", []send{{sequence: 0, n: 3}, {sequence: 3, n: 1}, {sequence: 4, n: 2}}},
		{"unknown producer starts anywhere", []send{{sequence: 77, n: 1}, {sequence: 78, n: 1}}},
		{"gap", []send{{sequence: 0, n: 1}, {sequence: 2, n: 1, want: gap}, {sequence: 1, n: 1}}},
		{"repeat of the last", []send{{sequence: 0, n: 3}, {sequence: 0, n: 3, isDup: true, dup: 0}}},
		{"repeat of any of five", []send{{sequence: 0, n: 1}, {sequence: 1, n: 1}, {sequence: 2, n: 1}, {sequence: 3, n: 1}, {sequence: 4, n: 1},
			{sequence: 0, n: 1, isDup: true, dup: 0}, {sequence: 4, n: 1, isDup: true, dup: 4}}},
		{"sixth is forgotten", []send{{sequence: 0, n: 1}, {sequence: 1, n: 1}, {sequence: 2, n: 1}, {sequence: 3, n: 1}, {sequence: 4, n: 1}, {sequence: 5, n: 1},
			{sequence: 0, n: 1, want: gap}, {sequence: 1, n: 1, isDup: true, dup: 1}}},
		{"other length is no repeat", []send{{sequence: 0, n: 3}, {sequence: 0, n: 2, want: gap}}},
		{"wraps", []send{{sequence: math.MaxInt32 - 1, n: 2}, {sequence: 0, n: 1}, {sequence: math.MaxInt32 - 1, n: 2, isDup: true, dup: 0}}},
		{"wraps inside a batch", []send{{sequence: math.MaxInt32 - 1, n: 4}, {sequence: 2, n: 1}, {sequence: math.MaxInt32 - 1, n: 4, isDup: true, dup: 0}}},
		{"new epoch starts at 0", []send{{epoch: 1, sequence: 5, n: 1}, {epoch: 2, sequence: 6, n: 1, want: gap}, {epoch: 2, sequence: 0, n: 1}, {epoch: 2, sequence: 1, n: 1}}},
		{"old epoch", []send{{epoch: 2, sequence: 0, n: 1}, {epoch: 1, sequence: 0, n: 1, want: fenced}}},
		{"repeat in an old epoch", []send{{epoch: 1, sequence: 0, n: 1}, {epoch: 2, sequence: 0, n: 1}, {epoch: 1, sequence: 0, n: 1, want: fenced}}},
		{"coordinator has no sequence", []send{{sequence: -1, n: 1, origin: Coordinator, txn: true}, {sequence: -1, n: 1, origin: Coordinator, txn: true}}},
		{"coordinator with an old epoch", []send{{epoch: 3, n: 1, origin: Coordinator, txn: true}, {epoch: 2, n: 1, origin: Coordinator, txn: true, want: fenced}}},
		{"replication takes all", []send{{epoch: 3, sequence: 9, n: 1}, {epoch: 2, sequence: 40, n: 1, origin: Replication}}},
		{"outside its transaction", []send{{sequence: 0, n: 1, txn: true}, {sequence: 1, n: 1, want: txn}, {sequence: 1, n: 1, txn: true}}},
		{"marker ends the transaction", []send{{sequence: 0, n: 1, txn: true}, {n: 1, marker: &Marker{CoordinatorEpoch: 4}, origin: Coordinator}, {sequence: 1, n: 1}}},
		{"marker of an old coordinator", []send{{sequence: 0, n: 1, txn: true}, {n: 1, marker: &Marker{CoordinatorEpoch: 4}, origin: Coordinator},
			{n: 1, marker: &Marker{CoordinatorEpoch: 3}, origin: Coordinator, want: kerr.TransactionCoordinatorFenced.Code}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var table Table
			offset := int64(0)
			for i, s := range test.sends {
				b := s.batch(7, offset)
				table.Begin()
				dup, isDup, err := table.Stage(b, Checks{Origin: s.origin})
				if protocol.Code(err) != s.want || isDup != s.isDup || isDup && dup.FirstOffset() != s.dup {
					t.Fatalf("send %d: duplicate %v at %d, error %v", i, isDup, dup.FirstOffset(), err)
				}
				if err == nil && !isDup {
					table.Commit()
					offset += int64(s.n)
				}
			}
		})
	}
}

func TestStageCountsWhatTheSameAppendHolds(t *testing.T) {
	var table Table
	table.Begin()
	for i, s := range []send{{sequence: 0, n: 2}, {sequence: 2, n: 1}} {
		if _, _, err := table.Stage(s.batch(1, int64(i*2)), Checks{}); err != nil {
			t.Fatal(err)
		}
	}
	if table.Len() != 0 {
		t.Fatal("staged batches changed the table before Commit")
	}
	if _, _, err := table.Stage(send{sequence: 9, n: 1}.batch(1, 3), Checks{}); protocol.Code(err) != kerr.OutOfOrderSequenceNumber.Code {
		t.Fatal(err)
	}
	table.Begin()
	table.Commit()
	if table.Len() != 0 {
		t.Fatal("Begin kept what a failed append had staged")
	}
}

func TestExpire(t *testing.T) {
	var table Table
	table.Replay(Batch{ProducerID: 1, TimestampMs: 100})
	table.Replay(Batch{ProducerID: 2, TimestampMs: 500})
	table.Replay(Batch{ProducerID: 3, TimestampMs: 100, Transactional: true})
	if n := table.Expire(1099, 1000); n != 0 {
		t.Fatalf("%d expired a millisecond early", n)
	}
	if n := table.Expire(1100, 1000); n != 1 || table.Len() != 2 {
		t.Fatalf("%d expired, %d left", n, table.Len())
	}
	if _, ok := table.Entry(3); !ok {
		t.Fatal("a producer with an open transaction expired")
	}
}

func TestEnrich(t *testing.T) {
	var full, history Table
	for i := range int64(8) {
		b := send{sequence: int32(i), n: 1}.batch(1, i)
		full.Replay(b)
		if i >= 2 {
			history.Replay(b)
		}
	}
	loaded, err := Decode(full.Encode())
	if err != nil {
		t.Fatal(err)
	}
	loaded.Enrich(&history)
	got, _ := loaded.Entry(1)
	want, _ := full.Entry(1)
	if !reflect.DeepEqual(got.Batches(), want.Batches()) {
		t.Fatalf("enriched to %v, not %v", got.Batches(), want.Batches())
	}
	var later Table
	later.Replay(send{sequence: 50, n: 1}.batch(1, 50))
	before, _ := loaded.Entry(1)
	loaded.Enrich(&later)
	if after, _ := loaded.Entry(1); !reflect.DeepEqual(before, after) {
		t.Fatal("a history that does not end with the snapshot's batch was taken")
	}
}

// TestSnapshotBytes fixes the layout; that Kafka reads it is a test of its own
// tools. The checksum, bytes 2 to 6, is checked by Decode.
func TestSnapshotBytes(t *testing.T) {
	var table Table
	table.Replay(Batch{ProducerID: 1, Epoch: 2, BaseSequence: 10, LastSequence: 14, FirstOffset: 100, LastOffset: 104, TimestampMs: 1234})
	want := "0001" + "????????" + "00000001" +
		"0000000000000001" + "0002" + "0000000e" + "0000000000000068" + "00000004" + "00000000000004d2" + "ffffffff" + "ffffffffffffffff"
	got := hex.EncodeToString(table.Encode())
	if got[:4] != want[:4] || got[12:] != want[12:] {
		t.Fatalf("encoded\n%s, not\n%s", got, want)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	var table Table
	table.Replay(Batch{ProducerID: 1, LastSequence: 4, LastOffset: 4})
	sound := table.Encode()
	for name, b := range map[string][]byte{
		"empty":   {},
		"cut":     sound[:len(sound)-1],
		"version": append([]byte{0, 2}, sound[2:]...),
		"flipped": append(append([]byte{}, sound[:20]...), append([]byte{sound[20] ^ 1}, sound[21:]...)...),
	} {
		if _, err := Decode(b); !errors.Is(err, ErrCorruptSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		for range rapid.IntRange(0, 20).Draw(t, "batches") {
			n := rapid.Int32Range(1, 9).Draw(t, "records")
			first := rapid.Int64Range(0, 1<<40).Draw(t, "offset")
			s := send{epoch: rapid.Int16Range(0, 3).Draw(t, "epoch"), sequence: rapid.Int32Range(0, math.MaxInt32).Draw(t, "sequence"), n: n, txn: rapid.Bool().Draw(t, "txn")}
			table.Replay(s.batch(rapid.Int64Range(0, 4).Draw(t, "id"), first))
		}
		back, err := Decode(table.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Encode(), table.Encode()) {
			t.Fatal("a snapshot changes when it is read and written")
		}
		var text strings.Builder
		if err := back.Dump(&text); err != nil || strings.Count(text.String(), "\n") != table.Len() {
			t.Fatalf("dump: %v, %q", err, text.String())
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	var table Table
	table.Replay(Batch{ProducerID: 1, LastSequence: 4, LastOffset: 4})
	f.Add(table.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := Decode(b)
		if err != nil {
			return
		}
		if _, err := Decode(table.Encode()); err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
	})
}
