package api

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/clock"
)

// Epochs of a fetch session (KIP-227).
const (
	sessionEpochInitial = 0
	sessionEpochFinal   = -1
)

// sessionIdleMax is how long a session may be idle before any other may take its
// place, and how old one must be before a larger one may, as in Kafka.
const sessionIdleMax = 2 * time.Minute

// sessionPartitionsMax bounds the partitions of all sessions together: each takes
// some 300 bytes. Whoever finds no room fetches without a session.
const sessionPartitionsMax = 500_000

// FetchSessions is the bounded cache of incremental fetch sessions.
type FetchSessions struct {
	clk clock.Clock
	max int

	mu   sync.Mutex
	rand *rand.Rand
	byID map[int32]*fetchSession
}

// NewFetchSessions keeps at most max sessions.
func NewFetchSessions(clk clock.Clock, r *rand.Rand, max int) *FetchSessions {
	return &FetchSessions{clk: clk, max: max, rand: r, byID: map[int32]*fetchSession{}}
}

// fetchSession is what one client fetches over and over. Its partitions are kept
// in order; one that gave records goes to the end, so that all get their turn.
type fetchSession struct {
	id int32
	// usesIDs says that the session began with topic ids; it can't change.
	usesIDs    bool
	privileged bool // a follower's
	created    time.Time

	// size is the number of partitions, for whoever looks for a victim.
	size atomic.Int32

	// lastUsed is guarded by FetchSessions.mu, which is never taken with mu.
	lastUsed time.Time

	mu          sync.Mutex
	epoch       int32
	first, last *sessionPartition
	parts       map[sessionKey]*sessionPartition
}

// sessionKey names a partition by topic id, or by name before v13.
type sessionKey struct {
	id        metadata.TopicID
	topic     string
	partition int32
}

// sessionPartition is one partition of a session: what is asked of it, and what
// the client was last told.
type sessionPartition struct {
	key sessionKey
	fetchParams
	highWatermark, logStartOffset int64
	prev, next                    *sessionPartition
}

// fetchParams is what a client asks of one partition.
type fetchParams struct {
	offset                        int64
	maxBytes                      int32
	leaderEpoch, lastFetchedEpoch int32
}

func (s *fetchSession) add(p *sessionPartition) {
	s.parts[p.key] = p
	p.prev, p.next = s.last, nil
	if s.last == nil {
		s.first = p
	} else {
		s.last.next = p
	}
	s.last = p
	s.size.Store(int32(len(s.parts)))
}

func (s *fetchSession) remove(p *sessionPartition) {
	delete(s.parts, p.key)
	if p.prev == nil {
		s.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		s.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	s.size.Store(int32(len(s.parts)))
}

// toEnd gives the other partitions their turn first.
func (s *fetchSession) toEnd(p *sessionPartition) {
	if s.parts[p.key] == p {
		s.remove(p)
		s.add(p)
	}
}

// nextSessionEpoch never is 0 again.
func nextSessionEpoch(epoch int32) int32 {
	if epoch < 0 {
		return sessionEpochFinal
	}
	if epoch == 1<<31-1 {
		return 1
	}
	return epoch + 1
}

// fetchContext is how one request relates to a session.
type fetchContext struct {
	sessions *FetchSessions
	// session is nil for a request without one.
	session *fetchSession
	// epoch is the session's epoch while this request is the newest.
	epoch int32
	// create says that a full request asks for a session.
	create     bool
	usesIDs    bool
	privileged bool
}

// begin finds the session of a request and what it fetches.
func (s *FetchSessions) begin(req *kmsg.FetchRequest, follower bool) (fetchContext, []fetchPart, *kerr.Error) {
	ctx := fetchContext{sessions: s, usesIDs: req.Version >= 13, privileged: follower}
	if req.SessionEpoch == sessionEpochInitial || req.SessionEpoch == sessionEpochFinal {
		if req.SessionID != 0 {
			s.drop(req.SessionID) // a full request ends the session that it names
		}
		ctx.create = req.SessionEpoch == sessionEpochInitial && req.Version >= 7
		return ctx, requestedParts(req), nil
	}
	session := s.touch(req.SessionID)
	if session == nil {
		return ctx, nil, kerr.FetchSessionIDNotFound
	}
	if added := session.missing(req); added > 0 && !s.room(added) {
		s.drop(session.id) // the client begins anew, without a session
		return ctx, nil, kerr.FetchSessionIDNotFound
	}
	parts, epoch, err := session.next(req)
	switch {
	case err != nil:
		return ctx, nil, err
	case len(parts) == 0:
		s.drop(session.id) // nothing is left to fetch
		return ctx, nil, nil
	}
	ctx.session, ctx.epoch = session, epoch
	return ctx, parts, nil
}

// missing counts the partitions of a request that the session has not.
func (s *fetchSession) missing(req *kmsg.FetchRequest) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			if s.parts[keyOf(req.Version, t.TopicID, t.Topic, t.Partitions[j].Partition)] == nil {
				n++
			}
		}
	}
	return n
}

