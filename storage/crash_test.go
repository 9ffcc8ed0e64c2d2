package storage

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// workload is a fixed run over one log that touches everything that writes.
type workload struct {
	w *world
	m *model
	l *Log
	// fsync makes every append wait for a sync, as flush.messages=1 does.
	fsync    bool
	sequence map[int64]int32
	epoch    int32
	n        int
	failures int
}

func newWorkload(w *world, fsync bool) *workload {
	return &workload{w: w, m: &model{}, fsync: fsync, sequence: map[int64]int32{}}
}

// run does the whole of it; false once the machine has crashed.
func (r *workload) run() bool {
	if err := r.w.open(); err != nil {
		return false
	}
	l, err := r.w.store.OpenLog(testTopic, testID, testLogConfig())
	if err != nil {
		return false
	}
	r.l = l
	steps := []func(){
		r.appends(4), r.transactions(7), r.flush, r.appends(3), r.checkpoint, r.truncate(3), r.transactions(6), r.appends(4), r.deleteRecords,
		r.retention, r.appends(4), r.elect, r.transactions(9), r.truncate(12), r.flush, r.appends(3), r.restart,
		r.transactions(5), r.deleteRecords, r.flush, r.retention, r.otherTopic, r.appends(4), r.restart, r.transactions(2),
		r.expire, r.appends(1), r.expire, r.flush, r.restart, r.appends(1),
	}
	for _, step := range steps {
		step()
		r.w.settle()
		if r.crashed() {
			return false
		}
	}
	return true
}

func (r *workload) crashed() bool {
	_, err := r.w.fs.Stat("/data")
	return errors.Is(err, vfs.ErrCrashed)
}

func (r *workload) appends(count int) func() {
	return func() {
		for range count {
			r.append()
			r.w.settle()
		}
	}
}

func (r *workload) append() {
	r.n++
	id := int64(r.n%2 + 1)
	records := r.n%3 + 1
	b := makeBatch(r.w.clock.Now().UnixMilli(), fmt.Sprintf("batch-%d-%d", r.n, r.epoch), records, stamp(id, 0, r.sequence[id]))
	r.send(b, records, func() (AppendResult, error) {
		return r.l.Append(AppendRequest{Batches: b, LeaderEpoch: r.epoch})
	})
}

// transactions of two producers overlap; every third step is a marker, and most
// are aborts.
func (r *workload) transactions(count int) func() {
	return func() {
		for range count {
			r.n++
			id, now := int64(r.n%2+21), r.w.clock.Now().UnixMilli()
			if r.n%3 == 0 {
				b := makeMarker(now, id, 0, r.n%9 == 0, 1)
				r.send(b, 1, func() (AppendResult, error) {
					return r.l.Append(AppendRequest{Batches: b, LeaderEpoch: r.epoch, Internal: true})
				})
			} else {
				records := r.n%2 + 1
				b := makeTxn(now, fmt.Sprintf("txn-%d-%d", r.n, r.epoch), records, stamp(id, 0, r.sequence[id]))
				r.send(b, records, func() (AppendResult, error) { return appendTxn(r.l, b, r.epoch) })
			}
			r.w.settle()
		}
	}
}

func (r *workload) send(b []byte, records int, send func() (AppendResult, error)) {
	res, err := send()
	if err != nil {
		// It may be in the log all the same, at the offset it was given.
		r.failures++
		base := int64(batchBase(b))
		r.m.add(appended{base: base, next: base + int64(records), bytes: slices.Clone(b), maybe: true})
		return
	}
	if v := batch.View(b); !v.IsControl() {
		r.sequence[v.ProducerID()] += int32(records)
	}
	a := appended{base: res.FirstOffset, next: res.LastOffset + 1, bytes: slices.Clone(b), acked: true}
	r.m.add(a)
	r.l.SetHighWatermark(res.LastOffset + 1)
	if !r.fsync {
		return
	}
	i := len(r.m.batches) - 1
	r.l.WhenFlushed(a.next, func(err error) {
		if err == nil {
			r.m.batches[i].durable = true
		}
	})
	r.w.settle()
}

