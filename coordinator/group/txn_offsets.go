package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/runtime"
)

// Producer is whose transaction an event's records belong to.
type Producer = runtime.Producer

// txnGroupNotFoundVersion is the TxnOffsetCommit version from which a missing
// group has its own error (KIP-1319).
const txnGroupNotFoundVersion = 6

// commitPending stores offsets that count once the producer's transaction is
// committed. That the transaction is open and has this partition was asked of its
// coordinator before; the log checks the epoch.
func (s *step) commitPending(e Event, r *kmsg.TxnOffsetCommitRequest) {
	check, code := s.mayCommitPending(r)
	if code != nil {
		s.answer(e.Call, TxnCommitError(r, code))
		return
	}
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	var sizeBytes int
	resp.Topics = make([]kmsg.TxnOffsetCommitResponseTopic, len(r.Topics))
	for i := range r.Topics {
		rt, t := &resp.Topics[i], &r.Topics[i]
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		rt.Partitions = make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			rt.Partitions[j].Partition = p.Partition
			if s.metadataTooLong(p.Metadata) {
				rt.Partitions[j].ErrorCode = kerr.OffsetMetadataTooLarge.Code
				continue
			}
			if code := check(t.TopicID, p.Partition); code != nil {
				s.out.Records = nil
				s.answer(e.Call, TxnCommitError(r, code))
				return
			}
			v := s.offsetValue(p.Offset, p.LeaderEpoch, p.Metadata)
			v.TopicID = t.TopicID
			rec := Record{IsOffset: true, Group: r.Group, Topic: t.Topic, Partition: p.Partition, Offset: v}
			sizeBytes += encodedBytes(rec)
			s.record(rec)
		}
	}
	if sizeBytes > s.cfg.MaxBatchBytes {
		s.out.Records = nil
		s.answer(e.Call, TxnCommitError(r, kerr.UnknownServerError))
		return
	}
	s.tally.commits += int64(len(s.out.Records))
	s.answer(e.Call, resp)
}

// mayCommitPending is Kafka's check of who commits (KIP-447): a member of the
// present generation when the request names one, anybody otherwise. A rebalance
// is no reason to refuse: the generation fences. A consumer group looks at each
// partition as well.
func (s *step) mayCommitPending(r *kmsg.TxnOffsetCommitRequest) (commitCheck, *kerr.Error) {
	if consumer := s.consumer(r.Group); consumer != nil {
		return consumer.mayCommitPending(r)
	}
	return anyPartition, s.mayCommitPendingClassic(s.view(r.Group), r)
}

func (s *step) mayCommitPendingClassic(g *classic, r *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	switch {
	case r.Group == "" || tooLong(r.Group):
		return kerr.InvalidGroupID
	case g == nil && r.Generation >= 0 && r.Version >= txnGroupNotFoundVersion:
		return kerr.GroupIDNotFound
	case g == nil && r.Generation >= 0:
		return kerr.IllegalGeneration
	case g == nil, r.Generation < 0 && g.state == Empty:
		return nil
	case r.Generation < 0 && r.MemberID == "" && r.InstanceID == nil:
		return nil
	}
	if _, err := g.validate(r.MemberID, r.InstanceID); err != nil {
		return err
	}
	if r.Generation != g.generation {
		return kerr.IllegalGeneration
	}
	return nil
}

// TxnCommitError is the response to a TxnOffsetCommit that failed as a whole.
func TxnCommitError(r *kmsg.TxnOffsetCommitRequest, code *kerr.Error) *kmsg.TxnOffsetCommitResponse {
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	for i := range r.Topics {
		t := kmsg.NewTxnOffsetCommitResponseTopic()
		t.Topic, t.TopicID = r.Topics[i].Topic, r.Topics[i].TopicID
		for j := range r.Topics[i].Partitions {
			p := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			p.Partition, p.ErrorCode = r.Topics[i].Partitions[j].Partition, code.Code
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// producerOf is whose transaction an event's records are part of, nil for none.
func producerOf(e Event) *Producer {
	if c, ok := e.Request.(CommitPending); ok {
		return &Producer{ID: c.Request.ProducerID, Epoch: c.Request.ProducerEpoch, Guard: c.Guard}
	}
	return nil
}
