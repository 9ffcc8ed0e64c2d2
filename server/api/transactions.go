package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/storage"
)

// Transactions coordinates the transactional ids whose partitions this broker
// leads. Each method calls done exactly once, on any goroutine, maybe before it
// returns.
type Transactions interface {
	// WhenServing calls done once the coordinator of the transactional id has
	// loaded here, or with the reason why this broker is not it.
	WhenServing(transactionalID string, done func(error))
	InitProducerID(r *kmsg.InitProducerIDRequest, done func(txn.Produced))
	// AddPartitions makes partitions part of the producer's transaction, which
	// begins where none is open. clientVersion is the transaction version that the
	// producer follows.
	AddPartitions(p txn.Producer, partitions []storage.TopicPartition, clientVersion int16, done func(*kerr.Error))
	// VerifyOrAdd asks whether partitions are part of the transaction that a
	// producer has open (KIP-890). With add, those that are not become part of it,
	// and a transaction begins where none is open; done then waits until the log
	// has that. done gets an entry for every partition, nil where the append may go
	// on. The codes are the coordinator's: TRANSACTION_ABORTABLE where a partition is
	// not part of the transaction, CONCURRENT_TRANSACTIONS while an earlier one
	// ends, PRODUCER_FENCED, INVALID_PRODUCER_ID_MAPPING, and NOT_COORDINATOR,
	// COORDINATOR_NOT_AVAILABLE or COORDINATOR_LOAD_IN_PROGRESS for all of them
	// where nobody can tell. What a producer shall see of them is the caller's.
	VerifyOrAdd(transactionalID string, producerID int64, epoch int16, partitions []storage.TopicPartition, add bool, done func(map[storage.TopicPartition]*kerr.Error))
	EndTxn(r *kmsg.EndTxnRequest, done func(txn.Produced))
	Describe(transactionalID string, done func(kmsg.DescribeTransactionsResponseTransactionState))
	List(r *kmsg.ListTransactionsRequest, done func(*kmsg.ListTransactionsResponse))
}

// firstFencedTxn is the version of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn
// from which their clients know PRODUCER_FENCED (KIP-588).
const firstFencedTxn = 2

// fencedCode is err's code for a client that knows PRODUCER_FENCED or not.
func fencedCode(err *kerr.Error, knows bool) int16 {
	switch {
	case err == nil:
		return 0
	case err == kerr.ProducerFenced && !knows:
		return kerr.InvalidProducerEpoch.Code
	}
	return err.Code
}

// endTxn serves EndTxn v0 to v5; from v5 on the client follows transaction version
// 2 and goes on with the id and epoch in the answer (KIP-890).
func (h *Handlers) endTxn(c *Call, req *kmsg.EndTxnRequest, resp *kmsg.EndTxnResponse) {
	h.Transactions.EndTxn(req, func(p txn.Produced) {
		h.guard(c, func() {
			resp.ProducerID, resp.ProducerEpoch = p.ID, p.Epoch
			resp.ErrorCode = fencedCode(p.Err, req.Version >= firstFencedTxn)
			c.Reply()
		})
	})
}

// describeTransactions serves DescribeTransactions v0 (KIP-664).
func (h *Handlers) describeTransactions(c *Call, req *kmsg.DescribeTransactionsRequest, resp *kmsg.DescribeTransactionsResponse) {
	gatherKept(c, len(req.TransactionalIDs), func(i int, done func(kmsg.DescribeTransactionsResponseTransactionState)) {
		h.Transactions.Describe(req.TransactionalIDs[i], done)
	}, func(states []kmsg.DescribeTransactionsResponseTransactionState) {
		h.guard(c, func() {
			resp.TransactionStates = states
			c.Reply()
		})
	})
}

// listTransactions serves ListTransactions v0 to v2: filters by state and producer
// id, by age (KIP-994), and by a pattern of the transactional id (KIP-1152).
func (h *Handlers) listTransactions(c *Call, req *kmsg.ListTransactionsRequest, resp *kmsg.ListTransactionsResponse) {
	h.Transactions.List(req, func(r *kmsg.ListTransactionsResponse) {
		h.guard(c, func() {
			r.Version = resp.Version
			*resp = *r
			c.Reply()
		})
	})
}
