package txn

import (
	"math"
	"time"
)

// The kinds of timers, the first byte of a key; the transactional id follows.
const (
	timerAbort   = "a"
	timerExpiry  = "e"
	timerMarkers = "m"
	timerWait    = "w"
)

func markerKey(id string) string { return timerMarkers + id }
func waitKey(id string) string   { return timerWait + id }

// isWaitTimer says that a timer only ends a wait, which takes no record.
func isWaitTimer(key string) bool { return key[:1] == timerWait || key[:1] == timerMarkers }

func (s *step) fired(key string) {
	kind, id := key[:1], key[1:]
	switch kind {
	case timerAbort:
		s.soft.abortArmed = false
		s.abortTimedOut()
	case timerExpiry:
		s.soft.expiryArmed = false
		s.expireIDs()
	case timerMarkers:
		s.retryMarkers(id)
	case timerWait:
		s.waitedLongEnough(id)
	}
}

// armChecks sets the timers of the checks while there is anything to check: a
// partition without transactional ids costs nothing.
func (s *step) armChecks() {
	changed := len(s.out.Records) > 0
	if !s.soft.abortArmed && (changed || len(s.ongoing) > 0) {
		s.soft.abortArmed = true
		s.timer(timerAbort, s.now.Add(time.Duration(s.cfg.AbortCheckIntervalMs)*time.Millisecond))
	}
	if !s.soft.expiryArmed && (changed || len(s.transactions) > 0) {
		s.soft.expiryArmed = true
		s.timer(timerExpiry, s.now.Add(time.Duration(s.cfg.ExpiryCheckIntervalMs)*time.Millisecond))
	}
}

// abortTimedOut aborts what is under way for longer than its producer wanted.
func (s *step) abortTimedOut() {
	for _, id := range sortedIDs(s.ongoing) {
		if t := s.tx(id); s.timedOut(t) && !s.fence(id, t, noProducerID) {
			s.effect(FetchProducerID{TransactionalID: id})
		}
	}
}

// timedOut says that a transaction is under way for too long. The longest time-out
// there is, which has to be allowed, means none (KIP-939).
func (s *step) timedOut(t *Transaction) bool {
	return t.State == Ongoing && t.TimeoutMs != math.MaxInt32 && t.StartMs+int64(t.TimeoutMs) < s.nowMs()
}

// producerIDFetched aborts what could not be without a producer id. Without one
// the next check asks again.
func (s *step) producerIDFetched(r ProducerIDFetched) {
	if t := s.tx(r.TransactionalID); r.Err == nil && t != nil && s.timedOut(t) {
		s.fence(r.TransactionalID, t, r.ID)
	}
}

// expireIDs forgets the transactional ids that nobody has used for long.
func (s *step) expireIDs() {
	before := s.nowMs() - int64(s.cfg.IDExpirationMs)
	for _, id := range sortedIDs(s.transactions) {
		t := s.tx(id)
		if (t.State == Empty || t.State.completed()) && t.UpdateMs <= before {
			s.set(id, nil)
		}
	}
}
