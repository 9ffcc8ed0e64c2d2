package txn

import (
	"fmt"
	"testing"
	"time"
)

// The checks of many transactional ids are many short events, one at once after the
// other: first all transactions time out, then all ids expire.
func TestChecksInRounds(t *testing.T) {
	const many = 5 * checkRecords
	cfg := DefaultConfig()
	m := New(cfg)
	began := time.UnixMilli(1_000_000)
	for i := range many {
		m.Replay(int64(i), Record{TransactionalID: fmt.Sprint("x", i), Transaction: &Transaction{
			ProducerID: int64(i), PrevProducerID: noProducerID, NextProducerID: noProducerID, lastEpoch: noEpoch,
			State: Ongoing, TimeoutMs: 1000, StartMs: began.UnixMilli(), UpdateMs: began.UnixMilli(),
		}})
	}
	run := func(timer string, now time.Time) (rounds int) {
		for at := now; at.Equal(now); rounds++ {
			out := m.Handle(now, Event{Request: TimerFired{Key: timer}})
			if n := len(out.Records); n > checkRecords {
				t.Fatalf("%d records in one event", n)
			}
			for _, r := range out.Records {
				m.Replay(many, r)
			}
			at = time.Time{}
			for _, asked := range out.Timers {
				if asked.Key == timer {
					at = asked.At
				}
			}
		}
		return rounds
	}
	now := began.Add(time.Hour)
	if n := run(timerAbort, now); n != many/checkRecords || len(m.ongoing) != 0 {
		t.Errorf("%d rounds, and %d transactions are open", n, len(m.ongoing))
	}
	for id, tx := range m.transactions {
		done := *tx
		done.State = CompleteAbort
		m.Replay(many, Record{TransactionalID: id, Transaction: &done})
	}
	now = now.Add(time.Duration(cfg.IDExpirationMs) * time.Millisecond)
	if n := run(timerExpiry, now); n != many/checkRecords || len(m.transactions) != 0 {
		t.Errorf("%d rounds, and %d ids are left", n, len(m.transactions))
	}
}
