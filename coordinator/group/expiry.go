package group

import (
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/machine"
)

// armExpiry sets the timer of the expiry check while there is anything that can
// expire: a partition without groups costs nothing.
func (s *step) armExpiry() {
	if s.soft.expiryArmed || len(s.groups) == 0 && len(s.out.Records) == 0 {
		return
	}
	s.soft.expiryArmed = true
	at := s.now.Add(clock.Milliseconds(s.cfg.RetentionCheckIntervalMs))
	if len(s.soft.expiring) > 0 {
		at = s.now
	}
	s.out.Timers = append(s.out.Timers, machine.Timer{Key: timerExpiry, At: at})
}

// expireOffsets does the next part of a check, or begins one.
func (s *step) expireOffsets() {
	if len(s.soft.expiring) == 0 {
		s.soft.expiring = s.storedIDs()
	}
	s.someGroups(&s.soft.expiring, s.expireGroup)
}

// A round looks at this many groups, and writes about this many records, in one
// event: some 10 ms, in which the members of other groups wait.
const (
	roundGroups  = 2000
	roundRecords = 4000
)

// someGroups is one round of a check that goes through all groups: it takes those
// that it has looked at from the list of those that are left.
func (s *step) someGroups(left *[]string, do func(id string, st *stored)) {
	s.out.Parts = true
	for n := 0; n < roundGroups && len(s.out.Records) < roundRecords && len(*left) > 0; n++ {
		id := (*left)[0]
		*left = (*left)[1:]
		if st := s.groups[id]; st != nil {
			do(id, st)
		}
	}
}

// expireGroup writes tombstones for offsets that nobody needs any more, and for an
// empty group that has none left. What a transaction may still change stays.
func (s *step) expireGroup(id string, st *stored) {
	if consumer := st.consumer; consumer != nil {
		// Offsets of consumer groups count from their commits, be there members or
		// not.
		left := s.expireOffsetsOf(id, -1, consumer.subscribedTo)
		if left == 0 && len(st.pending) == 0 && len(consumer.members) == 0 {
			s.forgetConsumer(id, consumer)
		}
		return
	}
	g := s.view(id)
	base, may := g.expiryBase()
	if !may {
		return
	}
	left := s.expireOffsetsOf(id, base, g.subscribedTo)
	if left == 0 && len(st.pending) == 0 && g.state == Empty && len(g.pendingJoin) == 0 {
		s.record(Record{Group: id})
		delete(s.soft.groups, id)
	}
}

// expireOffsetsOf expires the offsets of one group and returns how many are left.
func (s *step) expireOffsetsOf(id string, baseMs int64, subscribedTo func(topic string) bool) (left int) {
	st := s.groups[id]
	s.eachOffset(st, func(topic string, partition int32, c committed) {
		if subscribedTo(topic) || !s.expired(c, baseMs) || st.hasPending(topic, partition) {
			left++
			return
		}
		s.record(offsetTombstone(id, topic, partition))
	})
	return left
}

// expiryBase says from when the retention of a group's offsets counts (KIP-211):
// a group with members keeps what it subscribes to, an empty one all of it until
// it has been empty for the whole retention. -1 counts from each commit.
func (g *classic) expiryBase() (baseMs int64, may bool) {
	switch {
	case g.protocolType == "":
		return -1, true
	case g.state == Empty:
		return g.stateTimestampMs, true
	case g.state == Stable && g.protocolType == protocolConsumer && g.topics != nil:
		return -1, true
	}
	return 0, false
}

func (s *step) expired(c committed, baseMs int64) bool {
	if c.value.ExpireTimestamp != -1 {
		return s.nowMs() >= c.value.ExpireTimestamp
	}
	if baseMs == -1 {
		baseMs = c.value.CommitTimestamp
	}
	return s.nowMs()-baseMs >= s.cfg.OffsetsRetentionMs
}
