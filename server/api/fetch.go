package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/protocol"
)

// readCommitted is Kafka's number of the isolation level.
const readCommitted = 1

// fetch serves Fetch v0 to v18: long polls, sessions (KIP-227), topic ids
// (KIP-516), leader epochs (KIP-320), diverging epochs (KIP-595), leaders and
// endpoints (KIP-951).
func (h *Handlers) fetch(c *Call, req *kmsg.FetchRequest, _ *kmsg.FetchResponse) {
	if f, ok := c.Net.State.(*fetchCall); ok {
		f.c = c
		f.first()
		return
	}
	if c.Net.OnLoop() && (req.Version < firstBatchFetch || h.Sessions.partitions(req.SessionID) > inlineParts) {
		c.Net.State = requeued{}
		c.Net.Requeue()
		return
	}
	follower := req.ReplicaID
	if req.Version >= 15 {
		follower = req.ReplicaState.ID
	}
	f := &fetchCall{
		h: h, c: c, img: h.Image(), version: req.Version, follower: follower,
		wait:      time.Duration(req.MaxWaitMillis) * time.Millisecond,
		maxBytes:  min(int(req.MaxBytes), h.FetchMaxBytes()),
		committed: req.IsolationLevel == readCommitted,
	}
	if f.version < firstBatchFetch {
		f.old, f.maxBytes = &oldFetch{deadline: c.start.Add(f.wait)}, min(f.maxBytes, oldAnswerMaxBytes)
	}
	f.minBytes = min(int(req.MinBytes), f.maxBytes)
	ctx, parts, err := h.Sessions.begin(req, follower >= 0)
	if err != nil {
		f.refuse(err, 0)
		return
	}
	if ctx.session != nil { // what the request itself names is charged already
		c.Net.Charge(len(parts) * fetchPartBytes)
	}
	f.ctx, f.parts, f.parked = ctx, parts, parkedOf(c)
	f.resolve()
	if c.Net.OnLoop() && !f.hot() {
		// Records may have to come from the disk: not on an event loop. On the executor
		// the client's next request also waits until this one is read, and the one
		// after until it has taken the answer, however many it sends at once.
		c.Net.State = f
		c.Net.Requeue()
		return
	}
	f.first()
}

// inlineParts is how many partitions of a session may be gone through on an event
// loop: a fraction of a millisecond.
const inlineParts = 1000

// fetchPartBytes is about what a partition takes while its Fetch is served.
const fetchPartBytes = 256

// fetchCall is one Fetch on its way. One goroutine at a time works on it: the
// handler's, then the pool's.
type fetchCall struct {
	h       *Handlers
	c       *Call
	img     *metadata.Image
	version int16
	// follower is the broker that replicates, negative for a consumer.
	follower           int32
	wait, throttle     time.Duration
	minBytes, maxBytes int
	committed          bool
	ctx                fetchContext
	parts              []fetchPart
	// old is nil from firstBatchFetch on.
	old *oldFetch

	waiter  *park.Waiter
	watches []replica.Watch
	parked  *parkedCalls
}

// fetchPart is one partition of a Fetch.
type fetchPart struct {
	key sessionKey
	fetchParams
	// cached is the partition's entry in the session, if there is one.
	cached *sessionPartition
	// partition is nil for one that is not here; refused is why.
	partition *replica.Partition
	refused   error

	// read is what was found; err is why nothing was.
	read replica.ReadResult
	err  error
	// leader is told with an error that the leader explains (KIP-951).
	leader, leaderEpochNow int32
}

func (p *fetchPart) sizeBytes() int { return p.read.SizeBytes() }

// resolve finds the partitions.
func (f *fetchCall) resolve() {
	for i := range f.parts {
		p := &f.parts[i]
		p.leader, p.leaderEpochNow = -1, -1
		if f.version >= 13 {
			_, p.partition, p.refused = f.h.partitionByID(f.img, p.key.id, p.key.partition)
		} else {
			p.partition, p.refused = f.h.partition(f.img, p.key.topic, p.key.partition)
		}
	}
}

// hot says that no read will wait for the disk.
func (f *fetchCall) hot() bool {
	for i := range f.parts {
		// A comparison of epochs takes the log's lock, which spans writes.
		if p := &f.parts[i]; p.partition != nil && (p.lastFetchedEpoch >= 0 || !p.partition.Hot(p.offset, f.follower >= 0)) {
			return false
		}
	}
	return true
}

// hastyWait is how long the client of a fetch that may not wait is to do so itself
// (KIP-219): else it would ask again and again.
const hastyWait = 100 * time.Millisecond

// first reads once, and parks the request when that is not enough. A large one is
// answered all the same where memory is short: its client asks again.
func (f *fetchCall) first() {
	f.readFirst()
	if f.wait <= 0 || f.enough() {
		f.reply()
		return
	}
	if !f.c.Net.MayWait(0) {
		f.throttle = min(f.wait, hastyWait)
		f.reply()
		return
	}
	f.letGo() // what was read is read again
	f.watches = make([]replica.Watch, len(f.parts))
	f.waiter = f.h.Waits.NewPoll(func() (done bool) {
		done = true
		f.h.guard(f.c, func() { done = f.again() })
		return done
	})
	if !f.parked.add(f.waiter) {
		f.release()
		f.c.NoReply() // the connection has closed
		return
	}
	f.watch()
	f.waiter.Park(f.wait)
}

