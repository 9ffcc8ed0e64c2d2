package storage

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// makeTxn builds a transactional batch.
func makeTxn(timestampMs int64, name string, n int, p *batch.ProducerStamp) []byte {
	b := batch.NewBuilder(batch.BuilderOptions{Producer: p, Transactional: true})
	for i := range n {
		b.Add(timestampMs, []byte("key"), fmt.Appendf(nil, "%s/%d", name, i))
	}
	return b.Build()
}

func makeMarker(timestampMs, id int64, epoch int16, commit bool, coordinatorEpoch int32) []byte {
	return batch.NewMarker(batch.MarkerOptions{
		Marker:     batch.Marker{Commit: commit, CoordinatorEpoch: coordinatorEpoch},
		ProducerID: id, ProducerEpoch: epoch, TimestampMs: timestampMs,
	})
}

// appendTxn verifies and appends a transactional batch as a client does.
func appendTxn(l *Log, b []byte, leaderEpoch int32) (AppendResult, error) {
	v := batch.View(b)
	guard, err := l.StartVerification(Verification{ProducerID: v.ProducerID(), ProducerEpoch: v.ProducerEpoch(), BaseSequence: v.BaseSequence()}, false)
	if err != nil {
		return AppendResult{}, err
	}
	return l.Append(AppendRequest{Batches: b, LeaderEpoch: leaderEpoch, Guard: guard})
}

// txn is a transaction as the batches of a log tell it; marker is -1 while it is
// open.
type txn struct {
	id            int64
	first, marker int64
	commit        bool
}

// txnsOf walks over a log's batches.
func txnsOf(all []batch.View) (txns []txn) {
	open := map[int64]int{}
	for _, v := range all {
		switch i, isOpen := open[v.ProducerID()]; {
		case !v.IsTransactional():
		case !v.IsControl() && !isOpen:
			open[v.ProducerID()] = len(txns)
			txns = append(txns, txn{id: v.ProducerID(), first: v.BaseOffset(), marker: -1})
		case v.IsControl() && isOpen:
			m, _, _ := batch.ParseMarker(v)
			txns[i].marker, txns[i].commit = v.BaseOffset(), m.Commit
			delete(open, v.ProducerID())
		}
	}
	return txns
}

// checkTransactions holds what a log says about transactions against its batches.
// pending are the markers since the log was opened, which count only below the
// high watermark.
func checkTransactions(l *Log, pendingFrom int64) error {
	all, err := readAll(l)
	if err != nil {
		return err
	}
	txns := txnsOf(all)
	start, end, mark := l.LogStartOffset(), l.LogEndOffset(), l.HighWatermark()
	states, err := l.Producers()
	if err != nil {
		return err
	}
	// Of a transaction that began before the log's start the log may know more.
	hidden := map[int64]bool{}
	want := mark
	for _, t := range txns {
		if t.marker < 0 || t.marker >= mark && t.marker >= pendingFrom {
			want = min(want, t.first)
		}
	}
	for _, p := range states {
		if p.CurrentTxnFirstOffset >= 0 && p.CurrentTxnFirstOffset <= start {
			hidden[p.ProducerID] = true
			want = min(want, start)
		}
	}
	for _, t := range txns {
		open := slices.ContainsFunc(states, func(p ProducerState) bool {
			return p.ProducerID == t.id && (p.CurrentTxnFirstOffset == t.first || hidden[t.id])
		})
		if t.marker < 0 && !open {
			return fmt.Errorf("the transaction of producer %d at %d is not known as open: %+v", t.id, t.first, states)
		}
	}
	// A marker above the watermark may end a transaction that began before the start.
	waits := slices.ContainsFunc(all, func(v batch.View) bool { return v.IsControl() && v.BaseOffset() >= max(mark, pendingFrom) })
	if got := l.LastStableOffset(mark); got != max(want, min(start, mark)) && (got != start || !waits) {
		return fmt.Errorf("the last stable offset is %d, not %d; the log is [%d, %d), %d committed", got, want, start, end, mark)
	}
	if err := checkIndexes(l, txns); err != nil {
		return err
	}
	return checkCommitted(l, all, txns)
}

