package group

import (
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/machine"
)

// The kinds of timers, the first byte of a key. A group's name may hold any
// bytes, so its length stands before it.
const (
	timerHeartbeat = "h"
	timerJoin      = "j"
	timerSync      = "s"
	timerExpiry    = "e"
	timerDeletion  = "d"
	// Those of the members of consumer groups: their session, the time in which
	// they must give partitions back, and in which a classic member must join or
	// sync.
	timerSession    = "c"
	timerRevoke     = "r"
	timerMemberJoin = "m"
	timerMemberSync = "n"
)

func timerKey(kind, group, member string) string {
	return kind + strconv.Itoa(len(group)) + ":" + group + member
}

func heartbeatKey(group, member string) string { return timerKey(timerHeartbeat, group, member) }
func joinKey(group string) string              { return timerKey(timerJoin, group, "") }
func syncKey(group string) string              { return timerKey(timerSync, group, "") }

func splitTimerKey(key string) (kind, group, member string) {
	kind, rest := key[:1], key[1:]
	length, rest, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n > len(rest) {
		return kind, "", ""
	}
	return kind, rest[:n], rest[n:]
}

func (s *step) timer(key string, afterMs int32) {
	at := s.now.Add(time.Duration(afterMs) * time.Millisecond)
	s.out.Timers = append(s.out.Timers, machine.Timer{Key: key, At: at})
}

func (s *step) cancel(key string) {
	s.out.Timers = append(s.out.Timers, machine.Timer{Key: key})
}

func (s *step) expectHeartbeat(g *classic, m *member, withinMs int32) {
	s.timer(heartbeatKey(g.id, m.id), withinMs)
}

func (s *step) expectNothing(g *classic, memberID string) { s.cancel(heartbeatKey(g.id, memberID)) }

func (s *step) fired(key string) {
	switch key {
	case timerExpiry:
		s.soft.expiryArmed = false
		s.expireOffsets()
		return
	case timerDeletion:
		s.removeDeleted()
		return
	}
	kind, id, memberID := splitTimerKey(key)
	switch kind {
	case timerSession, timerRevoke, timerMemberJoin, timerMemberSync:
		s.consumerTimedOut(kind, id, memberID)
		return
	}
	g := s.soft.groups[id]
	if g == nil {
		return
	}
	switch kind {
	case timerHeartbeat:
		s.sessionTimedOut(g, memberID)
	case timerJoin:
		s.joinTimedOut(g)
	case timerSync:
		s.syncTimedOut(g)
	}
	s.settle(g)
}

// sessionTimedOut removes a member that was not heard of. Members that wait for
// a rebalance cannot be heard of, but for new ones, whose wait is bounded.
func (s *step) sessionTimedOut(g *classic, memberID string) {
	if _, pending := g.pendingJoin[memberID]; pending {
		delete(g.pendingJoin, memberID)
		s.completeJoinIfAll(g)
		return
	}
	m := g.member(memberID)
	if m == nil || !m.isNew && (m.join != 0 || m.sync != 0) {
		return
	}
	s.remove(g, m)
	s.afterRemoval(g)
}
