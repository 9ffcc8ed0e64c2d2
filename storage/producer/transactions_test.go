package producer

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/protocol"
)

// append1 stages and commits one batch.
func append1(t *Table, b Batch, c Checks) error {
	t.Begin()
	_, dup, err := t.Stage(b, c)
	if err == nil && !dup {
		t.Commit()
	}
	return err
}

func txnBatch(id int64, epoch int16, sequence int32, offset int64) Batch {
	return Batch{ProducerID: id, Epoch: epoch, BaseSequence: sequence, LastSequence: sequence, FirstOffset: offset, LastOffset: offset, Transactional: true}
}

func markerBatch(id int64, epoch int16, offset int64, coordinator int32) Batch {
	return Batch{ProducerID: id, Epoch: epoch, BaseSequence: -1, LastSequence: -1, FirstOffset: offset, LastOffset: offset, Transactional: true,
		Marker: &Marker{CoordinatorEpoch: coordinator}}
}

// TestMarkerEpochs is the epoch of a marker against that of its producer, as Kafka
// 4.4 decides it (KIP-1228).
func TestMarkerEpochs(t *testing.T) {
	for _, test := range []struct {
		producer, marker int16
		open             bool
		version          int16
		want             *kerr.Error
	}{
		{3, 3, true, 0, nil},
		{3, 3, true, 1, nil},
		{3, 4, true, 1, nil},
		{3, 2, true, 1, kerr.InvalidProducerEpoch},
		{3, 4, true, 2, nil},
		{3, 3, true, 2, kerr.InvalidProducerEpoch}, // it would end another transaction than it was meant for
		{3, 2, true, 2, kerr.InvalidProducerEpoch},
		{3, 3, false, 2, nil}, // a repeated one
		{3, 2, false, 2, kerr.InvalidProducerEpoch},
		{math.MaxInt16, math.MaxInt16, true, 2, nil}, // there is no newer epoch
	} {
		var table Table
		if err := append1(&table, txnBatch(1, test.producer, 0, 0), Checks{}); err != nil {
			t.Fatal(err)
		}
		if !test.open {
			if err := append1(&table, markerBatch(1, test.producer, 1, 0), Checks{Origin: Coordinator}); err != nil {
				t.Fatal(err)
			}
		}
		err := append1(&table, markerBatch(1, test.marker, 2, 0), Checks{Origin: Coordinator, TransactionVersion: test.version})
		if want := codeOf(test.want); protocol.Code(err) != want {
			t.Errorf("%+v: %v", test, err)
		}
		if open := table.FirstOpen() >= 0; open != (test.want != nil && test.open) {
			t.Errorf("%+v: open afterwards: %t", test, open)
		}
	}
}

func codeOf(e *kerr.Error) int16 {
	if e == nil {
		return 0
	}
	return e.Code
}

