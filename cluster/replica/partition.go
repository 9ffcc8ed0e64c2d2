package replica

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// TopicConfig is what a topic's configuration means to its partitions.
type TopicConfig struct {
	Log storage.LogConfig
	// Batch is how a produced batch is checked and rewritten; NowMs is filled
	// in for each.
	Batch batch.Options
	// MinInSyncReplicas is min.insync.replicas.
	MinInSyncReplicas int
}

// Partition is one replica that this broker holds. Its methods are safe for
// concurrent use. Its mutex is never held over the disk; what waits for the disk
// says so.
type Partition struct {
	tp       storage.TopicPartition
	topicID  storage.TopicID
	internal bool
	m        *Manager
	// config is swapped whole; readers take no lock.
	config atomic.Pointer[TopicConfig]
	// turn has room for the one goroutine that opens the log or takes up a
	// role. It waits for the disk, so it is no mutex.
	turn chan struct{}
	// highWatermark is g's, for readers that take no lock.
	highWatermark atomic.Int64

	mu sync.Mutex
	// log is nil until the partition is used for the first time.
	log Log
	// ready says that the log is open and knows the leader epoch in force;
	// until then ensure has work to do.
	ready   bool
	deleted bool
	// openErr is why the log could not be opened; it is tried again at retryAt.
	openErr error
	retryAt time.Time
	// flushFailures counts failed flushes: a produce that waits for a flush
	// and sees another number than at its append has failed.
	flushFailures uint64

	leader, leaderEpoch int32
	// assigned is the leader epoch that the log knows of from us, -1 at first.
	assigned int32
	// leaderSince is the leader epoch at which this broker began to lead
	// without a break, -1 when it doesn't lead; epochStart is the log's end
	// when the epoch in force began.
	leaderSince int32
	epochStart  int64
	g           progress
	hot         hot
	// seq counts the changes that a parked request may be waiting for.
	seq uint64
	// unseenBytes were appended since the high watermark last was at the end of
	// the log: what a fetch gains when it is there again.
	unseenBytes int64
	// fetchers wait for the high watermark, tailers (followers) for the end of
	// the log, flushers and ackers for their own records to be on disk or below
	// the high watermark.
	// stableReaders wait for a transaction to end that hides what is there.
	fetchers, tailers, flushers, ackers, stableReaders park.List

	// stableWaited says that there are stableReaders; stableTold is the last
	// stable offset of which they were told.
	stableWaited atomic.Bool
	stableTold   atomic.Int64
}

func newPartition(m *Manager, tp storage.TopicPartition, t *metadata.Topic, cfg *TopicConfig) *Partition {
	p := &Partition{
		tp: tp, topicID: t.ID, internal: t.Internal, m: m, turn: make(chan struct{}, 1),
		leader: -1, leaderEpoch: -1, assigned: -1, leaderSince: -1,
	}
	p.config.Store(cfg)
	p.g.self, p.g.minISR = m.o.NodeID, cfg.MinInSyncReplicas
	return p
}

// TopicPartition names the partition.
func (p *Partition) TopicPartition() storage.TopicPartition { return p.tp }

// TopicID is the id of the topic that the partition belongs to.
func (p *Partition) TopicID() storage.TopicID { return p.topicID }

// Internal says that the topic is one of the broker's own.
func (p *Partition) Internal() bool { return p.internal }

// Config is the topic's configuration now; it never changes.
func (p *Partition) Config() *TopicConfig { return p.config.Load() }

// Leader is the partition's leader and leader epoch as this broker knows them.
func (p *Partition) Leader() (id, epoch int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leader, p.leaderEpoch
}

// HighWatermark is the end of what consumers may read. It is 0 before the log
// was used for the first time.
func (p *Partition) HighWatermark() int64 { return p.highWatermark.Load() }

// noteHighWatermark tells the log the high watermark, after the mutex was
// released. When others do so at the same time, whoever stores an older one sees
// that and stores again, so that the newest stays.
func (p *Partition) noteHighWatermark(log Log) {
	for {
		highWatermark := p.highWatermark.Load()
		log.SetHighWatermark(highWatermark)
		if p.highWatermark.Load() == highWatermark {
			break
		}
	}
	p.wakeStable(log)
}

