package storage

import (
	"github.com/barnabas-mq/barnabas/storage/compact"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// Abort notes an aborted transaction of which something is left.
func (s *cleanedSink) Abort(t compact.AbortedTxn) error {
	err := s.into.AddAborted(segment.AbortedTxn(t))
	s.failed = s.failed || err != nil
	return err
}

// aborted are the aborted transactions that touch [from, to).
func (r *cleaning) aborted(from, to int64) (list []compact.AbortedTxn, err error) {
	segments := r.l.list()
	var found []AbortedTxn
	for _, s := range segments[max(floorSegment(segments, from), 0):] {
		var done bool
		if found, done, err = s.Aborted(found, from, to); done || err != nil {
			break
		}
	}
	for _, t := range found {
		list = append(list, compact.AbortedTxn(t))
	}
	return list, err
}
