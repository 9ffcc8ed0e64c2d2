package group

import (
	"math"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupNotFoundVersion is the OffsetCommit version from which a missing group
// has its own error.
const groupNotFoundVersion = 9

func (s *step) commitOffsets(e Event, r *kmsg.OffsetCommitRequest) {
	g := s.view(r.Group)
	check, code := s.mayCommit(g, r)
	if code != nil {
		s.answer(e.Call, CommitError(r, code))
		return
	}
	if g != nil && (g.state == Stable || g.state == PreparingRebalance) {
		// A commit keeps the session alive as a heartbeat does.
		if m := g.member(r.MemberID); m != nil {
			s.expectHeartbeat(g, m, m.sessionTimeoutMs)
		}
	}
	resp := kmsg.NewPtrOffsetCommitResponse()
	var sizeBytes int
	resp.Topics = make([]kmsg.OffsetCommitResponseTopic, len(r.Topics))
	for i := range r.Topics {
		rt, t := &resp.Topics[i], &r.Topics[i]
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		rt.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			rt.Partitions[j].Partition = p.Partition
			if s.metadataTooLong(p.Metadata) {
				rt.Partitions[j].ErrorCode = kerr.OffsetMetadataTooLarge.Code
				continue
			}
			if code := check(t.TopicID, p.Partition); code != nil {
				s.out.Records = nil
				s.answer(e.Call, CommitError(r, code))
				return
			}
			rec := s.commitRecord(r, t, p)
			sizeBytes += encodedBytes(rec)
			s.record(rec)
		}
	}
	if sizeBytes > s.cfg.MaxBatchBytes {
		s.out.Records = nil
		s.answer(e.Call, CommitError(r, kerr.UnknownServerError))
		return
	}
	s.tally.commits += int64(len(s.out.Records))
	s.answer(e.Call, resp)
}

// mayCommit is Kafka's check of who commits: a member of the present generation,
// or, while the group is empty, anybody without one. A consumer group looks at
// each partition as well.
func (s *step) mayCommit(g *classic, r *kmsg.OffsetCommitRequest) (commitCheck, *kerr.Error) {
	if consumer := s.consumer(r.Group); consumer != nil {
		return consumer.mayCommit(r.MemberID, r.Generation, r.Version)
	}
	return anyPartition, s.mayCommitClassic(g, r)
}

func (s *step) mayCommitClassic(g *classic, r *kmsg.OffsetCommitRequest) *kerr.Error {
	if g == nil {
		switch {
		case tooLong(r.Group):
			return kerr.InvalidGroupID
		case r.Generation < 0:
			return nil
		case r.Version >= groupNotFoundVersion:
			return kerr.GroupIDNotFound
		}
		return kerr.IllegalGeneration
	}
	if r.Generation < 0 && g.state == Empty {
		return nil
	}
	if r.Generation < 0 && r.MemberID == "" && r.InstanceID == nil {
		return kerr.UnknownMemberID
	}
	if _, err := g.validate(r.MemberID, r.InstanceID); err != nil {
		return err
	}
	if r.Generation != g.generation {
		return kerr.IllegalGeneration
	}
	if g.state == CompletingRebalance {
		return kerr.RebalanceInProgress
	}
	return nil
}

func (s *step) commitRecord(r *kmsg.OffsetCommitRequest, t *kmsg.OffsetCommitRequestTopic, p *kmsg.OffsetCommitRequestTopicPartition) Record {
	v := s.offsetValue(p.Offset, p.LeaderEpoch, p.Metadata)
	v.TopicID = t.TopicID
	if r.Version == 1 && p.Timestamp != -1 {
		v.CommitTimestamp = p.Timestamp
	}
	if r.Version >= 2 && r.Version <= 4 && r.RetentionTimeMillis != -1 {
		// One that is too long lasts as long as there are timestamps.
		v.Version, v.ExpireTimestamp = offsetValueVersionExpires, s.nowMs()+min(r.RetentionTimeMillis, math.MaxInt64-s.nowMs())
		v.LeaderEpoch, v.TopicID = -1, [16]byte{}
	}
	return Record{IsOffset: true, Group: r.Group, Topic: t.Topic, Partition: p.Partition, Offset: v}
}

// offsetValue is an offset that is committed now.
func (s *step) offsetValue(offset int64, leaderEpoch int32, metadata *string) *kmsg.OffsetCommitValue {
	v := kmsg.NewOffsetCommitValue()
	v.Version, v.Offset, v.LeaderEpoch = offsetValueVersion, offset, leaderEpoch
	v.CommitTimestamp, v.ExpireTimestamp = s.nowMs(), -1
	if metadata != nil {
		v.Metadata = *metadata
	}
	return &v
}

func (s *step) metadataTooLong(metadata *string) bool {
	return metadata != nil && (tooLong(*metadata) || javaLength(*metadata) > s.cfg.OffsetMetadataMaxBytes)
}

// javaLength is a string's length as Kafka counts it, in UTF-16 units.
func javaLength(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if r > 0xffff {
			n++
		}
	}
	return n
}

