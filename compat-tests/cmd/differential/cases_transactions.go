package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// producer is a transactional producer of a case's own.
type producer struct {
	transactionalID string
	id              int64
	epoch           int16
}

func (s *side) transactionalProducer(c *Case) producer { return s.namedProducer(s.name(c, "x")) }

func (s *side) namedProducer(id string) producer {
	s.coordinator(1, id)
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 4, &id, 60000
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp := retried(s, req, func(r *kmsg.InitProducerIDResponse) int16 { return r.ErrorCode })
	s.producers[resp.ProducerID] = true
	return producer{id, resp.ProducerID, resp.ProducerEpoch}
}

const errConcurrentTransactions = 51

// retried asks until an earlier transaction is done.
func retried[R kmsg.Response](s *side, req kmsg.Request, code func(R) int16) R {
	for range 500 {
		resp := must[R](s, req)
		switch code(resp) {
		case 0:
			return resp
		case errConcurrentTransactions, errCoordinatorLoading, errNotCoordinator, errCoordinatorNotAvailable:
			time.Sleep(5 * time.Millisecond)
			continue
		}
		panic(caseFault{fmt.Errorf("%s %s: error %d", s.kind, kmsg.NameForKey(req.Key()), code(resp))})
	}
	panic(caseFault{fmt.Errorf("%s %s: asked 500 times", s.kind, kmsg.NameForKey(req.Key()))})
}

func addRequest(version int16, p producer, topic string, partition int32, verify bool) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch = version, p.transactionalID, p.id, p.epoch
	req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
	t := kmsg.NewAddPartitionsToTxnRequestTransaction()
	t.TransactionalID, t.ProducerID, t.ProducerEpoch, t.VerifyOnly = p.transactionalID, p.id, p.epoch, verify
	t.Topics = []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: topic, Partitions: []int32{partition}}}
	req.Transactions = append(req.Transactions, t)
	return req
}

func (s *side) addPartition(p producer, topic string) {
	retried(s, addRequest(3, p, topic, 0, false), func(r *kmsg.AddPartitionsToTxnResponse) int16 {
		return r.Topics[0].Partitions[0].ErrorCode
	})
}

func (s *side) addOffsets(p producer, group string) {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = 3, p.transactionalID, p.id, p.epoch, group
	retried(s, req, func(r *kmsg.AddOffsetsToTxnResponse) int16 { return r.ErrorCode })
}

func txnCommitRequest(version int16, p producer, group, topic string) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version, req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = version, p.transactionalID, group, p.id, p.epoch
	req.Generation = -1
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic = topic
	o := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	o.Offset = 9
	t.Partitions = append(t.Partitions, o)
	req.Topics = append(req.Topics, t)
	return req
}

func (s *side) commitInTransaction(p producer, group, topic string) {
	retried(s, txnCommitRequest(3, p, group, topic), func(r *kmsg.TxnOffsetCommitResponse) int16 {
		return r.Topics[0].Partitions[0].ErrorCode
	})
}

func endRequest(version int16, p producer, commit bool) *kmsg.EndTxnRequest {
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = version, p.transactionalID, p.id, p.epoch, commit
	return req
}

// openTransaction writes one record in a transaction that goes on.
func (s *side) openTransaction(c *Case, topic string) producer {
	p := s.transactionalProducer(c)
	s.addPartition(p, topic)
	s.write(p, topic)
	return p
}

func (s *side) write(p producer, topic string) {
	records := batch{records: plainRecords(2), idempotent: true, producerID: p.id, producerEpoch: p.epoch, attributes: transactionalBit}
	req := produceRequest(9, topic, 0, records.bytes())
	req.TransactionID = &p.transactionalID
	retried(s, req, func(r *kmsg.ProduceResponse) int16 { return r.Topics[0].Partitions[0].ErrorCode })
}

// transact writes one transaction and waits until its marker is there.
func (s *side) transact(c *Case, topic string, commit bool) producer {
	p := s.openTransaction(c, topic)
	retried(s, endRequest(3, p, commit), func(r *kmsg.EndTxnResponse) int16 { return r.ErrorCode })
	s.settled(p)
	return p
}

