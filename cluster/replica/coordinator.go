package replica

import (
	"errors"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// CoordinatorLog is a partition of an internal topic as its coordinator uses it.
// It has the shape of the coordinators' own interface.
type CoordinatorLog struct {
	p   *Partition
	log Log
}

// CoordinatorLog opens a partition that this broker leads. It waits for the
// disk.
func (m *Manager) CoordinatorLog(topic string, partition int32) (*CoordinatorLog, error) {
	p, ok := m.Partition(topic, partition)
	if !ok {
		return nil, protocol.Errorf(kerr.NotLeaderForPartition, "this broker has no replica of %s-%d", topic, partition)
	}
	log, err := p.lead(-1)
	if err != nil {
		return nil, err
	}
	return &CoordinatorLog{p: p, log: log}, nil
}

// Written tells whether a partition may have records, without opening it.
func (m *Manager) Written(topic string, partition int32) bool {
	p, ok := m.Partition(topic, partition)
	if !ok {
		return false
	}
	p.mu.Lock()
	log := p.log
	p.mu.Unlock()
	if log == nil {
		return m.o.Store.Found(p.tp)
	}
	return log.LogEndOffset() > 0
}

// TopicID is the id of the internal topic.
func (c *CoordinatorLog) TopicID() storage.TopicID { return c.p.topicID }

// LogStartOffset is the first offset that may be read.
func (c *CoordinatorLog) LogStartOffset() int64 { return c.log.LogStartOffset() }

// LogEndOffset is the offset of the next record.
func (c *CoordinatorLog) LogEndOffset() int64 { return c.log.LogEndOffset() }

// HighWatermark is the end of what is committed.
func (c *CoordinatorLog) HighWatermark() int64 { return c.p.HighWatermark() }

// EndOffsetForEpoch is the newest leader epoch that is not newer than epoch, and
// where it ends; -1 when there is none.
func (c *CoordinatorLog) EndOffsetForEpoch(epoch int32) (foundEpoch int32, endOffset int64) {
	return c.log.EndOffsetForEpoch(epoch)
}

// CompactedTo is where the part of the log ends that was compacted, -1 for none.
func (c *CoordinatorLog) CompactedTo() int64 { return c.log.CompactedTo() }

// Read returns whole batches, at least one, up to the log's end; nothing at the
// end.
func (c *CoordinatorLog) Read(offset int64, maxBytes int) ([]byte, error) {
	res, err := c.log.Read(storage.ReadRequest{Offset: offset, Limit: c.log.LogEndOffset(), MaxBytes: maxBytes, AtLeastOne: true})
	if err != nil {
		return nil, coded("read", c.p.tp, err)
	}
	if res.Region == nil {
		return res.Data, nil
	}
	defer res.Region.Release()
	b := make([]byte, res.Region.Len())
	if _, err := res.Region.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, coded("read", c.p.tp, err)
	}
	return b, nil
}

// Writable is why no append would succeed now, nil when one should.
func (c *CoordinatorLog) Writable() error {
	if err := c.log.Writable(); err != nil {
		return coded("write to", c.p.tp, err)
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if err := c.p.checkLocked(-1); err != nil {
		return err
	}
	if c.p.g.underMinISR() {
		return c.p.notEnoughLocked()
	}
	return nil
}

// Append writes one batch as the leader of leaderEpoch. committed is called once
// the high watermark has passed it, or with why it will not; not when Append
// fails.
func (c *CoordinatorLog) Append(leaderEpoch int32, batch []byte, committed func(error)) (firstOffset int64, err error) {
	a, err := c.p.Append(batch, AppendOptions{Acks: AcksAll, LeaderEpoch: leaderEpoch, Internal: true})
	if err != nil {
		return -1, err
	}
	c.p.whenAcked(a, committed)
	return a.FirstOffset, nil
}

// WhenCommitted calls done once the high watermark is at endOffset, or with why
// it will not get there in this leader epoch.
func (c *CoordinatorLog) WhenCommitted(leaderEpoch int32, endOffset int64, done func(error)) {
	c.p.whenAcked(Appended{ticket: ticket{end: endOffset, all: true, epoch: leaderEpoch}}, done)
}

// whenAcked calls done with the end of an append, at once or from the pool.
func (p *Partition) whenAcked(a Appended, done func(error)) {
	if ok, err := p.Acked(&a); ok {
		done(err)
		return
	}
	var w *park.Waiter
	k := new(Watch)
	w = p.m.o.Pool.NewWaiter(func() bool {
		k.Stop()
		ok, err := p.WatchAck(&a, w, k)
		if ok {
			done(err)
		}
		return ok
	})
	w.Wake()
	w.Park(park.Forever)
}