// wakeStable wakes the read_committed readers when the last stable offset has
// moved. It only does so with the high watermark, or the log's start.
func (p *Partition) wakeStable(log Log) {
	if !p.stableWaited.Load() {
		return
	}
	stable := log.LastStableOffset(p.highWatermark.Load())
	if stable <= p.stableTold.Load() {
		return
	}
	var woken []*park.Waiter
	p.mu.Lock()
	if stable > p.stableTold.Load() {
		p.stableTold.Store(stable)
		woken = p.takeStableLocked(nil)
	}
	p.mu.Unlock()
	wakeAll(woken)
}

func (p *Partition) takeStableLocked(dst []*park.Waiter) []*park.Waiter {
	p.stableWaited.Store(false)
	return p.stableReaders.TakeAll(dst)
}

// Cold says that the next use of the partition reads files first.
func (p *Partition) Cold() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ready && !p.deleted && p.leads()
}

// leads says that the metadata wants this broker to lead; p.mu is held.
func (p *Partition) leads() bool { return p.leader == p.m.o.NodeID }

// checkLocked checks that this broker leads at the epoch that a client knows of,
// -1 for one that doesn't say (KIP-320).
func (p *Partition) checkLocked(clientEpoch int32) error {
	switch {
	case p.deleted:
		return protocol.Errorf(kerr.UnknownTopicOrPartition, "partition %v was deleted", p.tp)
	case clientEpoch >= 0 && clientEpoch < p.leaderEpoch:
		return protocol.Errorf(kerr.FencedLeaderEpoch, "partition %v has leader epoch %d, newer than %d", p.tp, p.leaderEpoch, clientEpoch)
	case clientEpoch > p.leaderEpoch:
		return protocol.Errorf(kerr.UnknownLeaderEpoch, "partition %v has leader epoch %d, older than %d", p.tp, p.leaderEpoch, clientEpoch)
	case !p.leads():
		return protocol.Errorf(kerr.NotLeaderForPartition, "partition %v is led by broker %d", p.tp, p.leader)
	}
	return nil
}

// lead gives the open log of a partition that this broker leads. It waits for
// the disk when the partition is Cold.
func (p *Partition) lead(clientEpoch int32) (Log, error) {
	p.mu.Lock()
	err, ready, log := p.checkLocked(clientEpoch), p.ready, p.log
	p.mu.Unlock()
	if err != nil || ready {
		return log, err
	}
	if err := p.ensure(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log, p.checkLocked(clientEpoch)
}

// wakeAll wakes waiters, after the partition's mutex was released.
func wakeAll(ws []*park.Waiter) {
	for _, w := range ws {
		w.Wake()
	}
}

// takeAllLocked takes everyone who waits, for a change that concerns all.
func (p *Partition) takeAllLocked(dst []*park.Waiter) []*park.Waiter {
	p.seq++
	p.stableTold.Store(-1) // offsets may be used again
	dst = p.takeStableLocked(dst)
	dst = p.ackers.TakeAll(dst)
	dst = p.flushers.TakeAll(dst)
	dst = p.tailers.TakeAll(dst)
	return p.fetchers.TakeAll(dst)
}

// advanceLocked moves the high watermark as far as the in-sync replicas allow
// and takes those whom that concerns.
func (p *Partition) advanceLocked(dst []*park.Waiter) []*park.Waiter {
	if p.leaderSince < 0 {
		return dst // only a leader knows how far the replicas are
	}
	moved := p.g.advanceHighWatermark()
	p.highWatermark.Store(p.g.highWatermark)
	if moved {
		p.seq++
		dst = p.ackers.TakeUpTo(p.g.highWatermark, dst)
	}
	switch {
	case p.g.highWatermark == p.g.logEnd && p.unseenBytes > 0:
		dst = p.fetchers.Credit(p.unseenBytes, dst)
		p.unseenBytes = 0
	case moved:
		// Which bytes became visible is not known: let everyone look.
		dst = p.fetchers.TakeAll(dst)
	}
	return dst
}
