package txn

import "github.com/twmb/franz-go/pkg/kerr"

// initProducer gives a transactional id to a producer, which thereby fences
// whoever had it. A transaction that is under way is aborted first, and the
// producer told to ask again.
func (s *step) initProducer(r InitProducer) any {
	if err := checkInit(&s.cfg, r); err != nil {
		return producedError(err)
	}
	t := s.tx(r.TransactionalID)
	if t == nil {
		if r.NewID == noProducerID {
			return NeedProducerID{}
		}
		// What a producer brings along for an id that nobody knows is of no account.
		t = &Transaction{
			ProducerID: r.NewID, PrevProducerID: noProducerID, NextProducerID: noProducerID,
			Epoch: noEpoch, lastEpoch: noEpoch,
		}
	}
	known := r.ID != noProducerID
	switch {
	case t.State.prepared():
		return producedError(kerr.ConcurrentTransactions)
	case known && !t.knows(r):
		return producedError(kerr.ProducerFenced)
	case t.State == Ongoing:
		if s.fence(r.TransactionalID, t, r.NewID) {
			return producedError(kerr.ConcurrentTransactions)
		}
		return NeedProducerID{}
	}
	next, err := t.takenOver(r, s.nowMs())
	switch {
	case err != nil:
		return producedError(err)
	case next == nil:
		return NeedProducerID{}
	}
	s.set(r.TransactionalID, next)
	return Produced{ID: next.ProducerID, Epoch: next.Epoch}
}

// knows tells whether a producer's id is the one in force, or the one before whose
// epochs are used up: then it has not heard of the change.
func (t *Transaction) knows(r InitProducer) bool {
	return t.Epoch == noEpoch || r.ID == t.ProducerID || r.ID == t.PrevProducerID && r.Epoch >= lastUsableEpoch
}

// takenOver is the transaction with the epoch that the producer gets; nil where
// that takes a new producer id.
func (t *Transaction) takenOver(r InitProducer, nowMs int64) (*Transaction, *kerr.Error) {
	known := r.ID != noProducerID
	if t.exhausted() && (!known || r.Epoch == t.Epoch) {
		if r.NewID == noProducerID {
			return nil, nil
		}
		last := int16(noEpoch)
		if known {
			last = t.Epoch
		}
		return t.rotated(r.NewID, last, r.TimeoutMs, nowMs), nil
	}
	switch {
	case !known:
		return t.initialized(t.Epoch+1, noEpoch, r.TimeoutMs, nowMs), nil
	case t.Epoch == noEpoch || r.Epoch == t.Epoch:
		// It goes on after an error and nobody else has come.
		return t.initialized(t.Epoch+1, t.Epoch, r.TimeoutMs, nowMs), nil
	case r.Epoch == t.lastEpoch:
		// It asks once more what was answered already: another producer would have
		// cleared the last epoch.
		return t.initialized(t.Epoch, t.lastEpoch, r.TimeoutMs, nowMs), nil
	}
	return nil, kerr.ProducerFenced
}

// fence aborts an ongoing transaction without its client. It reports false, and
// has done nothing, where that takes a new producer id.
func (s *step) fence(id string, t *Transaction, newID int64) bool {
	if s.level >= epochBumpVersion && t.exhausted() {
		if newID == noProducerID {
			return false
		}
	} else {
		newID = noProducerID
	}
	s.set(id, t.fenced(s.level, newID, s.nowMs()))
	s.writeMarkers(id)
	return true
}
