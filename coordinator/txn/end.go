package txn

import "github.com/twmb/franz-go/pkg/kerr"

// endTxn commits or aborts a transaction at its client's word. The client is
// answered when the verdict stands, before the markers are written.
func (s *step) endTxn(r EndTxn) any {
	if r.TransactionalID == "" {
		return producedError(kerr.InvalidRequest)
	}
	t := s.tx(r.TransactionalID)
	if t == nil {
		return producedError(kerr.InvalidProducerIDMapping)
	}
	if r.ClientVersion < epochBumpVersion {
		return s.endWithSameEpoch(t, r)
	}
	return s.endWithBump(t, r)
}

// endWithSameEpoch is the end for clients before transaction version 2. A repeat
// cannot be told from the first: whoever asks for what has happened is told so.
func (s *step) endWithSameEpoch(t *Transaction, r EndTxn) Produced {
	err := t.ofProducer(r.Producer)
	switch {
	case err != nil:
	case t.State.prepared():
		err = kerr.ConcurrentTransactions
	case t.State == Ongoing:
		s.end(t, r, noProducerID)
	case t.State == CompleteCommit && r.Commit, t.State == CompleteAbort && !r.Commit:
	default:
		err = kerr.InvalidTxnState
	}
	return producedError(err)
}

// endWithBump is the end under transaction version 2 (KIP-890). Each end raises
// the epoch, so a request with the epoch before is a repeat of the last one, and
// one with the epoch in force is new: an abort of nothing raises the epoch as
// well.
func (s *step) endWithBump(t *Transaction, r EndTxn) any {
	if t.State.prepared() {
		return producedError(kerr.ConcurrentTransactions)
	}
	// The repeat of an end that used up the last epoch finds a new producer id.
	repeatOfLast := r.ID == t.PrevProducerID && r.Epoch == lastUsableEpoch && t.Epoch == 0
	repeat := repeatOfLast || t.Epoch == r.Epoch+1
	switch {
	case t.ProducerID != r.ID && !repeatOfLast:
		return producedError(kerr.InvalidProducerIDMapping)
	case t.Epoch != r.Epoch && !(t.State.completed() && repeat):
		return producedError(kerr.ProducerFenced)
	case repeat && r.Commit == (t.State == CompleteCommit):
		return Produced{ID: t.ProducerID, Epoch: t.Epoch}
	case repeat, r.Commit && t.State != Ongoing:
		return producedError(kerr.InvalidTxnState)
	}
	newID := int64(noProducerID)
	if t.exhausted() {
		if newID = r.NewID; newID == noProducerID {
			return NeedProducerID{}
		}
	}
	next := s.end(t, r, newID)
	id, epoch := next.successor()
	return Produced{ID: id, Epoch: epoch}
}

// end decides the verdict.
func (s *step) end(t *Transaction, r EndTxn, newID int64) *Transaction {
	version := r.ClientVersion
	if version < epochBumpVersion {
		version = 0
	}
	next := t.prepared(r.Commit, version, newID, s.nowMs())
	s.set(r.TransactionalID, next)
	s.writeMarkers(r.TransactionalID)
	return next
}
