package replica

import "github.com/barnabas-mq/barnabas/internal/park"

// Watch is one waiter's place at one partition. The zero value is at none.
type Watch struct {
	p    *Partition
	list *park.List
	link park.Link
}

// Stop leaves the partition; it is harmless when the waiter was woken already.
// Who looks again stops first, so that a Watch is at one place at most.
func (k *Watch) Stop() {
	if k.p == nil {
		return
	}
	k.p.mu.Lock()
	k.list.Remove(&k.link)
	k.p.mu.Unlock()
	k.p, k.list = nil, nil
}

// WatchRead puts w where it is woken when more can be read than r found. False
// means that this is so already: read again.
func (p *Partition) WatchRead(r *ReadResult, w *park.Waiter, k *Watch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seq != r.seq || p.deleted {
		return false
	}
	k.p, k.list = p, &p.fetchers
	switch {
	case r.follower:
		k.list = &p.tailers
	case r.unstable:
		k.list = &p.stableReaders
		p.stableWaited.Store(true)
	}
	k.list.Add(&k.link, w, 0)
	return true
}
