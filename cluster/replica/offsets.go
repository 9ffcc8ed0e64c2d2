package replica

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// Kafka's special timestamps of ListOffsets.
const (
	TimestampLatest                = -1
	TimestampEarliest              = -2
	TimestampMax                   = -3
	TimestampEarliestLocal         = -4
	TimestampLatestTiered          = -5
	TimestampEarliestPendingUpload = -6
)

// OffsetQuery asks for an offset by time.
type OffsetQuery struct {
	// TimestampMs is a time or one of the special timestamps.
	TimestampMs int64
	LeaderEpoch int32
	// Follower asks for the log's end instead of what consumers may read;
	// Committed for the last stable offset.
	Follower, Committed bool
}

// unknownOffset is the answer to a search that found nothing.
var unknownOffset = storage.TimestampOffset{Offset: -1, TimestampMs: -1, LeaderEpoch: -1}

// Offset answers ListOffsets. Offset -1 means that there is no such record. It
// waits for the disk when it searches by time.
func (p *Partition) Offset(q OffsetQuery) (storage.TimestampOffset, error) {
	log, err := p.lead(q.LeaderEpoch)
	if err != nil {
		return unknownOffset, err
	}
	p.mu.Lock()
	err = p.checkLocked(q.LeaderEpoch)
	end, epoch, lagging := p.g.highWatermark, p.leaderEpoch, p.g.highWatermark < p.epochStart
	if q.Follower {
		end, lagging = p.g.logEnd, false
	}
	p.mu.Unlock()
	if err != nil {
		return unknownOffset, err
	}
	if q.Committed && !q.Follower {
		end = log.LastStableOffset(end)
	}
	switch q.TimestampMs {
	case TimestampLatest:
		if lagging {
			return unknownOffset, p.notAvailable()
		}
		return storage.TimestampOffset{Offset: end, TimestampMs: -1, LeaderEpoch: epoch}, nil
	case TimestampEarliest, TimestampEarliestLocal:
		return earliest(log), nil
	case TimestampLatestTiered, TimestampEarliestPendingUpload:
		return unknownOffset, nil // nothing is tiered
	}
	found, ok, err := p.search(log, q.TimestampMs)
	switch {
	case err != nil:
		return unknownOffset, err
	case ok && found.Offset < end:
		return found, nil
	case lagging:
		return unknownOffset, p.notAvailable()
	}
	return unknownOffset, nil
}

// OffsetsBefore answers ListOffsets v0, which looks at when files were written;
// storage.Log tells the rest. A consumer sees no offset beyond the high watermark.
func (p *Partition) OffsetsBefore(timestampMs int64, follower bool) ([]int64, error) {
	log, err := p.lead(-1)
	if err != nil {
		return nil, err
	}
	end := p.HighWatermark()
	offsets, err := log.OffsetsBefore(timestampMs)
	if err != nil {
		return nil, coded("list the segments of", p.tp, err)
	}
	beyond := 0
	for !follower && beyond < len(offsets) && offsets[beyond] > end {
		beyond++
	}
	if beyond > 0 {
		offsets = append([]int64{end}, offsets[beyond:]...)
	}
	return offsets, nil
}

func (p *Partition) search(log Log, timestampMs int64) (found storage.TimestampOffset, ok bool, err error) {
	if timestampMs == TimestampMax {
		found, ok, err = log.MaxTimestamp()
	} else {
		found, ok, err = log.OffsetForTimestamp(timestampMs)
	}
	if err != nil {
		return found, false, coded("search by time", p.tp, err)
	}
	return found, ok, nil
}

// notAvailable is the answer of a new leader whose followers have not caught up
// yet: an earlier leader may have told a later offset (KIP-207).
func (p *Partition) notAvailable() error {
	return protocol.Errorf(kerr.OffsetNotAvailable, "the high watermark of partition %v is still below the start of its leader epoch", p.tp)
}

func earliest(log Log) storage.TimestampOffset {
	logStart := log.LogStartOffset()
	return storage.TimestampOffset{Offset: logStart, TimestampMs: -1, LeaderEpoch: log.EpochAt(logStart)}
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch (KIP-101, 279): the newest epoch
// not after the asked one and its end, or -1 and -1.
func (p *Partition) EndOffsetForEpoch(clientEpoch, epoch int32) (EpochEnd, error) {
	none := EpochEnd{Epoch: -1, EndOffset: -1}
	log, err := p.lead(clientEpoch)
	if err != nil {
		return none, err
	}
	found, end := log.EndOffsetForEpoch(epoch)
	if found < 0 || end < 0 {
		return none, nil
	}
	return EpochEnd{Epoch: found, EndOffset: end}, nil
}

// LogStart is where the log starts, -1 while that can't be told without a wait.
func (p *Partition) LogStart() int64 {
	p.mu.Lock()
	log, ready := p.log, p.ready
	p.mu.Unlock()
	if !ready {
		return -1
	}
	return log.LogStartOffset()
}

// DeleteRecords moves the log's start to offset, -1 for the high watermark, and
// returns the new start. It waits for the disk.
func (p *Partition) DeleteRecords(offset int64) (lowWatermark int64, err error) {
	log, err := p.lead(-1)
	if err != nil {
		return -1, err
	}
	if !p.Config().Log.Delete {
		return -1, protocol.Errorf(kerr.PolicyViolation, "records of partition %v can't be deleted: its cleanup.policy has no delete", p.tp)
	}
	highWatermark := p.HighWatermark()
	if offset == -1 {
		offset = highWatermark
	}
	if offset < 0 || offset > highWatermark {
		return -1, p.outOfRange(offset, log.LogStartOffset(), highWatermark)
	}
	logStart, err := log.DeleteRecordsTo(offset)
	p.wakeStable(log)
	if err != nil {
		return -1, coded("delete records of", p.tp, err)
	}
	return logStart, nil
}

// OffsetLag is how far the log's end is behind the high watermark: 0 but for a
// log that lost its end.
func (p *Partition) OffsetLag() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.g.highWatermark-p.g.logEnd, 0)
}