// settled waits for the end of a transaction that was asked to end.
func (s *side) settled(p producer) {
	for range 500 {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{p.transactionalID}
		switch must[*kmsg.DescribeTransactionsResponse](s, req).TransactionStates[0].State {
		case "CompleteCommit", "CompleteAbort", "Empty":
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	panic(caseFault{fmt.Errorf("%s: the transaction of %s does not end", s.kind, p.transactionalID)})
}

func transactionCases(b *book) {
	initCases(b)
	addCases(b)
	endCases(b)
	describeTransactionCases(b)
	markerCases(b)
}

func initCases(b *book) {
	asked := func(change func(*Case, *side, *kmsg.InitProducerIDRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = str(s.name(c, "x")), 60000, -1, -1
			s.coordinator(1, *req.TransactionalID)
			change(c, s, req)
			return s.try(s.at(req))
		}
	}
	type request = *kmsg.InitProducerIDRequest
	b.good(kmsg.InitProducerID, "idempotent", asked(func(_ *Case, _ *side, r request) { r.TransactionalID = nil }))
	b.good(kmsg.InitProducerID, "transactional", asked(func(*Case, *side, request) {}))
	b.good(kmsg.InitProducerID, "a second time", asked(func(_ *Case, s *side, r request) { s.namedProducer(*r.TransactionalID) }))
	b.good(kmsg.InitProducerID, "with its id and epoch", asked(func(_ *Case, s *side, r request) {
		p := s.namedProducer(*r.TransactionalID)
		r.ProducerID, r.ProducerEpoch = p.id, p.epoch
	})).from(3)
	b.good(kmsg.InitProducerID, "with an id that is new to the coordinator", asked(func(_ *Case, s *side, r request) {
		r.ProducerID, r.ProducerEpoch = 0, 0
	})).from(3)
	b.bad(kmsg.InitProducerID, "an empty transactional id", asked(func(_ *Case, _ *side, r request) { r.TransactionalID = str("") }))
	b.bad(kmsg.InitProducerID, "too long a time-out", asked(func(_ *Case, _ *side, r request) { r.TransactionTimeoutMillis = 1 << 30 }))
	b.bad(kmsg.InitProducerID, "no time-out", asked(func(_ *Case, _ *side, r request) { r.TransactionTimeoutMillis = 0 }))
	b.bad(kmsg.InitProducerID, "a fenced epoch", asked(func(_ *Case, s *side, r request) {
		p := s.namedProducer(*r.TransactionalID)
		s.namedProducer(*r.TransactionalID)
		s.namedProducer(*r.TransactionalID)
		r.ProducerID, r.ProducerEpoch = p.id, p.epoch
	})).from(3)
	b.bad(kmsg.InitProducerID, "an epoch without an id", asked(func(_ *Case, _ *side, r request) { r.ProducerEpoch = 4 })).from(3)
	b.bad(kmsg.InitProducerID, "while a transaction is open", asked(func(c *Case, s *side, r request) {
		p := s.namedProducer(*r.TransactionalID)
		topic := s.topic(c, 1)
		s.addPartition(p, topic)
		s.write(p, topic)
	}))
}

func addCases(b *book) {
	added := func(change func(*Case, *side, *producer), partition int32, verify bool) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			p, topic := s.transactionalProducer(c), s.topic(c, 1)
			if change != nil {
				change(c, s, &p)
			}
			return s.try(addRequest(s.version, p, topic, partition, verify))
		}
	}
	b.good(kmsg.AddPartitionsToTxn, "one partition", added(nil, 0, false))
	b.good(kmsg.AddPartitionsToTxn, "verify one that is there", added(func(c *Case, s *side, p *producer) {
		s.addPartition(*p, s.name(c, "t"))
	}, 0, true)).from(4)
	b.bad(kmsg.AddPartitionsToTxn, "verify one that is not there", added(nil, 0, true)).from(4)
	b.bad(kmsg.AddPartitionsToTxn, "an unknown partition", added(nil, 9, false))
	b.bad(kmsg.AddPartitionsToTxn, "another producer", added(func(_ *Case, _ *side, p *producer) { p.id += 1000 }, 0, false))
	b.bad(kmsg.AddPartitionsToTxn, "an old epoch", added(func(_ *Case, _ *side, p *producer) { p.epoch-- }, 0, false))
	b.bad(kmsg.AddPartitionsToTxn, "a newer epoch", added(func(_ *Case, _ *side, p *producer) { p.epoch += 3 }, 0, false))
	b.bad(kmsg.AddPartitionsToTxn, "an unknown transactional id", added(func(_ *Case, s *side, p *producer) {
		p.transactionalID += "-none"
		s.coordinator(1, p.transactionalID)
	}, 0, false))

	offsets := func(change func(*side, *kmsg.AddOffsetsToTxnRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			p := s.transactionalProducer(c)
			req := kmsg.NewPtrAddOffsetsToTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.transactionalID, p.id, p.epoch, s.group(c)
			change(s, req)
			return s.try(s.at(req))
		}
	}
	b.good(kmsg.AddOffsetsToTxn, "a group", offsets(func(*side, *kmsg.AddOffsetsToTxnRequest) {}))
	b.bad(kmsg.AddOffsetsToTxn, "another producer", offsets(func(_ *side, r *kmsg.AddOffsetsToTxnRequest) { r.ProducerID += 1000 }))
	b.bad(kmsg.AddOffsetsToTxn, "an old epoch", offsets(func(_ *side, r *kmsg.AddOffsetsToTxnRequest) { r.ProducerEpoch-- }))
	b.bad(kmsg.AddOffsetsToTxn, "an empty transactional id", offsets(func(_ *side, r *kmsg.AddOffsetsToTxnRequest) { r.TransactionalID = "" }))

	committed := func(prepare func(*Case, *side, *producer, string), change func(*kmsg.TxnOffsetCommitRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			p, group, topic := s.transactionalProducer(c), s.group(c), s.topic(c, 1)
			prepare(c, s, &p, group)
			req := txnCommitRequest(s.version, p, group, topic)
			req.Topics[0].TopicID = s.ids[topic]
			if change != nil {
				change(req)
			}
			return s.try(req)
		}
	}
	add := func(_ *Case, s *side, p *producer, group string) { s.addOffsets(*p, group) }
	b.good(kmsg.TxnOffsetCommit, "after AddOffsetsToTxn", committed(add, nil))
	b.good(kmsg.TxnOffsetCommit, "without AddOffsetsToTxn", committed(func(*Case, *side, *producer, string) {}, nil)).from(5)
	b.bad(kmsg.TxnOffsetCommit, "without AddOffsetsToTxn, v4", committed(func(*Case, *side, *producer, string) {}, nil)).to(4)
	b.bad(kmsg.TxnOffsetCommit, "an old epoch", committed(func(c *Case, s *side, p *producer, group string) {
		s.addOffsets(*p, group)
		p.epoch--
	}, nil))
	b.bad(kmsg.TxnOffsetCommit, "an unknown partition", committed(add, func(r *kmsg.TxnOffsetCommitRequest) { r.Topics[0].Partitions[0].Partition = 9 }))
	b.bad(kmsg.TxnOffsetCommit, "an unknown member", committed(add, func(r *kmsg.TxnOffsetCommitRequest) { r.MemberID, r.Generation = "nobody", 4 })).from(3)
}

