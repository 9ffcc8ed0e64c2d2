package storage

import "github.com/barnabas-mq/barnabas/storage/compact"

// Abort notes an aborted transaction of which something is left.
func (s *cleanedSink) Abort(t compact.AbortedTxn) error { return nil }

// aborted are the aborted transactions that touch [from, to).
func (r *cleaning) aborted(from, to int64) ([]compact.AbortedTxn, error) { return nil, nil }