// next takes an incremental request into the session and lists what it fetches
// now.
func (s *fetchSession) next(req *kmsg.FetchRequest) (parts []fetchPart, epoch int32, err *kerr.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.epoch != req.SessionEpoch:
		return nil, 0, kerr.InvalidFetchSessionEpoch
	case s.usesIDs != (req.Version >= 13):
		return nil, 0, kerr.FetchSessionTopicIDError
	}
	for _, in := range requestedParts(req) {
		if p := s.parts[in.key]; p != nil {
			p.fetchParams = in.fetchParams
			continue
		}
		s.add(&sessionPartition{key: in.key, fetchParams: in.fetchParams, highWatermark: -1, logStartOffset: -1})
	}
	for i := range req.ForgottenTopics {
		t := &req.ForgottenTopics[i]
		for _, partition := range t.Partitions {
			if p := s.parts[keyOf(req.Version, t.TopicID, t.Topic, partition)]; p != nil {
				s.remove(p)
			}
		}
	}
	parts = make([]fetchPart, 0, len(s.parts))
	for p := s.first; p != nil; p = p.next {
		parts = append(parts, fetchPart{key: p.key, fetchParams: p.fetchParams, cached: p})
	}
	s.epoch = nextSessionEpoch(s.epoch)
	return parts, s.epoch, nil
}

func keyOf(version int16, id metadata.TopicID, topic string, partition int32) sessionKey {
	if version >= 13 {
		return sessionKey{id: id, partition: partition}
	}
	return sessionKey{topic: topic, partition: partition}
}

// requestedParts are the partitions that a request itself names, each once: of those
// that name one again, as in Kafka, the last counts, in the place of the first.
func requestedParts(req *kmsg.FetchRequest) []fetchPart {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	parts, at := make([]fetchPart, 0, n), make(map[sessionKey]int, n)
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			part := fetchPart{key: keyOf(req.Version, t.TopicID, t.Topic, p.Partition), fetchParams: fetchParams{
				offset: p.FetchOffset, maxBytes: p.PartitionMaxBytes,
				leaderEpoch: p.CurrentLeaderEpoch, lastFetchedEpoch: p.LastFetchedEpoch,
			}}
			if first, again := at[part.key]; again {
				parts[first] = part
				continue
			}
			at[part.key] = len(parts)
			parts = append(parts, part)
		}
	}
	return parts
}

// end settles what is answered: the session id, and which parts the client has to
// hear of. Err is for a request that a newer one of its session has overtaken.
func (ctx *fetchContext) end(parts []fetchPart) (sessionID int32, answer []*fetchPart, err *kerr.Error) {
	if ctx.session != nil {
		return ctx.session.changed(ctx.epoch, parts)
	}
	answer = make([]*fetchPart, len(parts))
	for i := range parts {
		answer[i] = &parts[i]
	}
	if ctx.create && len(parts) > 0 {
		sessionID = ctx.sessions.create(ctx, parts)
	}
	return sessionID, answer, nil
}

// changed picks the parts that differ from what the client was last told.
func (s *fetchSession) changed(epoch int32, parts []fetchPart) (id int32, answer []*fetchPart, err *kerr.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != epoch {
		return s.id, nil, kerr.InvalidFetchSessionEpoch
	}
	for i := range parts {
		p := &parts[i]
		if p.cached.told(p) {
			answer = append(answer, p)
		}
	}
	for _, p := range answer {
		if p.sizeBytes() > 0 {
			s.toEnd(p.cached)
		}
	}
	return s.id, answer, nil
}

