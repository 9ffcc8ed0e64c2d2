package runtime

import (
	"log/slog"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/internal/machine"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

// Log is one partition of an internal topic as its leader sees it.
type Log interface {
	TopicID() [16]byte
	LogStartOffset() int64
	LogEndOffset() int64
	HighWatermark() int64
	// EndOffsetForEpoch is the newest leader epoch of the log that is not newer
	// than the given one, and where it ends; -1 when there is none.
	EndOffsetForEpoch(epoch int32) (foundEpoch int32, endOffset int64)
	// CompactedTo is where the part of the log ends that was compacted, -1 for none.
	CompactedTo() int64
	// Read returns batches, at least one, up to the log's end. The first may begin
	// before the offset, one that is not the first may be cut.
	Read(offset int64, maxBytes int) ([]byte, error)
	// Writable is why no append would succeed now (the partition is offline, the
	// disk is full, too few replicas are in sync), nil when one should.
	Writable() error
	// Append writes one batch, whose offsets and epoch the log fills in, as the
	// leader of that epoch. committed is called exactly once, from any goroutine
	// and maybe before Append returns, when the high watermark has passed the
	// batch or with the reason why that will not happen; not when Append fails.
	Append(leaderEpoch int32, batch []byte, committed func(error)) (firstOffset int64, err error)
	// WhenCommitted calls done likewise once the high watermark is at endOffset.
	WhenCommitted(leaderEpoch int32, endOffset int64, done func(error))
}

// KV is the store of the checkpoints; *kv.DB is one.
type KV interface {
	Get(key []byte) (value []byte, ok bool, err error)
	Apply(ops []kv.Op, sync bool) error
	Scan(prefix []byte, fn func(key, value []byte) bool) error
}

// Codec turns records into the bytes of the internal topic and back.
type Codec[R any] interface {
	// Encode is the record's key and value; a nil value is a tombstone.
	Encode(R) (key, value []byte)
	// Decode parses a record and keeps nothing of its arguments; ok is false for
	// kinds of records that the machine does not hold.
	Decode(key, value []byte) (r R, ok bool, err error)
}

// Options is what a Runtime needs. E are the machine's events, R its records, A
// its answers.
type Options[E, R, A any] struct {
	// Topic is the internal topic, for names.
	Topic string
	// Open finds a partition's log; it may wait for the disk.
	Open func(partition int32) (Log, error)
	// KV is nil to run without checkpoints; CheckpointPrefix is where they are.
	KV               KV
	CheckpointPrefix string
	Clock            clock.Clock
	Log              *slog.Logger
	// Metrics may be nil.
	Metrics *telemetry.Registry

	// New is an empty machine.
	New   func(partition int32) machine.Machine[E, R, A]
	Codec Codec[R]
	// Loaded and Fired are the events of a finished load and of a timer.
	Loaded func() E
	Fired  func(key string) E
	// CallOf is the call that an answer belongs to, 0 for an effect.
	CallOf func(A) uint64
	// Effect takes the answers that belong to no call: what the machine wants
	// done outside of it, once the log has the reason for it. It must not wait.
	// reply puts what came of it to the machine that asked, and to no other: what
	// a machine wanted before it was loaded anew is not heard of again. It is nil
	// for a machine without effects.
	Effect func(partition, leaderEpoch int32, a A, reply func(E))
	// LoadUsed loads every partition that has records as soon as this broker leads
	// it, one without a checkpoint too: its machine may have work to finish.
	LoadUsed bool
	// MayWrite tells which events are refused while the log takes no appends.
	MayWrite func(E) bool
	// Unwritable, where it is not nil, marks those that are not refused then: what they
	// would write has to wait.
	Unwritable func(E) E
	// ProducerOf, where it is not nil, tells in whose transaction an event's
	// records are, nil for plain records.
	ProducerOf func(E) *Producer
	// Written, where it is not nil, tells without opening it whether a partition
	// may have records; it may wait for the disk. One that has none is not loaded
	// to be told something.
	Written func(partition int32) bool
	// Observe, where it is not nil, sees a machine after each event, when its
	// records are replayed, and once more when the machine is gone.
	Observe func(m machine.Machine[E, R, A], gone bool)
	// MaxBatchBytes bounds one batch of an event whose records may be written as
	// several.
	MaxBatchBytes int
	// Go starts a shard's work; nil is the go statement. Tests run it in place.
	Go func(func())
}
