package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/storage"
)

// batchedAdd is the version of AddPartitionsToTxn from which a request has many
// transactions and may only ask. It comes from brokers, for producers that follow
// transaction version 2.
const (
	batchedAdd        = 4
	batchedAddVersion = 2
)

// addResult is what AddPartitionsToTxn says of one partition.
type addResult struct {
	tp  storage.TopicPartition
	err *kerr.Error
}

// addPartitionsToTxn serves AddPartitionsToTxn v0 to v5.
func (h *Handlers) addPartitionsToTxn(c *Call, req *kmsg.AddPartitionsToTxnRequest, resp *kmsg.AddPartitionsToTxnResponse) {
	if req.Version >= batchedAdd {
		h.addBatched(c, req, resp)
		return
	}
	var partitions []storage.TopicPartition
	for i := range req.Topics {
		partitions = appendPartitions(partitions, req.Topics[i].Topic, req.Topics[i].Partitions)
	}
	p := txn.Producer{TransactionalID: req.TransactionalID, ID: req.ProducerID, Epoch: req.ProducerEpoch}
	h.addOrVerify(p, partitions, true, 0, func(results []addResult) {
		h.guard(c, func() {
			for i, r := range results {
				if i == 0 || r.tp.Topic != results[i-1].tp.Topic {
					t := kmsg.NewAddPartitionsToTxnResponseTopic()
					t.Topic = r.tp.Topic
					resp.Topics = append(resp.Topics, t)
				}
				t := &resp.Topics[len(resp.Topics)-1]
				rp := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
				rp.Partition, rp.ErrorCode = r.tp.Partition, fencedCode(r.err, req.Version >= firstFencedTxn)
				t.Partitions = append(t.Partitions, rp)
			}
			c.Reply()
		})
	})
}

func (h *Handlers) addBatched(c *Call, req *kmsg.AddPartitionsToTxnRequest, resp *kmsg.AddPartitionsToTxnResponse) {
	gather(len(req.Transactions), func(i int, done func(kmsg.AddPartitionsToTxnResponseTransaction)) {
		t := &req.Transactions[i]
		var partitions []storage.TopicPartition
		for j := range t.Topics {
			partitions = appendPartitions(partitions, t.Topics[j].Topic, t.Topics[j].Partitions)
		}
		p := txn.Producer{TransactionalID: t.TransactionalID, ID: t.ProducerID, Epoch: t.ProducerEpoch}
		h.addOrVerify(p, partitions, !t.VerifyOnly, batchedAddVersion, func(results []addResult) {
			done(batchedResult(t.TransactionalID, results))
		})
	}, func(all []kmsg.AddPartitionsToTxnResponseTransaction) {
		h.guard(c, func() {
			resp.Transactions = all
			c.Reply()
		})
	})
}

func batchedResult(transactionalID string, results []addResult) kmsg.AddPartitionsToTxnResponseTransaction {
	out := kmsg.NewAddPartitionsToTxnResponseTransaction()
	out.TransactionalID = transactionalID
	for i, r := range results {
		if i == 0 || r.tp.Topic != results[i-1].tp.Topic {
			t := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
			t.Topic = r.tp.Topic
			out.Topics = append(out.Topics, t)
		}
		t := &out.Topics[len(out.Topics)-1]
		rp := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
		rp.Partition, rp.ErrorCode = r.tp.Partition, fencedCode(r.err, true)
		t.Partitions = append(t.Partitions, rp)
	}
	return out
}

func appendPartitions(dst []storage.TopicPartition, topic string, partitions []int32) []storage.TopicPartition {
	for _, p := range partitions {
		dst = append(dst, storage.TopicPartition{Topic: topic, Partition: p})
	}
	return dst
}

// addOrVerify adds partitions to a transaction, or asks whether they are part of
// it. All of them have to exist: with one that does not, nothing is attempted.
func (h *Handlers) addOrVerify(p txn.Producer, partitions []storage.TopicPartition, add bool, clientVersion int16, done func([]addResult)) {
	results := make([]addResult, len(partitions))
	img, unknown := h.Image(), false
	for i, tp := range partitions {
		results[i] = addResult{tp, kerr.OperationNotAttempted}
		if _, ok := img.Partition(tp.Topic, tp.Partition); !ok {
			results[i].err, unknown = kerr.UnknownTopicOrPartition, true
		}
	}
	if unknown {
		done(results)
		return
	}
	if !add {
		h.Transactions.VerifyOrAdd(p.TransactionalID, p.ID, p.Epoch, partitions, false, func(errs map[storage.TopicPartition]*kerr.Error) {
			for i := range results {
				results[i].err = errs[results[i].tp]
			}
			done(results)
		})
		return
	}
	h.Transactions.AddPartitions(p, partitions, clientVersion, func(err *kerr.Error) {
		for i := range results {
			results[i].err = err
		}
		done(results)
	})
}

// addOffsetsToTxn serves AddOffsetsToTxn v0 to v4: the group's partition of the
// internal topic becomes part of the transaction. As in Kafka that does not make
// the topic: the producer looks for the group's coordinator next, which does.
func (h *Handlers) addOffsetsToTxn(c *Call, req *kmsg.AddOffsetsToTxnRequest, resp *kmsg.AddOffsetsToTxnResponse) {
	partitions := h.InternalTopic(group.Topic).Partitions
	if t, ok := h.Image().Topic(group.Topic); ok {
		partitions = int32(len(t.Partitions))
	}
	tp := storage.TopicPartition{Topic: group.Topic, Partition: group.PartitionFor(req.Group, partitions)}
	p := txn.Producer{TransactionalID: req.TransactionalID, ID: req.ProducerID, Epoch: req.ProducerEpoch}
	h.Transactions.AddPartitions(p, []storage.TopicPartition{tp}, 0, func(err *kerr.Error) {
		h.guard(c, func() {
			resp.ErrorCode = fencedCode(err, req.Version >= firstFencedTxn)
			c.Reply()
		})
	})
}
