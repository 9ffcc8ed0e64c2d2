package replica

import "slices"

// progress is the arithmetic of one partition's replication: how far each
// replica is, and what follows for the high watermark. It has no lock, disk or
// clock. It is the same for one replica as for many.
type progress struct {
	self int32
	// replicas are all assigned brokers, isr those that the controller has
	// committed as in sync; self is in both while it leads.
	replicas, isr []int32
	// minISR is the topic's min.insync.replicas.
	minISR int

	// logEnd is the end of our own log. ackedEnd is as much of it as may count
	// for the high watermark: the same, or with flush.messages what is on disk.
	// ackedEnd <= logEnd.
	logEnd, ackedEnd int64
	// flushedEnd is what the log has flushed on our request; flushingEnd is
	// what was asked for. Nothing is awaited when they are equal.
	flushedEnd, flushingEnd int64
	// ends are the followers' log ends, as their fetches told.
	ends map[int32]int64
	// highWatermark never goes back while we lead. highWatermark <= ackedEnd.
	highWatermark int64
}

// effectiveMinISR caps min.insync.replicas by the number of replicas, as Kafka
// does: a topic with one replica takes acks=all whatever the setting says.
func (g *progress) effectiveMinISR() int { return min(g.minISR, len(g.replicas)) }

// underMinISR says that too few replicas are in sync for acks=all.
func (g *progress) underMinISR() bool { return len(g.isr) < g.effectiveMinISR() }

// appended notes that our log now reaches end. With flush, the new records
// count only once flushed reaches them. Appends may be reported in
// another order than they happened.
func (g *progress) appended(end int64, flush bool) {
	g.logEnd = max(g.logEnd, end)
	if flush {
		g.flushingEnd = max(g.flushingEnd, end)
		return
	}
	if g.flushedEnd >= g.flushingEnd {
		g.ackedEnd = g.logEnd
	}
}

// flushed notes that everything below end is on disk.
func (g *progress) flushed(end int64) {
	g.flushedEnd = max(g.flushedEnd, end)
	if g.flushedEnd >= g.flushingEnd {
		g.ackedEnd = g.logEnd
		return
	}
	g.ackedEnd = max(g.ackedEnd, min(g.flushedEnd, g.logEnd))
}

// follower notes a follower's log end; false when it is none of the replicas. An
// end may go back: a follower that lost its tail says so (KIP-966).
func (g *progress) follower(id int32, end int64) bool {
	if id == g.self || !slices.Contains(g.replicas, id) {
		return false
	}
	if g.ends == nil {
		g.ends = map[int32]int64{}
	}
	g.ends[id] = end
	return true
}

// advanceHighWatermark moves the high watermark to the smallest end of the
// in-sync replicas. It stands still while too few are in sync, and a follower
// that has not reported yet holds it back.
func (g *progress) advanceHighWatermark() (moved bool) {
	if g.underMinISR() {
		return false
	}
	end := g.ackedEnd
	for _, id := range g.isr {
		if id == g.self {
			continue
		}
		e, known := g.ends[id]
		if !known {
			return false
		}
		end = min(end, e)
	}
	if end <= g.highWatermark {
		return false
	}
	g.highWatermark = end
	return true
}

// lead starts a leader epoch: what followers said to an earlier leader counts no
// more.
func (g *progress) lead(logStart, logEnd, checkpointed int64) {
	g.logEnd, g.ackedEnd = logEnd, logEnd
	g.flushedEnd, g.flushingEnd = logEnd, logEnd
	g.highWatermark = min(max(checkpointed, logStart), logEnd)
	g.ends = nil
}

// flushFailed notes that what was to be flushed will not be.
func (g *progress) flushFailed() { g.flushingEnd = g.flushedEnd }

// resume goes on leading after the log was out of work, with the end that it has
// now.
func (g *progress) resume(logEnd int64) {
	g.logEnd = logEnd
	g.highWatermark = min(g.highWatermark, logEnd)
	g.flushedEnd, g.flushingEnd = min(g.flushedEnd, logEnd), min(g.flushingEnd, logEnd)
	if g.ackedEnd = min(g.ackedEnd, logEnd); g.flushedEnd >= g.flushingEnd {
		g.ackedEnd = logEnd
	}
}

// assign takes the committed replicas and ISR; what gone replicas said is
// forgotten.
func (g *progress) assign(replicas, isr []int32) {
	g.replicas, g.isr = replicas, isr
	for id := range g.ends {
		if !slices.Contains(replicas, id) {
			delete(g.ends, id)
		}
	}
}
