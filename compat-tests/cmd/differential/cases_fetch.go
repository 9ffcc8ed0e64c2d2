package main

import "github.com/twmb/franz-go/pkg/kmsg"

func fetchRequest(s *side, topic string, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = s.version, -1, 100, 1, 1<<20
	req.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, s.ids[topic]
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset = offset, 1<<20, -1, -1, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func fetchCases(b *book) {
	fetched := func(offset int64, change func(*side, *kmsg.FetchRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			topic := s.topic(c, 1)
			s.three(topic)
			req := fetchRequest(s, topic, offset)
			if change != nil {
				change(s, req)
			}
			return s.try(req)
		}
	}
	b.good(kmsg.Fetch, "three records", fetched(0, nil))
	b.good(kmsg.Fetch, "from the middle of a batch", fetched(1, nil))
	b.good(kmsg.Fetch, "the end", fetched(3, nil))
	b.good(kmsg.Fetch, "one byte", fetched(0, func(_ *side, r *kmsg.FetchRequest) {
		r.MaxBytes, r.Topics[0].Partitions[0].PartitionMaxBytes = 1, 1
	})).from(3)
	b.good(kmsg.Fetch, "a new session", fetched(0, func(_ *side, r *kmsg.FetchRequest) { r.SessionEpoch = 0 })).from(7).masks("SessionID")
	b.good(kmsg.Fetch, "read_committed past an aborted transaction", func(c *Case, s *side) (kmsg.Response, error) {
		topic := s.topic(c, 1)
		s.transact(c, topic, false)
		s.three(topic)
		req := fetchRequest(s, topic, 0)
		req.IsolationLevel = 1
		return s.try(req)
	}).from(4)
	b.good(kmsg.Fetch, "read_committed up to an open transaction", func(c *Case, s *side) (kmsg.Response, error) {
		topic := s.topic(c, 1)
		s.three(topic)
		s.openTransaction(c, topic)
		req := fetchRequest(s, topic, 0)
		req.IsolationLevel = 1
		return s.try(req)
	}).from(4)
	b.good(kmsg.Fetch, "read_uncommitted past an open transaction", func(c *Case, s *side) (kmsg.Response, error) {
		topic := s.topic(c, 1)
		s.openTransaction(c, topic)
		return s.try(fetchRequest(s, topic, 0))
	}).from(4)
	b.good(kmsg.Fetch, "after DeleteRecords", func(c *Case, s *side) (kmsg.Response, error) {
		topic := s.topic(c, 1)
		s.three(topic)
		s.three(topic)
		s.deleteRecords(topic, 3)
		return s.try(fetchRequest(s, topic, 3))
	})
	b.bad(kmsg.Fetch, "past the end", fetched(4, nil))
	b.bad(kmsg.Fetch, "before the start", fetched(-7, nil))
	b.bad(kmsg.Fetch, "an unknown topic", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(fetchRequest(s, s.name(c, "missing"), 0))
	})
	b.bad(kmsg.Fetch, "an unknown partition", fetched(0, func(_ *side, r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].Partition = 9 }))
	b.bad(kmsg.Fetch, "an unknown session", fetched(0, func(_ *side, r *kmsg.FetchRequest) { r.SessionID, r.SessionEpoch = 12345, 1 })).from(7)
	b.bad(kmsg.Fetch, "a newer leader epoch", fetched(0, func(_ *side, r *kmsg.FetchRequest) {
		r.Topics[0].Partitions[0].CurrentLeaderEpoch = 9
	})).from(9)
	b.good(kmsg.Fetch, "diverging epoch", fetched(3, func(_ *side, r *kmsg.FetchRequest) {
		r.Topics[0].Partitions[0].LastFetchedEpoch = 0
	})).from(12)
}

func (s *side) deleteRecords(topic string, offset int64) {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = 2, 10000
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = topic
	t.Partitions = append(t.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Offset: offset})
	req.Topics = append(req.Topics, t)
	must[*kmsg.DeleteRecordsResponse](s, req)
}

