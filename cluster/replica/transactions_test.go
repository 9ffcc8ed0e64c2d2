package replica

import (
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// TestCommittedReadersWaitForTheStableOffset parks readers behind an open
// transaction: bytes that come do not concern them, the move of the last stable
// offset wakes them whatever they wait for.
func TestCommittedReadersWaitForTheStableOffset(t *testing.T) {
	w := started(t)
	w.publish(nil, topic("t", led(1, 0, 1)))
	p := w.partition("t", 0)
	mustAppend(t, p, 4, 1)
	log := w.log("t", 0)
	log.locked(func() { log.unstable = 3 })
	q := consumer(1)
	q.Committed = true
	read := func() ReadResult {
		t.Helper()
		res, err := p.Read(q)
		if err != nil || len(res.Data) != 0 {
			t.Fatalf("read %d bytes past the last stable offset, %v", len(res.Data), err)
		}
		return res
	}
	res := read()
	if res.LastStableOffset != 1 || res.HighWatermark != 4 {
		t.Fatalf("%+v", res)
	}
	woken := 0
	waiter := w.pool.NewWaiter(func() bool { woken++; return true })
	waiter.Need(1 << 20)
	var k Watch
	if !p.WatchRead(&res, waiter, &k) {
		t.Fatal("nothing has changed, yet the watch was refused")
	}
	waiter.Park(time.Hour)
	log.locked(func() { log.unstable = 13 }) // the ten that follow are hidden as well
	mustAppend(t, p, 10, 1)
	w.pool.WaitIdle()
	if woken != 1 {
		t.Fatalf("woken %d times by what is stable at all", woken)
	}
	res = read()
	waiter = w.pool.NewWaiter(func() bool { woken++; return true })
	waiter.Need(1 << 20)
	p.WatchRead(&res, waiter, &k)
	waiter.Park(time.Hour)
	woken = 0
	log.locked(func() { log.unstable = 23 })
	mustAppend(t, p, 10, 1)
	w.pool.WaitIdle()
	if woken != 0 {
		t.Fatal("woken although nothing more is stable")
	}
	log.locked(func() { log.unstable = 0 })
	mustAppend(t, p, 1, 1)
	w.pool.WaitIdle()
	if woken != 1 {
		t.Fatalf("woken %d times by the end of the transaction", woken)
	}
}

// TestAppendMarker looks at the batch that is written.
func TestAppendMarker(t *testing.T) {
	for _, logAppendTime := range []bool{false, true} {
		w := started(t)
		w.cfg.Batch.LogAppendTime = logAppendTime
		w.publish(nil, topic("t", led(1, 3, 1)))
		p := w.partition("t", 0)
		a, err := p.AppendMarker(Marker{ProducerID: 7, ProducerEpoch: 2, CoordinatorEpoch: 5, Commit: true}, AppendOptions{Acks: AcksAll, LeaderEpoch: -1})
		if err != nil || a.FirstOffset != 0 {
			t.Fatal(a, err)
		}
		acked := make(chan error, 1)
		p.whenAcked(a, func(err error) { acked <- err })
		if err := <-acked; err != nil {
			t.Fatal(err)
		}
		v := w.log("t", 0).batches[0]
		m, ok, err := batch.ParseMarker(v)
		if err != nil || !ok || !m.Commit || m.CoordinatorEpoch != 5 {
			t.Fatalf("%+v, %t, %v", m, ok, err)
		}
		if !v.IsControl() || !v.IsTransactional() || v.ProducerID() != 7 || v.ProducerEpoch() != 2 || v.BaseSequence() != batch.NoSequence ||
			v.PartitionLeaderEpoch() != 3 || v.MaxTimestamp() != w.clk.Now().UnixMilli() || (v.TimestampType() == batch.LogAppendTime) != logAppendTime {
			t.Fatalf("the batch: %x", []byte(v))
		}
	}
}
