package txn

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/storage"
)

// completion is a transaction in Prepare on its way to Complete.
type completion struct {
	// left are the partitions that have no marker yet, sorted.
	left []storage.TopicPartition
	// failures counts the attempts that left some over.
	failures int
	// asked says that an attempt is on its way.
	asked bool
}

// writeMarkers begins the completion of a transaction in Prepare.
func (s *step) writeMarkers(id string) {
	s.soft.completing[id] = &completion{left: s.tx(id).Partitions}
	s.askForMarkers(id)
}

func (s *step) askForMarkers(id string) {
	c, t := s.soft.completing[id], s.tx(id)
	c.asked = true
	s.effect(WriteMarkers{
		Producer: Producer{TransactionalID: id, ID: t.ProducerID, Epoch: t.Epoch},
		Commit:   t.State == PrepareCommit, ClientVersion: t.ClientVersion,
		Partitions: c.left, Failures: c.failures,
	})
}

// markersWritten completes the transaction, or tries once more with the partitions
// that are left.
func (s *step) markersWritten(r MarkersWritten) {
	id := r.Asked.TransactionalID
	c := s.soft.completing[id]
	invariant.That(c != nil && c.asked, "markers of %q were written that nobody asked for", id)
	c.asked = false
	var left []storage.TopicPartition
	for i, tp := range r.Asked.Partitions {
		if !settled(r.Results[i]) {
			left = append(left, tp)
		}
	}
	if c.left = left; len(left) == 0 {
		delete(s.soft.completing, id)
		s.set(id, s.tx(id).complete(s.nowMs()))
		s.wake(id)
		return
	}
	c.failures++
	wait := min(markerRetryMin<<min(c.failures-1, 16), markerRetryMax)
	s.timer(markerKey(id), s.now.Add(wait))
}

// settled tells whether a partition needs no (other) marker. Where a topic is gone
// there is nothing to end. A partition that knows a newer epoch has seen the end of
// this one, as nobody gets a newer epoch before. Everything else is tried again, also
// what only a newer coordinator can answer: this one's time is over then.
func settled(err error) bool {
	return err == nil || errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.InvalidProducerEpoch)
}

// retryMarkers is the next attempt.
func (s *step) retryMarkers(id string) {
	if c := s.soft.completing[id]; c != nil && !c.asked {
		s.askForMarkers(id)
	}
}