func endCases(b *book) {
	ended := func(open bool, commit bool, change func(*side, *producer)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			var p producer
			if open {
				p = s.openTransaction(c, s.topic(c, 1))
			} else {
				p = s.transactionalProducer(c)
			}
			if change != nil {
				change(s, &p)
			}
			return s.try(endRequest(s.version, p, commit))
		}
	}
	b.good(kmsg.EndTxn, "commit", ended(true, true, nil)).masks("ProducerEpoch")
	b.good(kmsg.EndTxn, "abort", ended(true, false, nil)).masks("ProducerEpoch")
	b.good(kmsg.EndTxn, "commit again", ended(true, true, func(s *side, p *producer) {
		retried(s, endRequest(3, *p, true), func(r *kmsg.EndTxnResponse) int16 { return r.ErrorCode })
		s.settled(*p)
	})).to(4)
	b.bad(kmsg.EndTxn, "abort after commit", ended(true, false, func(s *side, p *producer) {
		retried(s, endRequest(3, *p, true), func(r *kmsg.EndTxnResponse) int16 { return r.ErrorCode })
		s.settled(*p)
	})).free("a retry is an error before v5 only")
	b.bad(kmsg.EndTxn, "nothing to end", ended(false, true, nil))
	b.bad(kmsg.EndTxn, "an old epoch", ended(true, true, func(_ *side, p *producer) { p.epoch-- }))
	b.bad(kmsg.EndTxn, "a newer epoch", ended(true, true, func(_ *side, p *producer) { p.epoch += 3 }))
	b.bad(kmsg.EndTxn, "another producer", ended(true, true, func(_ *side, p *producer) { p.id += 1000 }))
}