// told notes what the client hears of a partition and says whether it is news.
func (c *sessionPartition) told(p *fetchPart) (news bool) {
	highWatermark, logStart := p.highWatermark(), p.startOffset()
	news = p.sizeBytes() > 0 || p.read.Diverging != nil || highWatermark != c.highWatermark || logStart != c.logStartOffset
	c.highWatermark, c.logStartOffset = highWatermark, logStart
	if p.err != nil {
		// The partition is told again once the error is gone.
		c.highWatermark = -1
		return true
	}
	return news
}

// touch finds a session and marks it as used.
func (s *FetchSessions) touch(id int32) *fetchSession {
	now := s.clk.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.byID[id]
	if session != nil {
		session.lastUsed = now
	}
	return session
}

// partitions is how many a session has, 0 when there is none.
func (s *FetchSessions) partitions(id int32) int {
	if id == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.byID[id]; session != nil {
		return int(session.size.Load())
	}
	return 0
}

func (s *FetchSessions) drop(id int32) {
	s.mu.Lock()
	delete(s.byID, id)
	s.mu.Unlock()
}

// Len is the number of sessions.
func (s *FetchSessions) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// create makes a session for a full request's partitions; 0 when there is no
// room for it.
func (s *FetchSessions) create(ctx *fetchContext, parts []fetchPart) (id int32) {
	now := s.clk.Now()
	session := &fetchSession{
		usesIDs: ctx.usesIDs, privileged: ctx.privileged, created: now, lastUsed: now,
		epoch: nextSessionEpoch(sessionEpochInitial), parts: make(map[sessionKey]*sessionPartition, len(parts)),
	}
	for i := range parts {
		p := &parts[i]
		if session.parts[p.key] == nil {
			session.add(&sessionPartition{key: p.key, fetchParams: p.fetchParams,
				highWatermark: p.highWatermark(), logStartOffset: p.startOffset()})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.byID) >= s.max || !s.roomLocked(len(session.parts)) {
		if len(session.parts) > sessionPartitionsMax || !s.evictLocked(session, now) {
			return 0
		}
	}
	for id == 0 || s.byID[id] != nil {
		id = 1 + s.rand.Int32N(1<<31-1)
	}
	session.id = id
	s.byID[id] = session
	return id
}

// room tells whether the sessions may have more partitions.
func (s *FetchSessions) room(more int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomLocked(more)
}

func (s *FetchSessions) roomLocked(more int) bool {
	for _, have := range s.byID {
		more += int(have.size.Load())
	}
	return more <= sessionPartitionsMax
}

// evictLocked makes room for a session as Kafka does: the longest idle one goes
// when it was idle long enough, else the least worthy of those that are old (or,
// for a follower, of all consumers') unless that one is worthier.
func (s *FetchSessions) evictLocked(proposed *fetchSession, now time.Time) bool {
	var idle, least *fetchSession
	for _, have := range s.byID {
		if idle == nil || have.lastUsed.Before(idle.lastUsed) {
			idle = have
		}
		old := have.lastUsed.Sub(have.created) > sessionIdleMax
		if !old && (have.privileged || !proposed.privileged) {
			continue
		}
		if least == nil || have.worth(least) < 0 {
			least = have
		}
	}
	switch {
	case idle != nil && now.Sub(idle.lastUsed) > sessionIdleMax:
		delete(s.byID, idle.id)
	case least != nil && proposed.worth(least) >= 0:
		delete(s.byID, least.id)
	default:
		return false
	}
	return true
}

// worth compares sessions: a follower's before a consumer's, the larger before
// the smaller. A proposed session has id 0, which loses the last comparison.
func (s *fetchSession) worth(other *fetchSession) int {
	if s.privileged != other.privileged {
		if s.privileged {
			return 1
		}
		return -1
	}
	if c := cmp.Compare(s.size.Load(), other.size.Load()); c != 0 {
		return c
	}
	return cmp.Compare(s.id, other.id)
}
