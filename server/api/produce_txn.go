package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// The Produce versions from which a transaction that cannot go on has an error of
// its own, and from which the request makes its partitions part of the transaction
// (KIP-890).
const (
	produceAbortable = 11
	produceAdds      = 12
)

// maxVerifications bounds how often a request is verified anew because a marker came
// while its coordinator was asked.
const maxVerifications = 5

// produceTxn is, for each partition in the request's order, what a Produce with
// transactional records was verified for. All other requests have none.
type produceTxn []produceTxnRow

type produceTxnRow struct {
	guard storage.VerificationGuard
	err   error
}

// transactional says that a partition's records are of a transaction, without a
// look at whether they are sound.
func (pc *produceCall) transactional(p *kmsg.ProduceRequestTopicPartition) bool {
	if pc.req.Version < firstBatchProduce || len(p.Records) < batch.HeaderSize {
		return false
	}
	v := batch.View(p.Records)
	return v.Magic() == 2 && v.IsTransactional()
}

func (pc *produceCall) anyTransactional() bool {
	for i := range pc.req.Topics {
		for j := range pc.req.Topics[i].Partitions {
			if pc.transactional(&pc.req.Topics[i].Partitions[j]) {
				return true
			}
		}
	}
	return false
}

// verify finds out, for the partitions in whose log the request's transaction is
// not open yet, whether it is open at its coordinator (KIP-890). On an event loop it
// fails with storage.ErrBusy where it would have to wait; elsewhere it waits, so
// that no later request of the connection overtakes this one. Another error is the
// whole request's.
func (pc *produceCall) verify() error {
	switch {
	case pc.txn != nil || !pc.anyTransactional():
		return nil
	case pc.req.TransactionID == nil:
		return protocol.Errorf(kerr.TransactionalIDAuthorizationFailed, "transactional records need a transactional id")
	case pc.h.Transactions == nil:
		return protocol.Errorf(kerr.InvalidTxnState, "this broker does not support transactions yet")
	}
	var q question
	for n := 0; ; n++ {
		last := q
		q = question{pc: pc, add: pc.req.Version >= produceAdds}
		if err := q.begin(); err != nil {
			return err
		}
		switch {
		case n > 0 && q.standsAfter(&last) || len(q.partitions) == 0:
			pc.txn = q.rows
			return nil
		case pc.c.Net.OnLoop():
			return storage.ErrBusy
		case n == maxVerifications:
			q.fail(kerr.ConcurrentTransactions)
			pc.txn = q.rows
			return nil
		}
		q.ask()
		if !q.add {
			pc.txn = q.rows
			return nil
		}
	}
}

// question is what is asked of the coordinator about one request.
type question struct {
	pc   *produceCall
	add  bool
	rows produceTxn
	// producerID and epoch are those of the records, known once found is true.
	producerID int64
	epoch      int16
	found      bool
	partitions []storage.TopicPartition
	// asked are the rows that partitions belong to.
	asked []int
}

// begin starts a verification at every partition that needs one.
func (q *question) begin() error {
	for i := range q.pc.req.Topics {
		t := &q.pc.req.Topics[i]
		for j := range t.Partitions {
			q.rows = append(q.rows, produceTxnRow{})
			if !q.pc.transactional(&t.Partitions[j]) {
				continue
			}
			if err := q.beginOne(t, &t.Partitions[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginOne leaves a partition that is not here, and records that are not sound, to
// the append.
func (q *question) beginOne(t *kmsg.ProduceRequestTopic, in *kmsg.ProduceRequestTopicPartition) error {
	p, err := q.pc.find(t, in.Partition)
	if err != nil {
		return nil
	}
	v, err := onlyBatch(in.Records, q.pc.req.Version)
	if err != nil || !v.HasProducerID() {
		return nil
	}
	if q.found && (v.ProducerID() != q.producerID || v.ProducerEpoch() != q.epoch) {
		return protocol.Errorf(kerr.InvalidProducerIDMapping, "the transactional records are of more than one producer")
	}
	q.producerID, q.epoch, q.found = v.ProducerID(), v.ProducerEpoch(), true
	row := &q.rows[len(q.rows)-1]
	row.guard, err = p.StartVerification(storage.Verification{
		ProducerID: q.producerID, ProducerEpoch: q.epoch, BaseSequence: v.BaseSequence(), EpochBump: q.add,
	}, q.pc.c.Net.OnLoop())
	if errors.Is(err, storage.ErrBusy) {
		return err
	}
	if row.err = err; err == nil && row.guard != 0 {
		q.partitions, q.asked = append(q.partitions, p.TopicPartition()), append(q.asked, len(q.rows)-1)
	}
	return nil
}

// ask waits for the coordinator's answer.
func (q *question) ask() {
	answers := make(chan map[storage.TopicPartition]*kerr.Error, 1)
	q.pc.h.Transactions.VerifyOrAdd(*q.pc.req.TransactionID, q.producerID, q.epoch, q.partitions, q.add,
		func(codes map[storage.TopicPartition]*kerr.Error) { answers <- codes })
	codes := <-answers
	for i, tp := range q.partitions {
		if code := codes[tp]; code != nil {
			q.rows[q.asked[i]].err = produceTxnError(code, q.pc.req.Version)
		}
	}
}

// fail gives every partition that was asked for the same answer.
func (q *question) fail(code *kerr.Error) {
	for _, i := range q.asked {
		q.rows[i].err = produceTxnError(code, q.pc.req.Version)
	}
}

// standsAfter takes the answer of the question before, unless a marker has come
// since one of its verifications began: a coordinator that adds partitions may first
// wait for the transaction before to be complete, and its markers end all
// verifications.
func (q *question) standsAfter(last *question) bool {
	for i := range q.rows {
		if last.rows[i].err == nil && q.rows[i].guard != 0 && q.rows[i].guard != last.rows[i].guard {
			return false
		}
	}
	for i := range q.rows {
		if last.rows[i].err != nil {
			q.rows[i].err = last.rows[i].err
		}
	}
	return true
}

// produceTxnError is what a producer hears of the coordinator's answer. Clients
// before transactions v2 would not send the records again after the codes of a
// coordinator that cannot tell; NOT_ENOUGH_REPLICAS makes them do so.
func produceTxnError(code *kerr.Error, version int16) error {
	said := code
	switch code {
	case kerr.ProducerFenced:
		code = kerr.InvalidProducerEpoch
	case kerr.TransactionAbortable:
		if version < produceAbortable {
			code = kerr.InvalidTxnState
		}
	case kerr.ConcurrentTransactions:
		if version < produceAdds {
			code = kerr.NotEnoughReplicas
		}
	case kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator:
		code = kerr.NotEnoughReplicas
	}
	return protocol.Errorf(code, "the partition is not known to be part of the transaction: its coordinator says %s", said.Message)
}
