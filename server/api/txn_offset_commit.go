package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// The TxnOffsetCommit versions from which a transaction that cannot go on has an
// error of its own, from which the request makes the offsets part of the
// transaction (KIP-890), and from which topics are named by id (KIP-1319).
const (
	txnCommitAbortable = 4
	txnCommitAdds      = 5
	txnCommitTopicIDs  = 6
)

// txnOffsetCommit commits offsets in a transaction, for the partitions that exist.
// Whether the transaction is open is asked of its coordinator, unless the log of
// the group's partition knows that.
func (h *Handlers) txnOffsetCommit(c *Call, req *kmsg.TxnOffsetCommitRequest, resp *kmsg.TxnOffsetCommitResponse) {
	valid, slots := h.validTxnCommit(req, resp)
	if len(slots) == 0 {
		c.Reply()
		return
	}
	reply := func(r *kmsg.TxnOffsetCommitResponse) {
		h.guard(c, func() {
			n := 0
			for i := range r.Topics {
				for j := range r.Topics[i].Partitions {
					slots[n].ErrorCode = r.Topics[i].Partitions[j].ErrorCode
					n++
				}
			}
			c.Reply()
		})
	}
	if req.Group == "" {
		reply(group.TxnCommitError(valid.Request, kerr.InvalidGroupID))
		return
	}
	h.verifyTxnCommit(valid.Request, func(guard storage.VerificationGuard, code *kerr.Error) {
		if code != nil {
			reply(group.TxnCommitError(valid.Request, code))
			return
		}
		valid.Guard = guard
		h.Groups.CommitTransactionalOffsets(c.client(), valid, reply)
	})
}

// validTxnCommit is the request with the partitions that exist, and where the
// coordinator's answers for them go; the others are answered.
func (h *Handlers) validTxnCommit(req *kmsg.TxnOffsetCommitRequest, resp *kmsg.TxnOffsetCommitResponse) (group.CommitPending, []*kmsg.TxnOffsetCommitResponseTopicPartition) {
	img := h.Image()
	known := *req
	known.Topics = nil
	valid := group.CommitPending{Request: &known}
	var slots []*kmsg.TxnOffsetCommitResponseTopicPartition
	resp.Topics = make([]kmsg.TxnOffsetCommitResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, rt := req.Topics[i], &resp.Topics[i]
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		rt.Partitions = make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(t.Partitions))
		topic, code := named(img, t.Topic, t.TopicID, req.Version >= txnCommitTopicIDs)
		asked := t.Partitions
		t.Partitions = nil
		for j := range asked {
			p := &rt.Partitions[j]
			p.Partition = asked[j].Partition
			switch {
			case code != nil:
				p.ErrorCode = code.Code
			case p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				p.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				t.Partitions = append(t.Partitions, asked[j])
				slots = append(slots, p)
			}
		}
		if len(t.Partitions) > 0 {
			t.Topic, t.TopicID = topic.Name, topic.ID
			known.Topics = append(known.Topics, t)
		}
	}
	return valid, slots
}

// verifyTxnCommit asks for the guard under which offsets may be written.
func (h *Handlers) verifyTxnCommit(req *kmsg.TxnOffsetCommitRequest, done func(storage.VerificationGuard, *kerr.Error)) {
	h.verifyTxnCommitAfter(req, 0, maxVerifications, done)
}

// verifyTxnCommitAfter asks the coordinator unless it has said yes under the guard
// that is in force now: where it adds the partition it may first wait for the
// transaction before to be complete, whose markers end all verifications.
func (h *Handlers) verifyTxnCommitAfter(req *kmsg.TxnOffsetCommitRequest, granted storage.VerificationGuard, left int, done func(storage.VerificationGuard, *kerr.Error)) {
	v := storage.Verification{
		ProducerID: req.ProducerID, ProducerEpoch: req.ProducerEpoch, BaseSequence: batch.NoSequence,
		EpochBump: req.Version >= txnCommitAdds,
	}
	h.Groups.StartVerification(req.Group, v, func(partition int32, guard storage.VerificationGuard, err error) {
		switch {
		case err != nil || guard == 0 || guard == granted:
			done(guard, typed(err))
		case h.Transactions == nil:
			done(0, kerr.CoordinatorNotAvailable)
		case req.TransactionalID == "":
			done(0, kerr.InvalidRequest)
		case left == 0:
			done(0, kerr.ConcurrentTransactions)
		default:
			tp := storage.TopicPartition{Topic: group.Topic, Partition: partition}
			h.Transactions.VerifyOrAdd(req.TransactionalID, req.ProducerID, req.ProducerEpoch, []storage.TopicPartition{tp}, v.EpochBump,
				func(codes map[storage.TopicPartition]*kerr.Error) {
					code := txnCommitCode(codes[tp], req.Version)
					if code == nil && v.EpochBump {
						h.verifyTxnCommitAfter(req, guard, left-1, done)
						return
					}
					done(guard, code)
				})
		}
	})
}

// typed is the code of an error, nil for none.
func typed(err error) *kerr.Error {
	if err == nil {
		return nil
	}
	if code := kerr.TypedErrorForCode(protocol.Code(err)); code != nil {
		return code
	}
	return kerr.UnknownServerError
}

// txnCommitCode is what a client sees of the transaction coordinator's answer.
func txnCommitCode(code *kerr.Error, version int16) *kerr.Error {
	switch {
	case code == kerr.ProducerFenced:
		return kerr.InvalidProducerEpoch
	case code == kerr.InvalidTxnState && version >= txnCommitAbortable:
		return kerr.TransactionAbortable
	case code == kerr.TransactionAbortable && version < txnCommitAbortable:
		return kerr.InvalidTxnState
	}
	return code
}