// CommitError is the response to an OffsetCommit that failed as a whole.
func CommitError(r *kmsg.OffsetCommitRequest, code *kerr.Error) *kmsg.OffsetCommitResponse {
	resp := kmsg.NewPtrOffsetCommitResponse()
	for i := range r.Topics {
		t := kmsg.NewOffsetCommitResponseTopic()
		t.Topic, t.TopicID = r.Topics[i].Topic, r.Topics[i].TopicID
		for j := range r.Topics[i].Partitions {
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			p.Partition, p.ErrorCode = r.Topics[i].Partitions[j].Partition, code.Code
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// fetchOffsets answers -1 without an error for what was never committed, in
// groups that do not exist too.
func (s *step) fetchOffsets(r FetchOffsets) *kmsg.OffsetFetchResponseGroup {
	resp := kmsg.NewOffsetFetchResponseGroup()
	resp.Group = r.Group.Group
	st := s.groups[r.Group.Group]
	if g := s.consumer(r.Group.Group); g != nil {
		if code := g.mayFetch(r.Group.MemberID, r.Group.MemberEpoch); code != nil {
			resp.ErrorCode = code.Code
			return &resp
		}
	}
	if r.Group.Topics == nil {
		if st != nil {
			resp.Topics = s.fetchAll(st, r.RequireStable)
		}
		return &resp
	}
	for i := range r.Group.Topics {
		t := &r.Group.Topics[i]
		rt := kmsg.NewOffsetFetchResponseGroupTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		rt.Partitions = make([]kmsg.OffsetFetchResponseGroupTopicPartition, 0, len(t.Partitions))
		for _, p := range t.Partitions {
			var c committed
			if st != nil {
				c = st.offsets[t.Topic][p]
			}
			if r.RequireStable && st != nil && st.hasPending(t.Topic, p) {
				rt.Partitions = append(rt.Partitions, unstable(p))
				continue
			}
			rt.Partitions = append(rt.Partitions, fetched(p, c, t.TopicID))
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return &resp
}

// fetchAll names each topic with the id that was committed for; offsets of two
// topics of one name stand apart.
func (s *step) fetchAll(st *stored, requireStable bool) (out []kmsg.OffsetFetchResponseGroupTopic) {
	s.eachOffset(st, func(topic string, partition int32, c committed) {
		if n := len(out) - 1; n < 0 || out[n].Topic != topic || out[n].TopicID != c.value.TopicID {
			t := kmsg.NewOffsetFetchResponseGroupTopic()
			t.Topic, t.TopicID = topic, c.value.TopicID
			out = append(out, t)
		}
		t := &out[len(out)-1]
		if requireStable && st.hasPending(topic, partition) {
			t.Partitions = append(t.Partitions, unstable(partition))
			return
		}
		t.Partitions = append(t.Partitions, fetched(partition, c, [16]byte{}))
	})
	return out
}

// unstable is the answer for a partition with an offset in an open transaction:
// the client asks again until the transaction has ended.
func unstable(partition int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := fetched(partition, committed{}, [16]byte{})
	p.ErrorCode = kerr.UnstableOffsetCommit.Code
	return p
}

// fetched is one partition's answer. An offset committed for an earlier topic of
// the same name is none.
func fetched(partition int32, c committed, topicID [16]byte) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	var metadata string
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = partition, -1, -1, &metadata
	var none [16]byte
	if c.value == nil || topicID != none && c.value.TopicID != none && c.value.TopicID != topicID {
		return p
	}
	p.Offset, p.LeaderEpoch, p.Metadata = c.value.Offset, c.value.LeaderEpoch, &c.value.Metadata
	return p
}

func (s *step) deleteOffsets(e Event, r *kmsg.OffsetDeleteRequest) {
	resp := kmsg.NewPtrOffsetDeleteResponse()
	defer s.answer(e.Call, resp)
	g := s.view(r.Group)
	subscribedTo := g.subscribedTo
	switch consumer := s.consumer(r.Group); {
	case r.Group == "":
		resp.ErrorCode = kerr.InvalidGroupID.Code
		return
	case consumer != nil:
		subscribedTo = consumer.subscribedTo
	case g == nil:
		resp.ErrorCode = kerr.GroupIDNotFound.Code
		return
	case g.state != Empty && g.protocolType != protocolConsumer:
		resp.ErrorCode = kerr.NonEmptyGroup.Code
		return
	}
	st := s.groups[r.Group]
	for i := range r.Topics {
		t := kmsg.NewOffsetDeleteResponseTopic()
		t.Topic = r.Topics[i].Topic
		subscribed := subscribedTo(t.Topic)
		for j := range r.Topics[i].Partitions {
			p := kmsg.NewOffsetDeleteResponseTopicPartition()
			p.Partition = r.Topics[i].Partitions[j].Partition
			if subscribed {
				p.ErrorCode = kerr.GroupSubscribedToTopic.Code
			} else if st != nil && (st.offsets[t.Topic][p.Partition].value != nil || st.hasPending(t.Topic, p.Partition)) {
				s.record(offsetTombstone(r.Group, t.Topic, p.Partition))
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
}