func describeTransactionCases(b *book) {
	described := func(good bool, name string, id func(*Case, *side) string) {
		b.add(kmsg.DescribeTransactions, name, good, func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrDescribeTransactionsRequest()
			req.TransactionalIDs = []string{id(c, s)}
			return s.try(s.at(req))
		})
	}
	described(true, "an open one", func(c *Case, s *side) string { return s.openTransaction(c, s.topic(c, 1)).transactionalID })
	described(true, "a committed one", func(c *Case, s *side) string { return s.transact(c, s.topic(c, 1), true).transactionalID })
	described(true, "an aborted one", func(c *Case, s *side) string { return s.transact(c, s.topic(c, 1), false).transactionalID })
	described(true, "an empty one", func(c *Case, s *side) string { return s.transactionalProducer(c).transactionalID })
	described(false, "an unknown one", func(c *Case, s *side) string {
		s.coordinator(1, s.name(c, "none"))
		return s.name(c, "none")
	})

	listed := func(change func(*Case, *side, *kmsg.ListTransactionsRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			p := s.openTransaction(c, s.topic(c, 1))
			req := kmsg.NewPtrListTransactionsRequest()
			req.ProducerIDFilters, req.DurationFilterMillis = []int64{p.id}, -1
			change(c, s, req)
			return s.try(s.at(req))
		}
	}
	b.good(kmsg.ListTransactions, "by producer id", listed(func(*Case, *side, *kmsg.ListTransactionsRequest) {}))
	b.good(kmsg.ListTransactions, "by state", listed(func(_ *Case, _ *side, r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"CompleteAbort"} }))
	b.good(kmsg.ListTransactions, "an unknown state", listed(func(_ *Case, _ *side, r *kmsg.ListTransactionsRequest) {
		r.StateFilters = []string{"Nowhere"}
	}))
	b.good(kmsg.ListTransactions, "by duration", listed(func(_ *Case, _ *side, r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 1 << 40 })).from(1)
	b.good(kmsg.ListTransactions, "by pattern", listed(func(_ *Case, _ *side, r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = str("x-.*") })).from(2)
	b.bad(kmsg.ListTransactions, "a bad pattern", listed(func(_ *Case, _ *side, r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = str("[") })).from(2)

	producers := func(good bool, name string, partition int32, prepare func(*Case, *side, string)) {
		b.add(kmsg.DescribeProducers, name, good, func(c *Case, s *side) (kmsg.Response, error) {
			topic := s.topic(c, 1)
			prepare(c, s, topic)
			req := kmsg.NewPtrDescribeProducersRequest()
			req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
			return s.try(s.at(req))
		})
	}
	nothing := func(*Case, *side, string) {}
	producers(true, "none", 0, nothing)
	producers(true, "idempotent", 0, func(_ *Case, s *side, topic string) {
		s.produce(topic, 0, batch{records: plainRecords(2), idempotent: true, producerID: s.producerID()}.bytes())
	})
	producers(true, "an open transaction", 0, func(c *Case, s *side, topic string) { s.openTransaction(c, topic) })
	producers(true, "an aborted transaction", 0, func(c *Case, s *side, topic string) { s.transact(c, topic, false) })
	producers(false, "an unknown partition", 9, nothing)
}

func markerCases(b *book) {
	marked := func(change func(*producer, *kmsg.WriteTxnMarkersRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			topic := s.topic(c, 1)
			p := s.openTransaction(c, topic)
			req := kmsg.NewPtrWriteTxnMarkersRequest()
			m := kmsg.NewWriteTxnMarkersRequestMarker()
			m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch = p.id, p.epoch, 0
			m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: []int32{0}}}
			req.Markers = append(req.Markers, m)
			change(&p, req)
			return s.try(s.at(req))
		}
	}
	type request = *kmsg.WriteTxnMarkersRequest
	b.good(kmsg.WriteTxnMarkers, "abort a hanging transaction", marked(func(*producer, request) {}))
	b.bad(kmsg.WriteTxnMarkers, "an old epoch", marked(func(_ *producer, r request) { r.Markers[0].ProducerEpoch-- }))
	b.bad(kmsg.WriteTxnMarkers, "no producer", marked(func(_ *producer, r request) { r.Markers[0].ProducerID = -1 }))
	b.bad(kmsg.WriteTxnMarkers, "no producer epoch", marked(func(_ *producer, r request) { r.Markers[0].ProducerEpoch = -1 }))
	b.bad(kmsg.WriteTxnMarkers, "an unknown partition", marked(func(_ *producer, r request) { r.Markers[0].Topics[0].Partitions[0] = 9 }))
}
