package txn

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/machine"
)

// maxWaiters bounds the requests that wait for a transaction to be complete; the
// others are told to ask again.
const maxWaiters = 10_000

// waiter is a request that waits for the transaction before to be complete.
type waiter struct {
	call     uint64
	request  AddPartitions
	deadline time.Time
}

func (s *step) addPartitions(call uint64, r AddPartitions) {
	err := s.add(r)
	if err == kerr.ConcurrentTransactions && s.wait(call, r) {
		return
	}
	s.answer(call, Outcome{err})
}

func (s *step) add(r AddPartitions) *kerr.Error {
	if r.TransactionalID == "" {
		return kerr.InvalidRequest
	}
	t := s.tx(r.TransactionalID)
	switch {
	case t == nil:
		return kerr.InvalidProducerIDMapping
	case t.State.prepared():
		return kerr.ConcurrentTransactions
	}
	if err := t.ofProducer(r.Producer); err != nil {
		return err
	}
	if t.State != Ongoing || !t.has(r.Partitions) {
		s.set(r.TransactionalID, t.added(r.Partitions, r.ClientVersion, s.nowMs()))
	}
	return nil
}

func (s *step) verifyPartitions(r VerifyPartitions) Verified {
	if r.TransactionalID == "" {
		return Verified{Err: kerr.InvalidRequest}
	}
	t := s.tx(r.TransactionalID)
	if t == nil {
		return Verified{Err: kerr.InvalidProducerIDMapping}
	}
	if err := t.ofProducer(r.Producer); err != nil {
		return Verified{Err: err}
	}
	if t.State.prepared() {
		return Verified{Err: kerr.ConcurrentTransactions}
	}
	var v Verified
	for i, tp := range r.Partitions {
		if !t.has(r.Partitions[i : i+1]) {
			v.Missing = append(v.Missing, tp)
		}
	}
	return v
}

// wait parks a request until the transaction of its id is complete, for a little
// while only: a producer that has just ended a transaction begins the next one at
// once, and to send it away would cost it its back-off.
func (s *step) wait(call uint64, r AddPartitions) bool {
	id := r.TransactionalID
	t := s.tx(id)
	producerID, epoch := t.successor()
	if !r.Patient || s.cfg.AddRetryMaxMs <= 0 || s.soft.waiters >= maxWaiters || r.ID != producerID || r.Epoch != epoch {
		return false
	}
	deadline := s.now.Add(time.Duration(s.cfg.AddRetryMaxMs) * time.Millisecond)
	if len(s.soft.waiting[id]) == 0 {
		s.timer(waitKey(id), deadline)
	}
	s.soft.waiting[id] = append(s.soft.waiting[id], waiter{call: call, request: r, deadline: deadline})
	s.soft.waiters++
	return true
}

// wake answers who has waited for a transaction that is complete now.
func (s *step) wake(id string) {
	waiting := s.soft.waiting[id]
	if waiting == nil {
		return
	}
	delete(s.soft.waiting, id)
	s.soft.waiters -= len(waiting)
	s.cancel(waitKey(id))
	for _, w := range waiting {
		s.answer(w.call, Outcome{s.add(w.request)})
	}
}

// waitedLongEnough sends those away whose patience has ended.
func (s *step) waitedLongEnough(id string) {
	waiting := s.soft.waiting[id]
	n := 0
	for n < len(waiting) && !waiting[n].deadline.After(s.now) {
		s.answer(waiting[n].call, Outcome{kerr.ConcurrentTransactions})
		n++
	}
	s.soft.waiters -= n
	if n == len(waiting) {
		delete(s.soft.waiting, id)
		return
	}
	s.soft.waiting[id] = waiting[n:]
	s.timer(waitKey(id), waiting[n].deadline)
}

func (s *step) timer(key string, at time.Time) {
	s.out.Timers = append(s.out.Timers, machine.Timer{Key: key, At: at})
}

func (s *step) cancel(key string) { s.out.Timers = append(s.out.Timers, machine.Timer{Key: key}) }
