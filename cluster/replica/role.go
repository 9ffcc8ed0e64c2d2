package replica

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// retryOpenAfter spaces the attempts to open a log that can't be opened, so that
// clients which retry don't keep a sick disk busy.
const retryOpenAfter = time.Second

// setState takes what the metadata says of the partition. It does not wait for
// the disk: the log learns of a new leader epoch from whoever uses the partition
// next, before it is used.
func (p *Partition) setState(now *metadata.Partition) (led, leads bool) {
	p.mu.Lock()
	led = p.leads()
	p.g.assign(slices.Clone(now.Replicas), slices.Clone(now.ISR))
	if now.LeaderEpoch != p.leaderEpoch || now.Leader != p.leader {
		p.ready = false
	}
	p.leader, p.leaderEpoch = now.Leader, now.LeaderEpoch
	leads = p.leads()
	if !leads {
		p.leaderSince = -1
	}
	// Waiting produces fail before anything else is served (T6).
	woken := p.takeAllLocked(nil)
	woken = p.advanceLocked(woken)
	log, ready := p.log, p.ready
	p.mu.Unlock()
	if ready {
		p.noteHighWatermark(log)
	}
	wakeAll(woken)
	return led, leads
}

// ensure opens the log when that is still to be done and takes up the role that
// the metadata gave. It waits for the disk.
func (p *Partition) ensure() error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	for {
		p.mu.Lock()
		log, epoch, done := p.log, p.leaderEpoch, p.ready || p.deleted || !p.leads()
		err := p.openErr
		if err != nil && !p.m.o.Clock.Now().Before(p.retryAt) {
			err = nil
		}
		p.mu.Unlock()
		switch {
		case done || err != nil:
			return err
		case log == nil:
			err = p.open()
		default:
			err = p.takeUp(log, epoch)
		}
		if err != nil {
			return err
		}
	}
}

// open opens the log; the caller has the turn.
func (p *Partition) open() error {
	log, err := p.m.o.Store.OpenLog(p.tp, p.topicID, p.Config().Log)
	if err != nil {
		err = coded("open", p.tp, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openErr = err
	if err != nil {
		p.retryAt = p.m.o.Clock.Now().Add(retryOpenAfter)
		return err
	}
	p.log = log
	return nil
}

// takeUp writes the leader epoch into the log, even when nothing will follow
// (T3), and starts the arithmetic from the log's ends. An append of the epoch
// before can no more reach the log after that, so the end is final.
func (p *Partition) takeUp(log Log, epoch int32) error {
	if err := p.assignEpoch(log, epoch); err != nil {
		return err
	}
	logStart, logEnd, checkpointed := log.LogStartOffset(), log.LogEndOffset(), log.HighWatermark()
	p.mu.Lock()
	if epoch != p.leaderEpoch || !p.leads() || p.deleted {
		p.mu.Unlock()
		return nil // the metadata has moved on; ensure looks again
	}
	if p.leaderSince < 0 {
		p.leaderSince = epoch
		p.g.lead(logStart, logEnd, checkpointed)
		p.hot.reset(logEnd)
	} else {
		p.g.resume(logEnd)
	}
	if p.assigned != epoch {
		p.epochStart, p.assigned = logEnd, epoch
	}
	p.ready = true
	woken := p.takeAllLocked(nil)
	woken = p.advanceLocked(woken)
	p.mu.Unlock()
	p.noteHighWatermark(log)
	wakeAll(woken)
	return nil
}

// assignEpoch tells the log of a leader epoch that it does not know. When only
// the log's ends are to be read again, after a failure, there is nothing to tell:
// a full disk does not stop reads.
func (p *Partition) assignEpoch(log Log, epoch int32) error {
	p.mu.Lock()
	known, fresh := p.assigned == epoch, p.leaderSince < 0
	p.mu.Unlock()
	if known {
		return nil
	}
	if err := log.AssignEpoch(epoch); err != nil {
		return coded("start leader epoch of", p.tp, err)
	}
	if fresh && p.Config().Log.FlushMessages == 1 && log.RecoveryPoint() < log.LogEndOffset() {
		// What a crash left in the page cache is not shown before it is on disk
		// either.
		if err := log.Flush(); err != nil {
			return coded("flush", p.tp, err)
		}
	}
	return nil
}

// configure takes a changed topic configuration.
func (p *Partition) configure(cfg *TopicConfig) {
	p.config.Store(cfg)
	p.mu.Lock()
	p.g.minISR = cfg.MinInSyncReplicas
	log, ready := p.log, p.ready
	woken := p.advanceLocked(nil)
	p.mu.Unlock()
	if log != nil {
		log.Reconfigure(cfg.Log)
	}
	if ready {
		p.noteHighWatermark(log)
	}
	wakeAll(woken)
}

// delete ends the partition: everyone who waits for it gets the error (S5).
func (p *Partition) delete() {
	p.mu.Lock()
	p.deleted, p.ready, p.leaderSince = true, false, -1
	woken := p.takeAllLocked(nil)
	p.mu.Unlock()
	wakeAll(woken)
}

// fail notes that the log did not do its work. Everyone who waits looks again
// and is told by the log itself; once it works again its ends are read anew.
func (p *Partition) fail() {
	p.mu.Lock()
	p.ready = false
	woken := p.takeAllLocked(nil)
	p.mu.Unlock()
	wakeAll(woken)
}
