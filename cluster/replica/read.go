package replica

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// ReadRequest is one partition's part of a fetch.
type ReadRequest struct {
	Offset   int64
	MaxBytes int
	// AtLeastOne returns the first batch even when it is larger than MaxBytes
	// (KIP-74).
	AtLeastOne bool
	// Committed reads up to the last stable offset (read_committed).
	Committed bool
	// LeaderEpoch is the epoch that the client knows, -1 when it doesn't say.
	LeaderEpoch int32
	// LastFetchedEpoch is the epoch of the record before Offset, -1 when the
	// client doesn't say (KIP-595).
	LastFetchedEpoch int32
	// Follower is the broker that replicates, negative for a consumer.
	Follower int32
}

// ReadResult is what a read found. At most one of Data and Region is set.
type ReadResult struct {
	Data   []byte
	Region *storage.Region

	// Aborted are the aborted transactions that a Committed read has to know of.
	Aborted []storage.AbortedTxn

	HighWatermark, LastStableOffset, LogStartOffset int64
	// Diverging says where the reader's log parts from ours; nothing is read
	// then.
	Diverging *EpochEnd

	seq      uint64
	follower bool
	// unstable says that what the reader waits for may be there already, hidden
	// by a transaction that is open.
	unstable bool
}

// EpochEnd is the end of a leader epoch.
type EpochEnd struct {
	Epoch     int32
	EndOffset int64
}

// SizeBytes is the size of the records that were read.
func (r *ReadResult) SizeBytes() int {
	if r.Region != nil {
		return r.Region.Len()
	}
	return len(r.Data)
}

// Release gives back what the read holds; for a result that is not sent.
func (r *ReadResult) Release() {
	if r.Region != nil {
		r.Region.Release()
	}
	r.Data, r.Region, r.Aborted = nil, nil, nil
}

// Hot says that a read at offset won't wait for the disk: there is nothing to
// read, an error, or only what this process wrote lately.
func (p *Partition) Hot(offset int64, follower bool) bool {
	p.mu.Lock()
	log, ready, elsewhere := p.log, p.ready, p.deleted || !p.leads()
	end, hotFrom := p.g.highWatermark, p.hot.from()
	if follower {
		end = p.g.logEnd
	}
	p.mu.Unlock()
	if !ready {
		return elsewhere
	}
	// What is stable at the end is only known once the log was loaded.
	return (offset >= end || offset >= hotFrom) && log.Loaded()
}

// Read reads as a consumer, up to the high watermark, or as a follower, up to the
// end of the log; a follower's read also tells how far it is. It waits for the
// disk unless Hot.
func (p *Partition) Read(r ReadRequest) (ReadResult, error) {
	log, err := p.lead(r.LeaderEpoch)
	if err != nil {
		return ReadResult{}, err
	}
	p.mu.Lock()
	err = p.checkLocked(r.LeaderEpoch)
	res := ReadResult{HighWatermark: p.g.highWatermark, seq: p.seq, follower: r.Follower >= 0}
	logEnd := p.g.logEnd
	p.mu.Unlock()
	if err != nil {
		return ReadResult{}, err
	}
	res.LastStableOffset, res.LogStartOffset = log.LastStableOffset(res.HighWatermark), log.LogStartOffset()
	if r.Offset < res.LogStartOffset || r.Offset > logEnd {
		return ReadResult{}, p.outOfRange(r.Offset, res.LogStartOffset, logEnd)
	}
	if r.LastFetchedEpoch >= 0 {
		if err := p.diverge(log, r, &res); err != nil || res.Diverging != nil {
			return res, err
		}
	}
	limit := res.HighWatermark
	switch {
	case res.follower:
		limit = logEnd
	case r.Committed:
		limit, res.unstable = res.LastStableOffset, res.LastStableOffset < res.HighWatermark
	}
	if err := p.readLog(log, r, limit, &res); err != nil {
		return ReadResult{}, err
	}
	if res.follower {
		if err := p.followerAt(log, r.Follower, r.Offset); err != nil {
			res.Release()
			return ReadResult{}, err
		}
	}
	return res, nil
}

func (p *Partition) readLog(log Log, r ReadRequest, limit int64, res *ReadResult) error {
	if r.Offset >= limit || r.MaxBytes <= 0 && !r.AtLeastOne {
		return nil
	}
	got, err := log.Read(storage.ReadRequest{Offset: r.Offset, Limit: limit, MaxBytes: r.MaxBytes, AtLeastOne: r.AtLeastOne,
		Aborted: r.Committed && r.Follower < 0})
	if err != nil {
		err = coded("read", p.tp, err)
		if errors.Is(err, kerr.KafkaStorageError) {
			p.fail()
		}
		return err
	}
	res.Data, res.Region, res.Aborted, res.LogStartOffset = got.Data, got.Region, got.Aborted, got.LogStartOffset
	return nil
}

func (p *Partition) outOfRange(offset, logStart, logEnd int64) error {
	return protocol.Errorf(kerr.OffsetOutOfRange, "offset %d of partition %v is not within %d and %d", offset, p.tp, logStart, logEnd)
}

// diverge compares the epoch of the last record that the reader has with our
// epochs (KIP-595).
func (p *Partition) diverge(log Log, r ReadRequest, res *ReadResult) error {
	epoch, end := log.EndOffsetForEpoch(r.LastFetchedEpoch)
	if epoch < 0 || end < 0 {
		return protocol.Errorf(kerr.OffsetOutOfRange, "the end of leader epoch %d of partition %v is not known", r.LastFetchedEpoch, p.tp)
	}
	if epoch < r.LastFetchedEpoch || end < r.Offset {
		res.Diverging = &EpochEnd{Epoch: epoch, EndOffset: end}
	}
	return nil
}

// followerAt notes that a follower has everything below offset.
func (p *Partition) followerAt(log Log, id int32, offset int64) error {
	p.mu.Lock()
	if !p.g.follower(id, offset) {
		p.mu.Unlock()
		return protocol.Errorf(kerr.NotLeaderForPartition, "broker %d is no replica of partition %v", id, p.tp)
	}
	woken := p.advanceLocked([]*park.Waiter(nil))
	p.mu.Unlock()
	p.noteHighWatermark(log)
	wakeAll(woken)
	return nil
}
