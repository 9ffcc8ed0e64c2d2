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
		s.timer(timerAbort, s.nextCheck(s.soft.aborting, s.cfg.AbortCheckIntervalMs))
	}
	if !s.soft.expiryArmed && (changed || len(s.transactions) > 0) {
		s.soft.expiryArmed = true
		s.timer(timerExpiry, s.nextCheck(s.soft.expiring, s.cfg.ExpiryCheckIntervalMs))
	}
}

// nextCheck is when a check begins anew, or goes on with what is left of it.
func (s *step) nextCheck(left []string, intervalMs int32) time.Time {
	if len(left) > 0 {
		return s.now
	}
	return s.now.Add(time.Duration(intervalMs) * time.Millisecond)
}

// A check looks at this many ids, and writes this many records, in one event: some
// 10 ms, in which other producers wait.
const (
	checkIDs     = 10_000
	checkRecords = 2000
)

// eachID does the next part of a check, or begins one with all of the ids.
func eachID[V any](s *step, left *[]string, all map[string]V, do func(id string)) {
	s.out.Parts = true
	if len(*left) == 0 {
		*left = sortedIDs(all)
	}
	for n := 0; n < checkIDs && len(s.out.Records) < checkRecords && len(*left) > 0; n++ {
		id := (*left)[0]
		*left = (*left)[1:]
		do(id)
	}
}

// abortTimedOut aborts what is under way for longer than its producer wanted.
func (s *step) abortTimedOut() {
	eachID(s, &s.soft.aborting, s.ongoing, func(id string) {
		if t := s.tx(id); t != nil && s.timedOut(t) && !s.fence(id, t, noProducerID) {
			s.effect(FetchProducerID{TransactionalID: id})
		}
	})
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
	eachID(s, &s.soft.expiring, s.transactions, func(id string) {
		if t := s.tx(id); t != nil && (t.State == Empty || t.State.completed()) && t.UpdateMs <= before {
			s.set(id, nil)
		}
	})
}
