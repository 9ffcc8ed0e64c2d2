package storage

import (
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/storage/producer"
)

// stability knows from where on the log is not stable: where the oldest
// transaction begins that is open, or whose marker is not below the high watermark
// yet. Readers need no lock while there is none. The log's appender changes it.
type stability struct {
	// firstOpen is where the oldest open transaction begins, NoOffset for none.
	firstOpen atomic.Int64
	// writtenMs is when that transaction's producer wrote last, -1 for none.
	writtenMs atomic.Int64
	// waiting is the number of decided transactions in the list.
	waiting atomic.Int64
	// resets counts the times that the list was thrown away.
	resets atomic.Int64

	mu sync.Mutex // a leaf: nothing is called under it
	// decided are transactions whose marker is written, by the marker's offset.
	// One that begins after a later one is left out: it never is the oldest. So
	// both offsets rise. The high watermark follows the log's end, which bounds it.
	decided []txnSpan
}

type txnSpan struct{ first, marker int64 }

// decide notes the ends of transactions, before the open ones are told.
func (s *stability) decide(ended []producer.Ended, highWatermark int64) {
	if len(ended) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range ended {
		n := len(s.decided)
		for n > 0 && s.decided[n-1].first >= e.FirstOffset {
			n--
		}
		s.decided = append(s.decided[:n], txnSpan{first: e.FirstOffset, marker: e.LastOffset})
	}
	s.dropLocked(highWatermark)
}

// below forgets the decided transactions whose marker is below the high watermark.
func (s *stability) below(highWatermark int64) {
	if s.waiting.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(highWatermark)
}

func (s *stability) dropLocked(highWatermark int64) {
	n := 0
	for n < len(s.decided) && s.decided[n].marker < highWatermark {
		n++
	}
	s.decided = s.decided[:copy(s.decided, s.decided[n:])]
	s.waiting.Store(int64(len(s.decided)))
}

// reset starts anew with what is open: transactions that were decided may be so again,
// because their marker was cut. A reader who has not seen them open and finds the
// list empty sees that there was a reset.
func (s *stability) reset(open *producer.Table) {
	s.open(open)
	s.resets.Add(1)
	s.mu.Lock()
	s.decided = nil
	s.waiting.Store(0)
	s.mu.Unlock()
}

// open tells of the oldest open transaction.
func (s *stability) open(t *producer.Table) {
	s.writtenMs.Store(t.FirstOpenWrittenMs())
	s.firstOpen.Store(t.FirstOpen())
}

// lateBufferMs is what Kafka allows a transaction beyond the longest time-out before
// it counts as late.
const lateBufferMs = 5 * 60 * 1000

// late says that the oldest open transaction should have been ended long ago.
func (s *stability) late(nowMs, maxTimeoutMs int64) bool {
	written := s.writtenMs.Load()
	return written > 0 && nowMs-written > maxTimeoutMs+lateBufferMs
}

// lastStable is the last stable offset at a high watermark. The open transactions
// are looked at first: one that ends meanwhile is among the decided by then.
func (s *stability) lastStable(highWatermark int64) int64 {
	for {
		resets := s.resets.Load()
		stable := highWatermark
		if first := s.firstOpen.Load(); first >= 0 {
			stable = min(stable, first)
		}
		stable = min(stable, s.firstDecided(highWatermark))
		if s.resets.Load() == resets {
			return stable
		}
	}
}

// firstDecided is where the oldest decided transaction begins whose marker is not
// below a high watermark, which is the answer when there is none.
func (s *stability) firstDecided(highWatermark int64) int64 {
	if s.waiting.Load() == 0 {
		return highWatermark
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.decided {
		if d.marker >= highWatermark {
			return d.first
		}
	}
	return highWatermark
}
