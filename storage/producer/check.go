package producer

import (
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// strictMarkers is the transaction version from which a marker's epoch is newer
// than that of the records it ends (KIP-890, KIP-1228).
const strictMarkers = 2

// Checks says how a batch is checked.
type Checks struct {
	Origin Origin
	// Verified asks for a verification before the first batch of a transaction;
	// Guard is the one that the append has, 0 for none.
	Verified bool
	Guard    uint64
	// TransactionVersion is that of the transaction which a marker ends.
	TransactionVersion int16
}

// check holds a batch against its producer's entry, in Kafka's order, so that a
// batch with two faults gets the error that Kafka gives.
func (t *Table) check(e *Entry, b Batch, c Checks) error {
	if c.Origin == Replication {
		return nil
	}
	if b.Marker != nil {
		return checkMarker(e, b, c.TransactionVersion)
	}
	if b.Epoch < e.Epoch {
		return oldEpoch(e, b)
	}
	if c.Verified && b.Transactional && !e.inTransaction(b.Epoch) && !t.verifiedBy(b.ProducerID, c.Guard) {
		return protocol.Errorf(kerr.InvalidTxnState, "the records at offset %d of producer %d are not part of an ongoing transaction", b.FirstOffset, b.ProducerID)
	}
	if c.Origin == Client {
		if err := t.checkSequence(e, b); err != nil {
			return err
		}
	}
	if e.CurrentTxnFirstOffset != noOffset && !b.Transactional {
		return protocol.Errorf(kerr.InvalidTxnState, "producer %d wrote outside its transaction at offset %d", b.ProducerID, b.FirstOffset)
	}
	return nil
}

func oldEpoch(e *Entry, b Batch) error {
	return protocol.Errorf(kerr.InvalidProducerEpoch, "epoch %d of producer %d at offset %d is older than the last seen epoch %d",
		b.Epoch, b.ProducerID, b.FirstOffset, e.Epoch)
}

// checkMarker refuses markers that come too late and those of a coordinator that
// was replaced. In transactions v2 a marker with the producer's own epoch is one
// that is repeated, which is written again, or the last one of a producer id whose
// epochs are used up; with a transaction open it would end another than it was
// meant for.
func checkMarker(e *Entry, b Batch, transactionVersion int16) error {
	repeated := b.Epoch == e.Epoch && (e.CurrentTxnFirstOffset == noOffset || b.Epoch == math.MaxInt16)
	if b.Epoch < e.Epoch || transactionVersion >= strictMarkers && b.Epoch == e.Epoch && !repeated {
		return oldEpoch(e, b)
	}
	if b.Marker.CoordinatorEpoch < e.CoordinatorEpoch {
		return protocol.Errorf(kerr.TransactionCoordinatorFenced, "coordinator epoch %d for producer %d at offset %d is older than %d",
			b.Marker.CoordinatorEpoch, b.ProducerID, b.FirstOffset, e.CoordinatorEpoch)
	}
	return nil
}

// checkSequence wants the number after the last one, or 0 in a new epoch. A
// producer without state may start anywhere, because its state may have expired or
// have been trimmed (KIP-360), but not where each transaction has an epoch of its
// own (KIP-890): there, numbers missing before the first one are lost records.
func (t *Table) checkSequence(e *Entry, b Batch) error {
	if v, ok := t.verifying[b.ProducerID]; ok {
		if err := v.checkSequence(e, b); err != nil {
			return err
		}
	}
	if e.Epoch == noEpoch {
		return nil
	}
	if b.Epoch != e.Epoch {
		if b.BaseSequence != 0 {
			return protocol.Errorf(kerr.OutOfOrderSequenceNumber, "the new epoch %d of producer %d starts with sequence number %d at offset %d, its epoch was %d",
				b.Epoch, b.ProducerID, b.BaseSequence, b.FirstOffset, e.Epoch)
		}
		return nil
	}
	last, _ := e.Last()
	if !inSequence(last.LastSequence, b.BaseSequence) {
		return protocol.Errorf(kerr.OutOfOrderSequenceNumber, "producer %d sent sequence number %d at offset %d, the last one was %d",
			b.ProducerID, b.BaseSequence, b.FirstOffset, last.LastSequence)
	}
	return nil
}

func inSequence(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}
