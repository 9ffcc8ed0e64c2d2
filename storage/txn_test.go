package storage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage/segment"
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

// fillTxns writes aborted and committed transactions over several segments.
func fillTxns(t *testing.T, l *Log) {
	t.Helper()
	sequence := map[int64]int32{}
	for i := range 60 {
		id := int64(i%3 + 1)
		b := makeTxn(int64(1000+i), fmt.Sprint("t", i), 2, stamp(id, 0, sequence[id]))
		if _, err := appendTxn(l, b, 0); err != nil {
			t.Fatal(err)
		}
		sequence[id] += 2
		if i%4 == 3 {
			if _, err := l.Append(AppendRequest{Batches: makeMarker(int64(1000+i), id, 0, i%8 == 7, 0), Internal: true}); err != nil {
				t.Fatal(err)
			}
		}
		l.SetHighWatermark(l.LogEndOffset())
	}
}

// TestDamagedTxnIndex damages a .txnindex between a clean stop and a start: it is
// filled anew from the log, at the start or when a reader meets the damage.
func TestDamagedTxnIndex(t *testing.T) {
	damages := map[string]func([]byte) []byte{
		"cut in an entry": func(b []byte) []byte { return b[:len(b)-10] },
		"zeros":           func(b []byte) []byte { return make([]byte, len(b)) },
		"a flipped byte":  func(b []byte) []byte { b[1] ^= 4; return b },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.mustOpen()
			l := w.log()
			fillTxns(t, l)
			w.settle()
			segments := l.list()
			hurt := slices.IndexFunc(segments, func(s *segment.Segment) bool { return s.HasAborted() })
			file := l.path(segment.FileName(segments[hurt].BaseOffset(), segment.TxnIndexSuffix))
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			b, err := readFile(w.fs, file)
			if err != nil {
				t.Fatal(err)
			}
			if err := writeFile(w.fs, file, damage(b)); err != nil {
				t.Fatal(err)
			}
			w.mustOpen()
			defer w.abandon()
			l = w.log()
			// The reader first: it must not depend on who looked before.
			all, err := readAll(l)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkCommitted(l, all, txnsOf(all)); err != nil {
				t.Fatal(err)
			}
			if err := checkTransactions(l, l.LogEndOffset()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestLastStableOffset moves the high watermark over transactions that overlap.
func TestLastStableOffset(t *testing.T) {
	w := newWorld(t, 1)
	w.mustOpen()
	defer w.abandon()
	l := w.log()
	add := func(b []byte) {
		t.Helper()
		v := batch.View(b)
		var err error
		if v.IsControl() {
			_, err = l.Append(AppendRequest{Batches: b, Internal: true})
		} else {
			_, err = appendTxn(l, b, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add(makeTxn(1, "a", 1, stamp(1, 0, 0))) // 0
	add(makeTxn(1, "b", 1, stamp(2, 0, 0))) // 1
	add(makeMarker(1, 1, 0, true, 0))       // 2
	add(makeTxn(1, "c", 1, stamp(3, 0, 0))) // 3
	add(makeMarker(1, 2, 0, false, 0))      // 4
	for mark, want := range []int64{0, 0, 0, 1, 1, 3} {
		if got := l.LastStableOffset(int64(mark)); got != want {
			t.Errorf("at the high watermark %d the last stable offset is %d, not %d", mark, got, want)
		}
	}
	l.SetHighWatermark(5)
	if l.stable.waiting.Load() != 0 {
		t.Error("decided transactions below the high watermark are still remembered")
	}
	if start, err := l.DeleteRecordsTo(4); err != nil || start != 4 {
		t.Fatal(start, err)
	}
	if got := l.LastStableOffset(5); got != 4 {
		t.Errorf("once the first record of the open transaction is deleted, the last stable offset is %d", got)
	}
}

// TestLateTransactions counts a partition while its oldest open transaction has had
// no record for the longest time-out and Kafka's five minutes, after a start too.
func TestLateTransactions(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.TransactionMaxTimeoutMs = 60_000
	w.cfg.RetentionCheck = -1 // nothing expires
	w.mustOpen()
	begin := func(id int64) {
		t.Helper()
		if _, err := appendTxn(w.log(), makeTxn(w.clock.Now().UnixMilli(), "a", 1, stamp(id, 0, 0)), 0); err != nil {
			t.Fatal(err)
		}
	}
	late := func(what string, want int) {
		t.Helper()
		if got := w.store.lateTransactions(); got != want {
			t.Errorf("%s: %d partitions with late transactions, want %d", what, got, want)
		}
	}
	late("without transactions", 0)
	begin(1)
	w.clock.Advance(6 * time.Minute)
	late("at the end of its time", 0)
	begin(2)
	w.clock.Advance(time.Millisecond)
	late("after it", 1)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	if err := w.log().ensure(false); err != nil {
		t.Fatal(err)
	}
	late("after a start", 1)
	if _, err := w.log().Append(AppendRequest{Batches: makeMarker(w.clock.Now().UnixMilli(), 1, 0, false, 0), Internal: true}); err != nil {
		t.Fatal(err)
	}
	late("with only the second open", 0)
	w.clock.Advance(7 * time.Minute)
	late("after the second's time", 1)
	w.abandon()
}

// TestStartVerificationDoesNotWait is for a caller on an event loop.
func TestStartVerificationDoesNotWait(t *testing.T) {
	w := newWorld(t, 1)
	w.mustOpen()
	defer w.abandon()
	l := w.log()
	l.mu.Lock()
	_, err := l.StartVerification(Verification{ProducerID: 1}, true)
	l.mu.Unlock()
	if !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	cfg := testLogConfig()
	cfg.VerifyTransactions = true
	l.Reconfigure(cfg)
	b := makeTxn(1, "a", 1, stamp(1, 0, 0))
	if _, err := l.Append(AppendRequest{Batches: b}); protocol.Code(err) != kerr.InvalidTxnState.Code {
		t.Fatalf("an append that was not verified: %v", err)
	}
	if _, err := appendTxn(l, b, 0); err != nil {
		t.Fatal(err)
	}
	if guard, err := l.StartVerification(Verification{ProducerID: 1, BaseSequence: 1}, true); err != nil || guard != 0 {
		t.Fatalf("in an open transaction: guard %d, %v", guard, err)
	}
}
