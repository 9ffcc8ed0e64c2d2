package storage

import (
	"sync"
	"testing"

	"github.com/barnabas-mq/barnabas/storage/producer"
)

// TestMarkersThatAreCut has readers look while a transaction's marker, which is not
// below the high watermark, is written and cut again: it is decided or open, and no
// reader finds it neither.
func TestMarkersThatAreCut(t *testing.T) {
	const first, highWatermark, marker, rounds = 10, 15, 20, 200_000
	var open, none producer.Table
	open.Replay(producer.Batch{ProducerID: 1, FirstOffset: first, LastOffset: first, Transactional: true})
	ended := []producer.Ended{{ProducerID: 1, FirstOffset: first, LastOffset: marker, Committed: true}}
	var s stability
	s.reset(&open)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if got := s.lastStable(highWatermark); got != first {
					t.Errorf("stable up to %d", got)
					return
				}
			}
		})
	}
	for range rounds {
		s.decide(ended, highWatermark)
		s.open(&none)
		s.reset(&open)
	}
	close(done)
	readers.Wait()
}
