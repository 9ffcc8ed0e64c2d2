package replica

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// AcksAll is acks=all: every in-sync replica has the records.
const AcksAll int16 = -1

// AppendOptions says how records are appended.
type AppendOptions struct {
	// Acks is 0, 1 or AcksAll.
	Acks int16
	// LeaderEpoch refuses the append at any other leader epoch; -1 takes any.
	LeaderEpoch int32
	// Internal marks a coordinator's own records.
	Internal bool
	// NoWait fails with storage.ErrBusy, and has done nothing, where the append
	// would have to wait for another one or for the log to load.
	NoWait bool
	// Guard is what StartVerification gave for a transactional batch.
	Guard storage.VerificationGuard
	// TransactionVersion is AppendMarker's.
	TransactionVersion int16
}

// Appended is an append that the leader has written. Acked says when its producer
// may hear of it.
type Appended struct {
	storage.AppendResult
	ticket ticket
	// done says that the producer could be answered right after the append.
	done bool
}

// ticket is what a producer waits for.
type ticket struct {
	end int64
	all bool
	// flush waits for the disk; failures is the partition's count of failed
	// flushes at the append.
	flush    bool
	failures uint64
	epoch    int32
}

// Append writes whole batches, which it rewrites in place, as the leader. It
// waits for the disk's page cache only, and for the log to open when the
// partition is Cold.
func (p *Partition) Append(batches []byte, o AppendOptions) (Appended, error) {
	log, epoch, err := p.appendable(o)
	if err != nil {
		return Appended{}, err
	}
	write := log.Append
	if o.NoWait {
		write = log.TryAppend
	}
	res, err := write(storage.AppendRequest{Batches: batches, LeaderEpoch: epoch, Internal: o.Internal, Guard: o.Guard, TransactionVersion: o.TransactionVersion})
	if errors.Is(err, storage.ErrBusy) {
		return Appended{}, err
	}
	if err != nil {
		err = coded("append to", p.tp, err)
		if errors.Is(err, kerr.KafkaStorageError) {
			p.fail()
		}
		return Appended{}, err
	}
	return p.appended(log, res, int64(len(batches)), epoch, o.Acks), nil
}

// appendable is the log to append to and the leader epoch to do it at.
func (p *Partition) appendable(o AppendOptions) (log Log, epoch int32, err error) {
	for {
		p.mu.Lock()
		err = p.checkLocked(o.LeaderEpoch)
		if err == nil && o.Acks == AcksAll && p.g.underMinISR() {
			err = p.notEnoughLocked()
		}
		log, epoch = p.log, p.leaderEpoch
		ready := p.ready
		p.mu.Unlock()
		switch {
		case err != nil || ready:
			return log, epoch, err
		case o.NoWait:
			return nil, 0, storage.ErrBusy
		}
		if err := p.ensure(); err != nil {
			return nil, 0, err
		}
	}
}

func (p *Partition) notEnoughLocked() error {
	return protocol.Errorf(kerr.NotEnoughReplicas, "partition %v has %d in-sync replicas of at least %d", p.tp, len(p.g.isr), p.g.effectiveMinISR())
}

// appended accounts for what the log has written and wakes who waited for it.
func (p *Partition) appended(log Log, res storage.AppendResult, sizeBytes int64, epoch int32, acks int16) Appended {
	end := res.LastOffset + 1
	flush := res.FlushBeforeAck
	t := ticket{end: end, all: acks == AcksAll, flush: flush, epoch: epoch}
	p.mu.Lock()
	t.failures = p.flushFailures
	var woken []*park.Waiter
	if !res.Duplicate {
		p.g.appended(end, flush)
		p.hot.appended(end, sizeBytes)
		p.unseenBytes += sizeBytes
		woken = p.tailers.TakeAll(nil)
	}
	woken = p.advanceLocked(woken)
	done, err := p.ackedLocked(&t)
	p.mu.Unlock()
	p.noteHighWatermark(log)
	wakeAll(woken)
	if flush {
		log.WhenFlushed(end, func(err error) { p.flushed(log, end, err) })
	}
	return Appended{AppendResult: res, ticket: t, done: done && err == nil}
}

// flushed runs when the group-committed fsync has ended.
func (p *Partition) flushed(log Log, end int64, err error) {
	p.mu.Lock()
	if err != nil {
		p.flushFailures++
		p.g.flushFailed()
		p.ready = false
		woken := p.takeAllLocked(nil)
		p.mu.Unlock()
		wakeAll(woken)
		return
	}
	p.g.flushed(end)
	woken := p.flushers.TakeUpTo(p.g.flushedEnd, nil)
	woken = p.advanceLocked(woken)
	p.mu.Unlock()
	p.noteHighWatermark(log)
	wakeAll(woken)
}

// Acked says whether the append's producer may be answered, and with what.
func (p *Partition) Acked(a *Appended) (done bool, err error) {
	if a.done {
		return true, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ackedLocked(&a.ticket)
}

// WatchAck is Acked that, while the answer is no, also puts w where it is woken
// when that may have changed.
func (p *Partition) WatchAck(a *Appended, w *park.Waiter, k *Watch) (done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done, err = p.ackedLocked(&a.ticket)
	if done {
		return done, err
	}
	k.p = p
	if k.list = &p.ackers; a.ticket.flush && p.g.flushedEnd < a.ticket.end {
		k.list = &p.flushers
	}
	k.list.Add(&k.link, w, a.ticket.end)
	return false, nil
}

func (p *Partition) ackedLocked(t *ticket) (done bool, err error) {
	switch {
	case p.deleted:
		return true, protocol.Errorf(kerr.UnknownTopicOrPartition, "partition %v was deleted", p.tp)
	case p.leaderSince < 0 || t.epoch < p.leaderSince:
		return true, protocol.Errorf(kerr.NotLeaderForPartition, "partition %v is led by broker %d", p.tp, p.leader)
	case t.flush && t.failures != p.flushFailures:
		return true, protocol.Errorf(kerr.KafkaStorageError, "flush %v: the records may not be on disk", p.tp)
	case t.flush && p.g.flushedEnd < t.end:
		return false, nil
	case !t.all:
		return true, nil
	case p.g.highWatermark < t.end:
		return false, nil
	case p.g.underMinISR():
		return true, protocol.Errorf(kerr.NotEnoughReplicasAfterAppend, "partition %v has %d in-sync replicas of at least %d", p.tp, len(p.g.isr), p.g.effectiveMinISR())
	}
	return true, nil
}