func batchBase(b []byte) int64 {
	var n int64
	for _, c := range b[:8] {
		n = n<<8 | int64(c)
	}
	return n
}

func (r *workload) flush() {
	end := r.l.LogEndOffset()
	if err := r.l.Flush(); err != nil {
		r.failures++
		return
	}
	for i := range r.m.batches {
		if a := &r.m.batches[i]; a.acked && a.next <= end {
			a.durable = true
		}
	}
}

func (r *workload) checkpoint() { r.w.store.checkpointRun() }

func (r *workload) truncate(records int64) func() {
	return func() {
		to := max(r.l.LogEndOffset()-records, r.l.LogStartOffset())
		r.m.doubt(to)
		if err := r.l.TruncateTo(to); err != nil {
			r.failures++
			return
		}
		r.m.cut(to)
		clear(r.sequence)
		states, err := r.l.Producers()
		if err != nil {
			r.failures++
			return
		}
		for _, p := range states {
			r.sequence[p.ProducerID] = p.LastSequence + 1
		}
	}
}

func (r *workload) deleteRecords() {
	to := min(r.l.LogStartOffset()+4, r.l.HighWatermark())
	r.m.maxStart = max(r.m.maxStart, to)
	start, err := r.l.DeleteRecordsTo(to)
	if err != nil {
		r.failures++
		return
	}
	r.m.start = max(r.m.start, start)
}

func (r *workload) retention() {
	cfg := testLogConfig()
	cfg.RetentionBytes = 2000
	r.l.Reconfigure(cfg)
	r.m.maxStart = max(r.m.maxStart, r.l.HighWatermark())
	r.w.store.RunRetention()
	r.w.clock.Advance(2 * time.Second)
	r.l.Reconfigure(testLogConfig())
}

// expire lets retention.ms delete everything, the active segment included.
func (r *workload) expire() {
	cfg := testLogConfig()
	cfg.RetentionMs = 10
	r.l.Reconfigure(cfg)
	r.w.clock.Advance(500 * time.Millisecond)
	r.m.maxStart = max(r.m.maxStart, r.l.HighWatermark())
	r.w.store.RunRetention()
	r.l.Reconfigure(testLogConfig())
}

func (r *workload) elect() {
	r.epoch++
	if err := r.l.AssignEpoch(r.epoch); err != nil {
		r.failures++
	}
}

// otherTopic makes, fills and deletes another topic.
func (r *workload) otherTopic() {
	tp := TopicPartition{Topic: "other", Partition: 7}
	l, err := r.w.store.OpenLog(tp, TopicID{9}, testLogConfig())
	if err != nil {
		r.failures++
		return
	}
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); err != nil {
		r.failures++
	}
	if err := r.w.store.Delete(tp); err != nil {
		r.failures++
	}
	r.w.clock.Advance(2 * time.Second)
}

// restart is a clean stop and a start.
func (r *workload) restart() {
	if err := r.w.close(); err != nil {
		r.failures++
	}
	if r.crashed() {
		return
	}
	if err := r.w.open(); err != nil {
		r.failures++
		return
	}
	l, err := r.w.store.OpenLog(testTopic, testID, testLogConfig())
	if err != nil {
		r.failures++
		return
	}
	r.l = l
}

// reopened checks what a start after the crash finds, that it can be written to,
// and that another clean restart changes nothing.
func (r *workload) reopened(must func(appended) bool) error {
	w := r.w
	if err := w.open(); err != nil {
		return fmt.Errorf("open after the crash: %w", err)
	}
	l := w.log()
	w.settle()
	if err := r.m.check(l, must); err != nil {
		return err
	}
	if err := checkTransactions(l, l.LogEndOffset()); err != nil {
		return err
	}
	r.m.settle(w.t, l)
	if err := retryLast(w.t, l); err != nil {
		return err
	}
	end := l.LogEndOffset()
	b := makeBatch(5, "after", 2, nil)
	res, err := l.Append(AppendRequest{Batches: b, LeaderEpoch: 100})
	if err != nil || res.FirstOffset != end {
		return fmt.Errorf("append after the crash at %d: %+v, %w", end, res, err)
	}
	r.m.add(appended{base: end, next: end + 2, bytes: b, acked: true})
	if err := w.close(); err != nil {
		return fmt.Errorf("close after the crash: %w", err)
	}
	if err := w.open(); err != nil {
		return err
	}
	defer w.abandon()
	if !w.store.CleanStart() {
		return errors.New("a clean stop was not seen as one")
	}
	l = w.log()
	if got := l.LogEndOffset(); got != end+2 {
		return fmt.Errorf("the log ends at %d after a clean restart, not %d", got, end+2)
	}
	if err := checkTransactions(l, end+2); err != nil {
		return fmt.Errorf("after a clean restart: %w", err)
	}
	return r.m.check(l, func(appended) bool { return true })
}

