package replica

import (
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// Marker ends a producer's transaction in one partition.
type Marker struct {
	ProducerID       int64
	ProducerEpoch    int16
	CoordinatorEpoch int32
	Commit           bool
	// TransactionVersion is that of the transaction. From 2 on the marker's epoch
	// must be newer than that of the records (KIP-890, 1228).
	TransactionVersion int16
}

// AppendMarker writes the control batch of a marker as the leader. What it answers
// is as for Append: the caller waits with Acked or WatchAck. A marker
// for a transaction that has no records here is written as well, as in Kafka. The
// codes are INVALID_PRODUCER_EPOCH for a marker that comes too late,
// TRANSACTION_COORDINATOR_FENCED for one of a coordinator that was replaced, and
// Append's.
func (p *Partition) AppendMarker(m Marker, o AppendOptions) (Appended, error) {
	o.Internal, o.TransactionVersion = true, m.TransactionVersion
	v := batch.NewMarker(batch.MarkerOptions{
		Marker:     batch.Marker{Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch},
		ProducerID: m.ProducerID, ProducerEpoch: m.ProducerEpoch,
		TimestampMs:   p.m.o.Clock.Now().UnixMilli(),
		LogAppendTime: p.Config().Batch.LogAppendTime,
	})
	return p.Append(v, o)
}

// WriteMarker appends a marker in whatever epoch this broker leads, and calls done
// once every in-sync replica has it, or with why not, at once or from the pool.
func (p *Partition) WriteMarker(m Marker, done func(error)) {
	a, err := p.AppendMarker(m, AppendOptions{Acks: AcksAll, LeaderEpoch: -1})
	if err != nil {
		done(err)
		return
	}
	p.whenAcked(a, done)
}

// StartVerification begins the verification that a transactional batch needs
// before its append (KIP-890): the caller asks the transaction's coordinator, and
// on a yes appends with the guard in AppendOptions.Guard. A zero guard means that
// nobody need be asked: the transaction is open in this partition already, or the
// configuration asks for no verification.
// With noWait it fails with storage.ErrBusy where it would have to wait.
func (p *Partition) StartVerification(v storage.Verification, noWait bool) (storage.VerificationGuard, error) {
	log, err := p.verifiable(noWait)
	if err != nil {
		return 0, err
	}
	guard, err := log.StartVerification(v, noWait)
	if err == storage.ErrBusy {
		return 0, err
	}
	if err != nil {
		return 0, coded("verify an append to", p.tp, err)
	}
	return guard, nil
}

func (p *Partition) verifiable(noWait bool) (Log, error) {
	if noWait && p.Cold() {
		return nil, storage.ErrBusy
	}
	return p.lead(-1)
}

// Producers are the producers with an id of which the partition knows, by id. It
// waits for the disk when the partition was not used yet.
func (p *Partition) Producers() ([]storage.ProducerState, error) {
	log, err := p.lead(-1)
	if err != nil {
		return nil, err
	}
	states, err := log.Producers()
	if err != nil {
		return nil, coded("describe the producers of", p.tp, err)
	}
	return states, nil
}

// AppendMarker writes a marker as the leader of leaderEpoch; committed is as for
// Append.
func (c *CoordinatorLog) AppendMarker(leaderEpoch int32, m Marker, committed func(error)) (offset int64, err error) {
	a, err := c.p.AppendMarker(m, AppendOptions{Acks: AcksAll, LeaderEpoch: leaderEpoch})
	if err != nil {
		return -1, err
	}
	c.p.whenAcked(a, committed)
	return a.FirstOffset, nil
}

// StartVerification is Partition.StartVerification. It may wait for an append.
func (c *CoordinatorLog) StartVerification(v storage.Verification) (storage.VerificationGuard, error) {
	return c.p.StartVerification(v, false)
}

// AppendVerified is Append for a transactional batch, under the guard that its
// verification gave.
func (c *CoordinatorLog) AppendVerified(leaderEpoch int32, batch []byte, guard storage.VerificationGuard, committed func(error)) (firstOffset int64, err error) {
	a, err := c.p.Append(batch, AppendOptions{Acks: AcksAll, LeaderEpoch: leaderEpoch, Internal: true, Guard: guard})
	if err != nil {
		return -1, err
	}
	c.p.whenAcked(a, committed)
	return a.FirstOffset, nil
}
