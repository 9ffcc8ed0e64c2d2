package runtime

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// Transactional is what a machine is whose records may belong to the transactions
// of producers: it keeps such records apart until the marker comes. The runtime's
// checkpoint follows the same rules, key by key:
//
//   - a commit makes a pending record count unless something newer counts already;
//   - a tombstone, whoever writes it, removes what is pending for its key too;
//   - a producer's later pending record replaces its earlier one.
type Transactional[R any] interface {
	// ReplayPending takes a record of an open transaction.
	ReplayPending(offset, producerID int64, r R)
	// ReplayMarker ends the transaction that a producer has open here, if any.
	ReplayMarker(producerID int64, commit bool)
}

// TransactionalLog is what a Log is too whose machine is Transactional.
type TransactionalLog interface {
	Log
	// StartVerification begins the verification that a producer's first batch in a
	// transaction needs (KIP-890); a zero guard means that none is needed.
	StartVerification(v storage.Verification) (storage.VerificationGuard, error)
	// AppendVerified is Append for a batch of a transaction.
	AppendVerified(leaderEpoch int32, batch []byte, guard storage.VerificationGuard, committed func(error)) (firstOffset int64, err error)
	// AppendMarker writes the marker of a transaction; committed is as for Append.
	AppendMarker(leaderEpoch int32, m replica.Marker, committed func(error)) (offset int64, err error)
}

// Producer is whose transaction records belong to.
type Producer struct {
	ID    int64
	Epoch int16
	// Guard is that of the verification, zero where none was needed.
	Guard storage.VerificationGuard
}

// noProducer stands where there is none.
const noProducer int64 = batch.NoProducerID

// refusals are errors of an append that the producer's own state in the log
// caused. Nothing was written and the machine is as good as before.
var refusals = []*kerr.Error{
	kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidTxnState,
	kerr.TransactionCoordinatorFenced, kerr.TransactionAbortable,
}

func isRefusal(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// CompleteTransaction writes a marker into a partition. done is called once the
// high watermark has passed it and the machine knows of it, or with the reason
// why it was not written: INVALID_PRODUCER_EPOCH and
// TRANSACTION_COORDINATOR_FENCED when a newer marker is there already.
func (rt *Runtime[E, R, A]) CompleteTransaction(partition int32, m replica.Marker, done func(error)) {
	rt.onLog(partition, func(in *instance[E, R, A], call uint64) { in.mark(m, call) }, done)
}

// StartVerification begins the verification of a producer's records in a
// partition. A zero guard means that none is needed.
func (rt *Runtime[E, R, A]) StartVerification(partition int32, v storage.Verification, done func(storage.VerificationGuard, error)) {
	var guard storage.VerificationGuard
	rt.onLog(partition, func(in *instance[E, R, A], call uint64) {
		var err error
		if guard, err = in.txnLog().StartVerification(v); err != nil {
			in.refuse(call, err)
			return
		}
		in.parked = append(in.parked, parked[A]{call: call})
		in.release(nil)
	}, func(err error) { done(guard, err) })
}

// onLog runs f on the goroutine of a loaded shard.
func (rt *Runtime[E, R, A]) onLog(partition int32, f func(in *instance[E, R, A], call uint64), done func(error)) {
	s, err := rt.shard(partition)
	if err == nil {
		j := job[E, A]{kind: jobLog, done: func(_ A, err error) { done(err) }}
		j.onLog = func(in any, call uint64) { f(in.(*instance[E, R, A]), call) }
		err = s.submit(j)
	}
	if err != nil {
		done(err)
	}
}

func (in *instance[E, R, A]) txnLog() TransactionalLog { return in.log.(TransactionalLog) }

// mark appends a marker and lets the machine know.
func (in *instance[E, R, A]) mark(m replica.Marker, call uint64) {
	if err := in.log.Writable(); err != nil {
		in.refuse(call, err)
		return
	}
	offset, err := in.txnLog().AppendMarker(in.s.epoch, m, in.onCommitted)
	if err != nil {
		err = fmt.Errorf("append a marker to %s: %w", in.s.name(), err)
		if isRefusal(err) {
			in.refuse(call, err)
			return
		}
		in.s.fail(err)
		return
	}
	in.appended = offset + 1
	in.replayMarker(m.ProducerID, m.Commit, in.s.epoch)
	in.s.failures = 0
	in.s.rt.o.Observe(in.machine, false)
	in.parked = append(in.parked, parked[A]{end: in.appended, call: call})
	in.release(nil)
}

// replayMarker tells machine and checkpoint of a marker that ends at in.appended.
func (in *instance[E, R, A]) replayMarker(producerID int64, commit bool, epoch int32) {
	if t, ok := in.machine.(Transactional[R]); ok {
		t.ReplayMarker(producerID, commit)
	}
	in.ck.add(span{end: in.appended, epoch: epoch, producer: producerID, ends: true, commit: commit})
}

// replayRecord applies one record as the batch it is in asks for.
func (in *instance[E, R, A]) replayRecord(offset, producerID int64, r R) {
	if producerID != noProducer {
		if t, ok := in.machine.(Transactional[R]); ok {
			t.ReplayPending(offset, producerID, r)
		}
		return
	}
	in.machine.Replay(offset, r)
}