// retryLast sends the last batch of every producer again: it must be known.
func retryLast(t *testing.T, l *Log) error {
	for _, v := range slices.Backward(contents(t, l)) {
		if !v.HasProducerID() || v.IsControl() {
			continue
		}
		res, err := l.Append(AppendRequest{Batches: slices.Clone(v), LeaderEpoch: 100})
		if err != nil || !res.Duplicate || res.FirstOffset != v.BaseOffset() {
			return fmt.Errorf("the batch at %d sent again: %+v, %w", v.BaseOffset(), res, err)
		}
		return nil
	}
	return nil
}

// countOps is how many changing operations the workload does.
func countOps(t *testing.T, fsync bool) int64 {
	w := newWorld(t, 1)
	r := newWorkload(w, fsync)
	if !r.run() || r.failures > 0 {
		t.Fatalf("the workload failed without a fault (%d failures)", r.failures)
	}
	w.abandon()
	return w.fs.Ops()
}

// step is 1 to try every operation; -short tries some.
func step() int64 {
	if testing.Short() {
		return 7
	}
	return 1
}

// TestProcessCrash kills the process before every operation in turn: whatever
// was acknowledged is there, synced or not, as the system has it.
func TestProcessCrash(t *testing.T) {
	for n := int64(1); n <= countOps(t, false); n += step() {
		w := newWorld(t, 1)
		r := newWorkload(w, false)
		w.fs.CrashAt(n)
		r.run()
		w.abandonIfOpen()
		w.fs.Kill()
		if err := r.reopened(func(a appended) bool { return a.acked }); err != nil {
			t.Fatalf("process killed at operation %d: %v", n, err)
		}
	}
}

// TestMachineCrash cuts the power before every operation in turn: whatever was
// acknowledged after a sync is there, and what is there is what was written.
func TestMachineCrash(t *testing.T) {
	for _, fsync := range []bool{true, false} {
		for n := int64(1); n <= countOps(t, fsync); n += step() {
			for seed := range uint64(4) {
				w := newWorld(t, 1)
				r := newWorkload(w, fsync)
				w.fs.CrashAt(n)
				r.run()
				w.abandonIfOpen()
				w.fs.Crash(seed*1000 + uint64(n))
				if err := r.reopened(func(a appended) bool { return a.durable }); err != nil {
					t.Fatalf("power cut at operation %d, seed %d, fsync %v: %v", n, seed, fsync, err)
				}
			}
		}
	}
}

// TestFailedOperation fails every operation in turn: the partition may go
// offline, comes back by itself, and what was acknowledged is there.
func TestFailedOperation(t *testing.T) {
	for _, failure := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := int64(1); n <= countOps(t, true); n += step() {
			w := newWorld(t, 1)
			r := newWorkload(w, true)
			w.fs.FailAt(n, failure)
			r.run()
			if w.store == nil || r.l == nil {
				continue // it could not even start, and said so
			}
			w.clock.Advance(3 * time.Second)
			w.settle()
			if l, ok := w.store.Log(testTopic); ok && !l.dead.Load() && l.Err() != nil {
				t.Fatalf("%v at operation %d: still offline: %v", failure, n, l.Err())
			}
			w.abandonIfOpen()
			w.fs.Crash(uint64(n))
			if err := r.reopened(func(a appended) bool { return a.durable }); err != nil {
				t.Fatalf("%v at operation %d: %v", failure, n, err)
			}
		}
	}
}

func (w *world) abandonIfOpen() {
	if w.store != nil {
		w.abandon()
	}
}
