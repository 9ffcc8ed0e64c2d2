package producer

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// maxVerifying bounds the verifications that a partition remembers. Each belongs
// to a producer id whose first batch is on its way, or never came: beyond this
// many any of them may go, and its append then fails as if a marker had come.
const maxVerifying = 10_000

// verification is a question to the coordinator whether a producer's transaction
// is open and has this partition (KIP-890). It ends with the first batch that is
// appended, or with a marker: an answer that comes later counts for nothing.
type verification struct {
	guard     uint64
	epoch     int16
	startedMs int64
	// lowestSequence is the smallest sequence number that waits for the answer.
	// Higher ones are refused until it was appended: otherwise a batch whose
	// question failed could never follow them.
	lowestSequence int32
	epochBump      bool
}

// Verify starts a verification for a batch, or joins the one that is going on, and
// returns its guard; 0 when the producer's transaction is open already.
func (t *Table) Verify(id int64, epoch int16, baseSequence int32, epochBump bool, nowMs int64) (guard uint64, err error) {
	if e, ok := t.entries[id]; ok {
		if epoch < e.Epoch {
			return 0, protocol.Errorf(kerr.InvalidProducerEpoch, "epoch %d of producer %d is older than the last seen epoch %d", epoch, id, e.Epoch)
		}
		if e.inTransaction(epoch) {
			return 0, nil
		}
	}
	v, ok := t.verifying[id]
	switch {
	case !ok:
		t.lastGuard++
		v = verification{guard: t.lastGuard, epoch: epoch, startedMs: nowMs, lowestSequence: baseSequence, epochBump: epochBump}
	case epoch > v.epoch:
		v.epoch, v.lowestSequence = epoch, baseSequence
	case epoch == v.epoch:
		v.lowestSequence = min(v.lowestSequence, baseSequence)
	}
	if !ok && len(t.verifying) >= maxVerifying {
		for other := range t.verifying {
			delete(t.verifying, other)
			break
		}
	}
	if t.verifying == nil {
		t.verifying = map[int64]verification{}
	}
	t.verifying[id] = v
	return v.guard, nil
}

// verifiedBy says that a guard is the one of the verification that is going on.
func (t *Table) verifiedBy(id int64, guard uint64) bool {
	v, ok := t.verifying[id]
	return ok && guard != 0 && v.guard == guard
}

func (v *verification) checkSequence(e *Entry, b Batch) error {
	switch {
	case v.epochBump && b.BaseSequence != 0 && e.n == 0:
		return protocol.Errorf(kerr.OutOfOrderSequenceNumber, "producer %d sent sequence number %d at offset %d, but has no batch here: its first number is 0",
			b.ProducerID, b.BaseSequence, b.FirstOffset)
	case b.BaseSequence > v.lowestSequence:
		return protocol.Errorf(kerr.OutOfOrderSequenceNumber, "producer %d sent sequence number %d at offset %d, but %d came before and is not written",
			b.ProducerID, b.BaseSequence, b.FirstOffset, v.lowestSequence)
	}
	return nil
}
