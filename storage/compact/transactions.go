package compact

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// AbortedTxn is a transaction of the log that was aborted.
type AbortedTxn struct {
	ProducerID int64
	// FirstOffset is that of its first record, LastOffset that of its marker.
	FirstOffset, LastOffset int64
	LastStableOffset        int64
}

// Transactions follows the transactions of a log while its batches are read in
// order: which batches are of an aborted one, and which markers end a transaction
// of which nothing is left.
type Transactions struct {
	// upcoming are aborted transactions that begin further on, by first offset.
	upcoming []AbortedTxn
	aborted  map[int64]*openAborted
	// committed are the producers of which transactional data was seen since
	// their last marker.
	committed map[int64]struct{}
}

type openAborted struct {
	txn AbortedTxn
	// seen says that a batch of it is still in the log.
	seen bool
}

// NewTransactions knows of none yet.
func NewTransactions() *Transactions {
	return &Transactions{aborted: map[int64]*openAborted{}, committed: map[int64]struct{}{}}
}

func (t *Transactions) clone() *Transactions {
	aborted := make(map[int64]*openAborted, len(t.aborted))
	for id, open := range t.aborted {
		copied := *open
		aborted[id] = &copied
	}
	return &Transactions{upcoming: slices.Clone(t.upcoming), aborted: aborted, committed: maps.Clone(t.committed)}
}

// Add announces aborted transactions that touch the batches that are read next.
// One that goes on from before may be announced again.
func (t *Transactions) Add(list []AbortedTxn) {
	t.upcoming = append(t.upcoming, list...)
	slices.SortStableFunc(t.upcoming, func(a, b AbortedTxn) int {
		switch {
		case a.FirstOffset < b.FirstOffset:
			return -1
		case a.FirstOffset > b.FirstOffset:
			return 1
		}
		return 0
	})
}

// begin opens the aborted transactions that begin at or before an offset.
func (t *Transactions) begin(offset int64) {
	n := 0
	for ; n < len(t.upcoming) && t.upcoming[n].FirstOffset <= offset; n++ {
		txn := t.upcoming[n]
		if t.aborted[txn.ProducerID] == nil {
			t.aborted[txn.ProducerID] = &openAborted{txn: txn}
		}
	}
	t.upcoming = t.upcoming[n:]
}

// data takes a batch of records; aborted says that none of them counts.
func (t *Transactions) data(v batch.View) (aborted bool) {
	t.begin(v.LastOffset())
	if !v.IsTransactional() {
		return false
	}
	if open := t.aborted[v.ProducerID()]; open != nil {
		open.seen = true
		return true
	}
	t.committed[v.ProducerID()] = struct{}{}
	return false
}

// The types of a control record.
const (
	markerAbort  = 0
	markerCommit = 1
)

// marker takes a control batch. empty says that nothing of its transaction is
// left before it. An aborted transaction of which something is left is returned:
// it belongs into the index of the cleaned segment.
func (t *Transactions) marker(v batch.View) (empty bool, left *AbortedTxn, err error) {
	t.begin(v.LastOffset())
	if v.NumRecords() == 0 {
		return true, nil, nil // the marker itself was cleaned away before
	}
	kind := int16(-1)
	err = batch.Records(v, 0, func(r batch.Record) error {
		if len(r.Key) >= 4 {
			kind = int16(binary.BigEndian.Uint16(r.Key[2:]))
		}
		return batch.ErrStop
	})
	if err != nil {
		return false, nil, err
	}
	switch kind {
	case markerAbort:
		open := t.aborted[v.ProducerID()]
		delete(t.aborted, v.ProducerID())
		if open != nil && open.seen {
			return false, &open.txn, nil
		}
		return true, nil, nil
	case markerCommit:
		_, seen := t.committed[v.ProducerID()]
		delete(t.committed, v.ProducerID())
		return !seen, nil, nil
	}
	return false, nil, nil
}