func offsetCases(b *book) {
	listed := func(timestamp int64, change func(*kmsg.ListOffsetsRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			topic := s.topic(c, 1)
			s.three(topic)
			req := listOffsets(s.version, topic, 0, timestamp)
			req.Topics[0].Partitions[0].MaxNumOffsets = 5
			if change != nil {
				change(req)
			}
			return s.try(req)
		}
	}
	// The time of a record is what was sent, so it is compared.
	b.good(kmsg.ListOffsets, "latest", listed(-1, nil))
	b.good(kmsg.ListOffsets, "earliest", listed(-2, nil))
	b.good(kmsg.ListOffsets, "the largest timestamp", listed(-3, nil)).from(7)
	b.good(kmsg.ListOffsets, "earliest local", listed(-4, nil)).from(8)
	b.good(kmsg.ListOffsets, "latest tiered", listed(-5, nil)).from(9)
	b.good(kmsg.ListOffsets, "by time", listed(firstTimestampMs+500, nil))
	b.good(kmsg.ListOffsets, "by a time after all", listed(firstTimestampMs+5000, nil))
	b.good(kmsg.ListOffsets, "read_committed with an open transaction", func(c *Case, s *side) (kmsg.Response, error) {
		topic := s.topic(c, 1)
		s.three(topic)
		s.openTransaction(c, topic)
		req := listOffsets(s.version, topic, 0, -1)
		req.IsolationLevel = 1
		return s.try(req)
	}).from(2)
	b.bad(kmsg.ListOffsets, "an unknown topic", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(listOffsets(s.version, s.name(c, "missing"), 0, -1))
	})
	b.bad(kmsg.ListOffsets, "an unknown partition", listed(-1, func(r *kmsg.ListOffsetsRequest) { r.Topics[0].Partitions[0].Partition = 9 }))
	b.bad(kmsg.ListOffsets, "a newer leader epoch", listed(-1, func(r *kmsg.ListOffsetsRequest) {
		r.Topics[0].Partitions[0].CurrentLeaderEpoch = 9
	})).from(4)
	b.bad(kmsg.ListOffsets, "an unknown special timestamp", listed(-77, nil)).free("versions differ in what they take")

	epochEnd := func(current, asked int32, partition int32) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			topic := s.topic(c, 1)
			s.three(topic)
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			req.Version, req.ReplicaID = s.version, -1
			t := kmsg.NewOffsetForLeaderEpochRequestTopic()
			t.Topic = topic
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = partition, current, asked
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return s.try(req)
		}
	}
	b.good(kmsg.OffsetForLeaderEpoch, "the current epoch", epochEnd(-1, 0, 0))
	b.good(kmsg.OffsetForLeaderEpoch, "a later epoch", epochEnd(-1, 5, 0))
	b.bad(kmsg.OffsetForLeaderEpoch, "a newer leader epoch", epochEnd(7, 0, 0)).from(2)
	b.bad(kmsg.OffsetForLeaderEpoch, "an unknown partition", epochEnd(-1, 0, 9))

	deleted := func(offset int64, partition int32) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			topic := s.topic(c, 1)
			s.three(topic)
			req := kmsg.NewPtrDeleteRecordsRequest()
			req.Version, req.TimeoutMillis = s.version, 10000
			t := kmsg.NewDeleteRecordsRequestTopic()
			t.Topic = topic
			t.Partitions = append(t.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: partition, Offset: offset})
			req.Topics = append(req.Topics, t)
			return s.try(req)
		}
	}
	b.good(kmsg.DeleteRecords, "up to an offset", deleted(2, 0))
	b.good(kmsg.DeleteRecords, "up to the high watermark", deleted(-1, 0))
	b.bad(kmsg.DeleteRecords, "past the end", deleted(9, 0))
	b.bad(kmsg.DeleteRecords, "an unknown partition", deleted(0, 9))
	b.bad(kmsg.DeleteRecords, "a negative offset", deleted(-5, 0))
}