// TestVerification walks through the two phases of KIP-890.
func TestVerification(t *testing.T) {
	var table Table
	verified := func(guard uint64) Checks { return Checks{Verified: true, Guard: guard} }
	expect := func(what string, err error, want *kerr.Error) {
		t.Helper()
		if protocol.Code(err) != codeOf(want) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	verify := func(epoch int16, sequence int32, bump bool) uint64 {
		t.Helper()
		guard, err := table.Verify(1, epoch, sequence, bump, 0)
		if err != nil {
			t.Fatal(err)
		}
		return guard
	}
	expect("without a guard", append1(&table, txnBatch(1, 0, 0, 0), verified(0)), kerr.InvalidTxnState)
	g := verify(0, 0, false)
	if again := verify(0, 0, false); again != g {
		t.Fatal("a second verification did not join the first")
	}
	expect("a coordinator's batch with another guard", append1(&table, txnBatch(1, 0, -1, 0), Checks{Origin: Coordinator, Verified: true, Guard: g + 1}), kerr.InvalidTxnState)
	expect("with the guard", append1(&table, txnBatch(1, 0, 0, 0), verified(g)), nil)
	if open := verify(0, 1, false); open != 0 {
		t.Fatal("an open transaction is verified again")
	}
	expect("in the open transaction", append1(&table, txnBatch(1, 0, 1, 1), verified(0)), nil)
	expect("in another epoch than it has", append1(&table, txnBatch(1, 1, 0, 2), verified(0)), kerr.InvalidTxnState)
	expect("the marker", append1(&table, markerBatch(1, 0, 2, 0), Checks{Origin: Coordinator}), nil)
	expect("after the marker", append1(&table, txnBatch(1, 0, 2, 3), verified(0)), kerr.InvalidTxnState)

	// A marker between the question and the append.
	g = verify(0, 2, false)
	expect("a marker for nothing", append1(&table, markerBatch(1, 0, 3, 0), Checks{Origin: Coordinator}), nil)
	expect("with the guard of before", append1(&table, txnBatch(1, 0, 2, 4), verified(g)), kerr.InvalidTxnState)
	if fresh := verify(0, 2, false); fresh == g {
		t.Fatal("a guard was given out twice")
	}

	// The verification that fails must not let later batches pass.
	g = verify(0, 4, false)
	verify(0, 3, false)
	expect("a higher sequence number than the lowest that waits", append1(&table, txnBatch(1, 0, 4, 4), verified(g)), kerr.OutOfOrderSequenceNumber)

	if _, err := table.Verify(1, -1, 0, false, 0); protocol.Code(err) != kerr.InvalidProducerEpoch.Code {
		t.Fatalf("an old epoch: %v", err)
	}
	table.Expire(100, 100)
	expect("an expired verification", append1(&table, txnBatch(1, 0, 2, 4), verified(g)), kerr.InvalidTxnState)
}

// TestVerificationOfNewProducers wants sequence number 0 of a producer without state
// where each transaction has its epoch, and takes any elsewhere.
func TestVerificationOfNewProducers(t *testing.T) {
	for _, bump := range []bool{false, true} {
		var table Table
		g, err := table.Verify(1, 0, 5, bump, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = append1(&table, txnBatch(1, 0, 5, 0), Checks{Verified: true, Guard: g})
		if failed := protocol.Code(err) == kerr.OutOfOrderSequenceNumber.Code; failed != bump {
			t.Errorf("bump %t: %v", bump, err)
		}
	}
}

func TestVerificationsAreBounded(t *testing.T) {
	var table Table
	for id := range int64(maxVerifying + 100) {
		if _, err := table.Verify(id, 0, 0, true, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(table.verifying); n != maxVerifying {
		t.Fatalf("%d verifications are remembered", n)
	}
}

// TestOpenTransactions holds the table to a list of transactions: what is open, and
// what was stable at each end. A snapshot knows the same.
func TestOpenTransactions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var table Table
		open := map[int64]int64{}
		for offset := range int64(rapid.IntRange(1, 60).Draw(rt, "batches")) {
			id := rapid.Int64Range(0, 5).Draw(rt, "producer")
			b := txnBatch(id, 0, -1, offset)
			first, isOpen := open[id]
			if rapid.IntRange(0, 2).Draw(rt, "kind") == 0 {
				b = markerBatch(id, 0, offset, 0)
				b.Marker.Commit = rapid.Bool().Draw(rt, "commit")
			}
			var ended []Ended
			if rapid.Bool().Draw(rt, "replayed") {
				ended = table.Replay(b)
			} else {
				table.Begin()
				if _, _, err := table.Stage(b, Checks{Origin: Coordinator}); err != nil {
					rt.Fatal(err)
				}
				ended = table.Commit()
			}
			var want []Ended
			switch {
			case b.Marker == nil && !isOpen:
				open[id] = offset
			case b.Marker != nil && isOpen:
				delete(open, id)
				e := Ended{ProducerID: id, FirstOffset: first, LastOffset: offset, Committed: b.Marker.Commit, LastStableOffset: offset + 1}
				for _, other := range open {
					e.LastStableOffset = min(e.LastStableOffset, other)
				}
				want = []Ended{e}
			}
			if !slices.Equal(ended, want) {
				rt.Fatalf("batch at %d: ended %v, not %v", offset, ended, want)
			}
			oldest := int64(-1)
			for _, o := range open {
				if oldest < 0 || o < oldest {
					oldest = o
				}
			}
			loaded, err := Decode(table.Encode())
			if err != nil {
				rt.Fatal(err)
			}
			if table.FirstOpen() != oldest || loaded.FirstOpen() != oldest {
				rt.Fatalf("the oldest transaction begins at %d, in a snapshot at %d, not %d", table.FirstOpen(), loaded.FirstOpen(), oldest)
			}
			if fmt.Sprint(loaded.open) != fmt.Sprint(table.open) {
				rt.Fatalf("a snapshot has %v open, not %v", loaded.open, table.open)
			}
		}
	})
}

// TestEndsOfOneAppend has several batches in an append, as a follower does: the ends
// of transactions in it are those of one batch after the other.
func TestEndsOfOneAppend(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var one, all Table
		offset := int64(0)
		for range rapid.IntRange(1, 10).Draw(rt, "appends") {
			var want []Ended
			all.Begin()
			for range rapid.IntRange(1, 8).Draw(rt, "batches") {
				b := txnBatch(rapid.Int64Range(0, 3).Draw(rt, "producer"), 0, -1, offset)
				switch rapid.IntRange(0, 3).Draw(rt, "kind") {
				case 0:
					b = markerBatch(b.ProducerID, 0, offset, 0)
				case 1:
					b.ProducerID, b.Transactional = 9, false
				}
				want = append(want, one.Replay(b)...)
				if _, _, err := all.Stage(b, Checks{Origin: Replication}); err != nil {
					rt.Fatal(err)
				}
				offset += rapid.Int64Range(1, 3).Draw(rt, "gap")
			}
			if got := all.Commit(); !slices.Equal(got, want) {
				rt.Fatalf("ended %v, one after the other %v", got, want)
			}
		}
	})
}

// TestZombieCoordinator refuses the marker of a coordinator that was replaced,
// whatever its transaction's version.
func TestZombieCoordinator(t *testing.T) {
	for version := range int16(3) {
		var table Table
		for i, b := range []Batch{txnBatch(1, 0, 0, 0), markerBatch(1, 1, 1, 5), txnBatch(1, 1, 0, 2)} {
			if err := append1(&table, b, Checks{Origin: Coordinator, TransactionVersion: version}); err != nil {
				t.Fatal(i, err)
			}
		}
		err := append1(&table, markerBatch(1, 2, 3, 4), Checks{Origin: Coordinator, TransactionVersion: version})
		if protocol.Code(err) != kerr.TransactionCoordinatorFenced.Code || table.FirstOpen() != 2 {
			t.Errorf("version %d: %v", version, err)
		}
	}
}
