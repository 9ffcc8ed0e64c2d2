package storage

import "github.com/barnabas-mq/barnabas/storage/compact"

// Abort notes an aborted transaction of which something is left.
func (s *cleanedSink) Abort(t compact.AbortedTxn) error { return nil }

// aborted are the aborted transactions that touch [from, to).
func (r *cleaning) aborted(from, to int64) ([]compact.AbortedTxn, error) { return nil, nil }

// stableOffset is the first offset that must not be cleaned.
func (l *Log) stableOffset() int64 {
	stable := l.highWatermark.Load()
	for _, e := range l.producers.Entries() {
		if e.CurrentTxnFirstOffset >= 0 {
			stable = min(stable, e.CurrentTxnFirstOffset)
		}
	}
	return stable
}
