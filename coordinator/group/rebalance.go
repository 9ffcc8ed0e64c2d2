package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// rebalance starts one where the state allows it; where one is going on already
// it may now be complete.
func (s *step) rebalance(g *classic) {
	if g.state == PreparingRebalance {
		s.completeJoinIfAll(g)
		return
	}
	s.prepareRebalance(g)
}

// prepareRebalance waits for all members to join again, or, when the group was
// empty, for more members to arrive.
func (s *step) prepareRebalance(g *classic) {
	if g.state == CompletingRebalance {
		s.failSyncs(g, kerr.RebalanceInProgress)
	}
	s.cancelSync(g)
	initial := g.state == Empty
	g.transition(PreparingRebalance, s.nowMs())
	if !initial {
		if g.allJoined() {
			s.completeJoin(g)
			return
		}
		s.timer(joinKey(g.id), g.rebalanceTimeoutMs())
		return
	}
	delay := s.cfg.InitialRebalanceDelayMs
	g.newMember = false
	g.initialDelayMs, g.initialRemainingMs = delay, max(g.rebalanceTimeoutMs()-delay, 0)
	if delay == 0 {
		s.completeJoin(g)
		return
	}
	s.timer(joinKey(g.id), delay)
}

// completeJoinIfAll ends the joining phase once nobody is missing. The first
// rebalance of an empty group ends by its timer only.
func (s *step) completeJoinIfAll(g *classic) {
	if g.state == PreparingRebalance && g.previous != Empty && g.allJoined() {
		s.completeJoin(g)
	}
}

// joinTimedOut ends a joining phase, or stretches the first one while members
// keep coming.
func (s *step) joinTimedOut(g *classic) {
	if g.state != PreparingRebalance {
		return
	}
	if g.previous == Empty && g.newMember && g.initialRemainingMs != 0 {
		g.newMember = false
		delay := min(s.cfg.InitialRebalanceDelayMs, g.initialRemainingMs)
		g.initialRemainingMs = max(g.initialRemainingMs-g.initialDelayMs, 0)
		g.initialDelayMs = delay
		s.timer(joinKey(g.id), delay)
		return
	}
	s.completeJoin(g)
}

// completeJoin starts the next generation with the members that joined; static
// members stay without joining until their session ends (KIP-345).
func (s *step) completeJoin(g *classic) {
	s.cancel(joinKey(g.id))
	for _, m := range append([]*member(nil), g.members...) {
		if m.join == 0 && m.instanceID == nil {
			s.expectNothing(g, m.id)
			s.remove(g, m)
		}
	}
	if !g.electLeader() && len(g.members) > 0 {
		// Only static members are left and none has come back: their sessions
		// decide, so look again later.
		s.timer(joinKey(g.id), g.rebalanceTimeoutMs())
		return
	}
	g.generation++
	clear(g.pendingSync)
	if len(g.members) == 0 {
		g.protocol, g.leader = nil, ""
		g.topics = g.subscribedTopics()
		g.transition(Empty, s.nowMs())
		s.record(g.metadataRecord())
		s.settle(g)
		return
	}
	protocol := g.selectProtocol()
	g.protocol = &protocol
	g.topics = g.subscribedTopics()
	g.transition(CompletingRebalance, s.nowMs())
	for _, m := range g.members {
		if m.join != 0 {
			s.answer(m.join, s.joined(g, m))
			m.join = 0
		}
		m.isNew = false
		s.expectHeartbeat(g, m, m.sessionTimeoutMs)
		g.pendingSync[m.id] = struct{}{}
	}
	g.syncGeneration = g.generation
	s.timer(syncKey(g.id), g.rebalanceTimeoutMs())
}

// syncTimedOut removes the members whose SyncGroup did not come.
func (s *step) syncTimedOut(g *classic) {
	if g.generation != g.syncGeneration || len(g.pendingSync) == 0 {
		return
	}
	if g.state != CompletingRebalance && g.state != Stable {
		return
	}
	for _, m := range append([]*member(nil), g.members...) {
		if _, pending := g.pendingSync[m.id]; pending {
			s.expectNothing(g, m.id)
			s.remove(g, m)
		}
	}
	s.prepareRebalance(g)
}

func (s *step) cancelSync(g *classic) {
	clear(g.pendingSync)
	s.cancel(syncKey(g.id))
}

// remove takes a member out and answers what it waits for: a client that is
// still there shall join anew.
func (s *step) remove(g *classic, m *member) {
	if m.join != 0 {
		s.joinError(m.join, "", kerr.UnknownMemberID)
		m.join = 0
	}
	if m.sync != 0 {
		s.syncError(m.sync, kerr.UnknownMemberID)
		m.sync = 0
	}
	g.drop(m.id)
}

// afterRemoval goes on with the group once members have left it.
func (s *step) afterRemoval(g *classic) {
	switch g.state {
	case Stable, CompletingRebalance:
		s.prepareRebalance(g)
	case PreparingRebalance:
		s.completeJoinIfAll(g)
	}
	s.settle(g)
}
