package txn

// describe tells of a transaction whose markers are being written only the
// partitions that wait for theirs.
func (s *step) describe(id string) Described {
	t := s.tx(id)
	if c := s.soft.completing[id]; c != nil {
		left := *t
		left.Partitions = c.left
		t = &left
	}
	return Described{t}
}

func (s *step) list(r ListTxns) []Listed {
	var out []Listed
	for _, id := range sortedIDs(s.transactions) {
		t := s.tx(id)
		switch {
		case !passes(r.ProducerIDs, t.ProducerID):
		case !passes(r.States, t.State):
		case r.OlderThanMs >= 0 && s.nowMs()-t.StartMs <= r.OlderThanMs:
		case r.Pattern != nil && !r.Pattern.MatchString(id):
		default:
			out = append(out, Listed{TransactionalID: id, ProducerID: t.ProducerID, State: t.State})
		}
	}
	return out
}

// passes tells whether a filter lets a value through; an empty one lets all
// through.
func passes[T comparable](filter map[T]struct{}, value T) bool {
	_, ok := filter[value]
	return ok || len(filter) == 0
}