// checkIndexes compares the aborted transactions that the indexes have.
func checkIndexes(l *Log, txns []txn) error {
	var have []AbortedTxn
	segments, start := l.list(), l.LogStartOffset()
	for i, s := range segments {
		list, _, err := s.Aborted(nil, 0, 1<<62)
		if err != nil {
			return err
		}
		next := int64(1 << 62)
		if i+1 < len(segments) {
			next = segments[i+1].BaseOffset()
		}
		for _, a := range list {
			if a.LastOffset < s.BaseOffset() || a.LastOffset >= next {
				return fmt.Errorf("the index of segment %d has %+v", s.BaseOffset(), a)
			}
		}
		have = append(have, list...)
	}
	for _, t := range txns {
		i := slices.IndexFunc(have, func(a AbortedTxn) bool { return a.LastOffset == t.marker })
		switch {
		case t.marker < 0 || t.commit:
			if i >= 0 {
				return fmt.Errorf("%+v is listed as aborted", t)
			}
			continue
		case i < 0:
			return fmt.Errorf("the aborted %+v is not in the index: %+v", t, have)
		}
		a := have[i]
		if a.ProducerID != t.id || a.FirstOffset != t.first && (a.FirstOffset > t.first || a.FirstOffset >= start && t.first > start) {
			return fmt.Errorf("the index has %+v for %+v", a, t)
		}
		// Whatever ends later must begin at its last stable offset or behind.
		for _, later := range txns {
			if later.id != t.id && later.first < t.marker && (later.marker < 0 || later.marker > t.marker) && a.LastStableOffset > later.first {
				return fmt.Errorf("%+v is called stable up to %d, past the transaction at %d", t, a.LastStableOffset, later.first)
			}
		}
	}
	for _, a := range have {
		if a.FirstOffset > start && a.LastOffset >= start && !slices.ContainsFunc(txns, func(t txn) bool { return t.marker == a.LastOffset }) {
			return fmt.Errorf("the index has %+v, the log does not: %+v", a, txns)
		}
	}
	if !slices.IsSortedFunc(have, func(a, b AbortedTxn) int { return cmp.Compare(a.LastOffset, b.LastOffset) }) {
		return fmt.Errorf("the indexes are not in order: %+v", have)
	}
	return nil
}

// checkCommitted reads as a read_committed consumer does, from every offset.
func checkCommitted(l *Log, all []batch.View, txns []txn) error {
	stable := l.LastStableOffset(l.HighWatermark())
	var want []int64
	for _, v := range all {
		i := slices.IndexFunc(txns, func(t txn) bool {
			return v.IsTransactional() && t.id == v.ProducerID() && t.first <= v.BaseOffset() && (t.marker < 0 || v.BaseOffset() <= t.marker)
		})
		if v.NextOffset() <= stable && !v.IsControl() && (i < 0 || txns[i].commit || txns[i].marker < 0) {
			want = append(want, v.BaseOffset())
		}
	}
	for n, v := range all {
		if n%3 != 0 || v.BaseOffset() < l.LogStartOffset() {
			continue
		}
		got, err := readCommitted(l, v.BaseOffset(), stable, 60+n%5*100)
		if err != nil {
			return err
		}
		i, _ := slices.BinarySearch(want, v.BaseOffset())
		if !slices.Equal(got, want[i:]) {
			return fmt.Errorf("read_committed from %d to %d sees the batches %v, not %v", v.BaseOffset(), stable, got, want[i:])
		}
	}
	return nil
}

// readCommitted is a consumer with isolation.level=read_committed: the base offsets
// of the batches that it shows.
func readCommitted(l *Log, from, stable int64, maxBytes int) (shown []int64, err error) {
	for offset := from; offset < stable; {
		r, err := l.Read(ReadRequest{Offset: offset, Limit: stable, MaxBytes: maxBytes, AtLeastOne: true, Aborted: true})
		if err != nil {
			return nil, err
		}
		if len(r.Data) == 0 {
			return shown, nil // the high watermark may be inside a batch after a crash
		}
		queue := slices.SortedFunc(slices.Values(r.Aborted), func(a, b AbortedTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
		aborted := map[int64]bool{}
		for rest := r.Data; len(rest) > 0; {
			v, after, err := batch.Next(rest)
			if err != nil {
				return nil, err
			}
			for len(queue) > 0 && queue[0].FirstOffset <= v.LastOffset() {
				aborted[queue[0].ProducerID] = true
				queue = queue[1:]
			}
			switch {
			case v.IsControl():
				delete(aborted, v.ProducerID())
			case !v.IsTransactional() || !aborted[v.ProducerID()]:
				shown = append(shown, v.BaseOffset())
			}
			offset, rest = v.NextOffset(), after
		}
	}
	return shown, nil
}