// coldReads is how many fetches read at once what may have to come from the disk: each
// keeps a thread of the system until it has, of which a process has so many only.
const coldReads = 16

func (f *fetchCall) readFirst() {
	if !f.c.Net.OnLoop() && !f.hot() {
		f.h.cold <- struct{}{}
		defer func() { <-f.h.cold }()
	}
	f.read()
}

// again runs when something has changed or the time is over.
func (f *fetchCall) again() (done bool) {
	for i := range f.watches {
		f.watches[i].Stop()
	}
	if !f.parked.open() {
		f.c.NoReply()
		return true
	}
	if f.old != nil {
		f.againOld()
		return true
	}
	f.read()
	if f.waiter.Expired() || f.enough() {
		f.parked.remove(f.waiter)
		f.reply()
		return true
	}
	f.watch()
	return false
}

// read reads every partition in order. The response limit counts over all of
// them, and the first batch of the first that has one is always whole (KIP-74).
func (f *fetchCall) read() {
	left, atLeastOne := f.maxBytes, true
	for i := range f.parts {
		p := &f.parts[i]
		p.read, p.err = replica.ReadResult{}, p.refused
		if p.partition == nil {
			continue
		}
		r := f.request(p, left, atLeastOne)
		if f.version < firstZstdFetch {
			p.read, p.err = f.readOlder(p.partition, r)
		} else {
			p.read, p.err = p.partition.Read(r)
		}
		if n := p.sizeBytes(); n > 0 {
			left, atLeastOne = max(left-n, 0), false
		}
	}
	if f.old != nil {
		f.convert()
	}
}

// request is how a partition is read while leftBytes of the answer are left.
func (f *fetchCall) request(p *fetchPart, leftBytes int, atLeastOne bool) replica.ReadRequest {
	return replica.ReadRequest{
		Offset: p.offset, MaxBytes: min(int(p.maxBytes), leftBytes), AtLeastOne: atLeastOne, Committed: f.committed,
		LeaderEpoch: p.leaderEpoch, LastFetchedEpoch: p.lastFetchedEpoch,
		Follower: f.follower,
	}
}

// enough says that the request is answered now: there is enough to read, an error
// or a divergence to tell, or nothing that could change. A partition that was not
// found does not count, as in Kafka, so that a client with one in its session
// still polls.
func (f *fetchCall) enough() bool {
	waiting := false
	for i := range f.parts {
		p := &f.parts[i]
		if p.partition == nil {
			continue
		}
		if p.err != nil || p.read.Diverging != nil {
			return true
		}
		waiting = true
	}
	return !waiting || f.got() >= f.minBytes
}

func (f *fetchCall) got() int {
	n := 0
	for i := range f.parts {
		n += f.parts[i].sizeBytes()
	}
	return n
}

// watch registers at every partition. What was read is given back: it is read
// again when there is more.
func (f *fetchCall) watch() {
	f.waiter.Need(int64(f.minBytes - f.got()))
	for i := range f.parts {
		p := &f.parts[i]
		p.read.Release()
		if p.partition != nil && !p.partition.WatchRead(&p.read, f.waiter, &f.watches[i]) {
			f.waiter.Wake()
		}
	}
}

// release gives back what was read and is not sent.
func (f *fetchCall) release() {
	for i := range f.parts {
		f.parts[i].read.Release()
	}
}

// refuse answers with an error of the session.
func (f *fetchCall) refuse(err *kerr.Error, sessionID int32) {
	f.c.CountError(err.Code)
	f.c.ReplyFrame(encodeFetch(f.c.Header, &fetchAnswer{version: f.version, errorCode: err.Code, sessionID: sessionID}))
}

func (f *fetchCall) reply() {
	var nodes []node
	for i := range f.parts {
		p := &f.parts[i]
		if p.err == nil {
			continue
		}
		code := knownCode(protocol.Code(p.err), f.version, firstStorageErrorFetch)
		f.c.CountError(code)
		if f.version < 16 || code != kerr.NotLeaderForPartition.Code && code != kerr.FencedLeaderEpoch.Code {
			continue
		}
		img := f.h.Image()
		if at, ok := leaderOf(img, p.key.topic, p.key.id, p.key.partition); ok {
			p.leader, p.leaderEpochNow = at.Leader, at.LeaderEpoch
			if f.follower < 0 { // brokers know each other
				nodes = f.h.addNode(nodes, f.c, img, at.Leader)
			}
		}
	}
	sessionID, answer, err := f.ctx.end(f.parts)
	if err != nil {
		f.release()
		f.refuse(err, sessionID)
		return
	}
	frame := encodeFetch(f.c.Header, &fetchAnswer{
		version: f.version, sessionID: sessionID, throttle: f.throttle, parts: answer, nodes: nodes, committed: f.committed,
	})
	if f.old != nil {
		frame.Sent = f.letGo
	}
	f.c.ReplyFrame(frame)
}
