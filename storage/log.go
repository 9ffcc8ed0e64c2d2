package storage

import (
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/storage/producer"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// Log is one partition on disk. Its methods are safe for concurrent use.
//
// mu orders everything that changes the log and spans the appender's own write.
// Readers take no lock: they see the list of segments, the offsets and the
// bytes that were published. The maintenance token (a channel, not a mutex)
// orders what may take long: flush, truncation, retention, recovery, close; its
// holder takes mu for short whiles.
type Log struct {
	store   *Store
	tp      TopicPartition
	topicID TopicID
	dir     string
	cfg     atomic.Pointer[LogConfig]

	highWatermark atomic.Int64
	logStart      atomic.Int64
	logEnd        atomic.Int64
	// growingTo is where the log ends, or will once the append under way is done.
	// It moves before any byte of an append can be seen.
	growingTo atomic.Int64
	// durable is the offset up to which batches were synced; recoveryPoint the
	// one up to which indexes, epochs and producer state were as well.
	durable       atomic.Int64
	recoveryPoint atomic.Int64
	unflushed     atomic.Int64 // bytes past the recovery point
	// cleanedTo is where the last compaction ended, -1 when there was none.
	cleanedTo atomic.Int64

	loaded atomic.Bool
	// startKnown says that logStart is right although nothing was read yet.
	startKnown atomic.Bool
	segments   atomic.Pointer[[]*segment.Segment]
	// broken is why the log is offline; nil when it is not.
	broken atomic.Pointer[offline]
	dead   atomic.Bool // deleted or closed
	// cuts counts truncations, after which offsets are used again.
	cuts      atomic.Int64
	flushSoon atomic.Bool // a flush is on its way
	gaps      sync.Map    // base offsets of segments that a gap was told before

	maintenance chan struct{}
	// syncing is held (its one slot filled) by who syncs; syncErr, which belongs to
	// the holder, is why the last sync failed, nil again after a recovery.
	syncing chan struct{}
	syncErr error

	flush  flushQueue
	stable stability

	mu        sync.Mutex
	epochs    epochs
	epochsNew bool // changed since leader-epoch-checkpoint was written
	folderNew bool // the folder's entries changed since its last sync
	parentNew bool // the folder itself is not durable yet
	producers producer.Table
	snapshots []int64 // offsets of the .snapshot files, rising
	// endKnown says that logEnd is right although nothing was read yet.
	endKnown bool
	// rewrite asks the next recovery to write the unflushed bytes again.
	rewrite bool
	unclean bool
	// syncedTo is the recovery point that the last load began with.
	syncedTo int64
	// scannedBytes is what the last recovery read.
	scannedBytes int64
	rollAfter    int64 // segment.ms less its jitter, for the active segment
	// createdMs, of the active segment, and flushedMs are of elapsedMs.
	createdMs, flushedMs int64
	infos                []segment.BatchInfo
}

// TopicPartition names the log.
func (l *Log) TopicPartition() TopicPartition { return l.tp }

// TopicID is the topic's id as partition.metadata has it.
func (l *Log) TopicID() TopicID { return l.topicID }

// Dir is the partition's folder.
func (l *Log) Dir() string { return l.dir }

// Config is the configuration in force.
func (l *Log) Config() LogConfig { return *l.cfg.Load() }

// Reconfigure replaces the configuration.
func (l *Log) Reconfigure(cfg LogConfig) {
	c := cfg.normalised()
	was := l.cfg.Swap(&c)
	l.mu.Lock()
	l.rollAfter = l.store.rollAfter(c)
	l.mu.Unlock()
	if c.Compact && !was.Compact {
		l.store.cleaner.wake()
	}
}

// LogEndOffset is the offset of the next record.
func (l *Log) LogEndOffset() int64 {
	l.peekEnd()
	return l.logEnd.Load()
}

// LogStartOffset is the offset of the first record that may be read.
func (l *Log) LogStartOffset() int64 {
	l.peekEnd()
	return l.logStart.Load()
}

// peekEnd makes sure that start and end are known: from the checkpoints of a
// clean stop, or by loading. A log that can't be loaded keeps what it knows; its
// reads and appends say why.
func (l *Log) peekEnd() {
	if !l.loaded.Load() {
		_ = l.ensure(true)
	}
}

// CompactedTo is where the part of the log ends that was compacted, -1 when none was.
func (l *Log) CompactedTo() int64 { return l.cleanedTo.Load() }

// RecoveryPoint is the offset up to which everything is durable.
func (l *Log) RecoveryPoint() int64 { return l.recoveryPoint.Load() }

// HighWatermark is what SetHighWatermark was last told, or the checkpoint's
// value after a start.
func (l *Log) HighWatermark() int64 {
	l.peekEnd()
	return l.highWatermark.Load()
}

// SetHighWatermark notes the partition's high watermark: the store checkpoints
// it, and retention and DeleteRecordsTo do not pass it.
func (l *Log) SetHighWatermark(offset int64) {
	l.highWatermark.Store(offset)
	l.stable.below(offset)
}

// Err is why the partition is offline, nil when it is not.
func (l *Log) Err() error {
	if l.dead.Load() {
		return ErrClosed
	}
	if o := l.broken.Load(); o != nil {
		return o.err
	}
	return nil
}

// Writable is why no append would be taken now, nil when one should: the partition
// is offline, or the disk has no room.
func (l *Log) Writable() error {
	if err := l.Err(); err != nil {
		return err
	}
	if !l.store.hasRoom(0) {
		return l.store.refuseFull()
	}
	return nil
}

// SizeBytes is the size of the .log files.
func (l *Log) SizeBytes() (int64, error) {
	if err := l.ensure(false); err != nil {
		return 0, err
	}
	var n int64
	for _, s := range l.list() {
		n += s.SizeBytes()
	}
	return n, nil
}

// Segments is the number of segments.
func (l *Log) Segments() int { return len(l.list()) }

// Producers are the idempotent producers that the log remembers, by id.
func (l *Log) Producers() ([]ProducerState, error) {
	if err := l.ensure(false); err != nil {
		return nil, err
	}
	l.mu.Lock()
	entries := l.producers.Entries()
	l.mu.Unlock()
	states := make([]ProducerState, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		last, _ := e.Last()
		states = append(states, ProducerState{
			ProducerID: e.ProducerID, ProducerEpoch: e.Epoch, LastSequence: last.LastSequence,
			LastTimestampMs: e.LastTimestampMs, CoordinatorEpoch: e.CoordinatorEpoch,
			CurrentTxnFirstOffset: e.CurrentTxnFirstOffset,
		})
	}
	return states, nil
}

// list is the published list of segments; empty before the log is loaded.
func (l *Log) list() []*segment.Segment {
	if p := l.segments.Load(); p != nil {
		return *p
	}
	return nil
}

func (l *Log) publish(segments []*segment.Segment) { l.segments.Store(&segments) }

// active is the segment that is written.
func active(segments []*segment.Segment) *segment.Segment { return segments[len(segments)-1] }

// floorSegment is the position of the segment that may hold offset, or -1.
func floorSegment(segments []*segment.Segment, offset int64) int {
	// Most reads are near the end.
	if n := len(segments); n > 0 && segments[n-1].BaseOffset() <= offset {
		return n - 1
	}
	i, found := slices.BinarySearchFunc(segments, offset, func(s *segment.Segment, offset int64) int {
		switch {
		case s.BaseOffset() < offset:
			return -1
		case s.BaseOffset() > offset:
			return 1
		}
		return 0
	})
	if found {
		return i
	}
	return i - 1
}

// take waits for the maintenance token and returns its release.
func (l *Log) take() (release func()) {
	l.maintenance <- struct{}{}
	return func() { <-l.maintenance }
}

func (l *Log) path(name string) string { return filepath.Join(l.dir, name) }

func (l *Log) nowMs() int64 { return nowMs(l.store.env.Clock) }

// elapsedMs measures how long something takes; see clock.Clock.
func (l *Log) elapsedMs() int64 { return l.store.env.Clock.Elapsed().Milliseconds() }

func nowMs(c clock.Clock) int64 { return c.Now().UnixMilli() }
