package storage

import (
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the partition's folder name, `<topic>-<partition>`.
func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// TopicID is a topic's 16-byte id; the zero id means none.
type TopicID = [16]byte

// LogConfig is what one partition needs to know of its topic's configuration.
// -1 means no limit wherever Kafka's key allows -1.
type LogConfig struct {
	SegmentBytes       int64
	SegmentMs          int64
	SegmentJitterMs    int64
	SegmentIndexBytes  int64
	IndexIntervalBytes int64
	RetentionMs        int64
	RetentionBytes     int64
	FlushMessages      int64
	FlushMs            int64
	FileDeleteDelayMs  int64
	// Compact and Delete are the two halves of cleanup.policy.
	Compact, Delete   bool
	DeleteRetentionMs int64
	// MinCompactionLagMs and MaxCompactionLagMs bound the age of the records that
	// compaction takes, MinCleanableRatio is the dirty part that it waits for.
	MinCompactionLagMs, MaxCompactionLagMs int64
	MinCleanableRatio                      float64
	Preallocate                            bool
	// LogAppendTime is message.timestamp.type=LogAppendTime.
	LogAppendTime bool
	// VerifyTransactions is transaction.partition.verification.enable: the first
	// batch of a transaction needs a guard (KIP-890).
	VerifyTransactions bool
}

// AppendRequest is one append to a partition's log.
type AppendRequest struct {
	// Batches are whole v2 batches that package batch has validated. The log
	// writes base offsets and leader epochs into them (both lie outside the
	// CRC), or checks them when Replicated.
	Batches []byte
	// LeaderEpoch is the epoch of the leader that appends; an epoch older than
	// the log's newest is refused with ErrFencedEpoch.
	LeaderEpoch int32
	// Replicated keeps the offsets and epochs that the batches carry.
	Replicated bool
	// Internal marks a coordinator's own append: of its producer only the epoch is
	// checked, and it may use a part of the reserve.
	Internal bool
	// Guard is what a transactional batch was verified under (KIP-890); zero where
	// its transaction is open in this partition, and for all other batches.
	Guard VerificationGuard
	// TransactionVersion is that of the transaction which a marker ends. From 2 on
	// its epoch must be newer than the one of the records (KIP-890, 1228).
	TransactionVersion int16
}

// VerificationGuard stands for one verification of a transaction in a partition
// (KIP-890): between its start and the append no marker may have come.
type VerificationGuard uint64

// Verification is the batch for which a verification starts.
type Verification struct {
	ProducerID    int64
	ProducerEpoch int16
	// BaseSequence is the batch's first sequence number, batch.NoSequence for a
	// coordinator's records.
	BaseSequence int32
	// EpochBump says that the producer's epoch is bumped at the end of every
	// transaction (transactions v2), so that a producer without state starts at
	// sequence number 0.
	EpochBump bool
}

// AppendResult tells where an append went.
type AppendResult struct {
	FirstOffset, LastOffset int64
	LogStartOffset          int64
	// Duplicate means that an idempotent producer repeated a batch: nothing was
	// written and the offsets are those of the first time.
	Duplicate bool
	// FlushBeforeAck means that flush.messages asks for an fsync before anyone
	// hears of the records: wait on Log.WhenFlushed(LastOffset+1).
	FlushBeforeAck bool
}

// ReadRequest is one read of a partition's log.
type ReadRequest struct {
	// Offset is the first wanted offset. The batch that holds it is returned
	// whole, so records before it may be included, as in Kafka.
	Offset int64
	// Limit is the first offset that must not be served: the high watermark,
	// the last stable offset or the log end.
	Limit    int64
	MaxBytes int
	// AtLeastOne returns the first batch even when it is larger than MaxBytes.
	AtLeastOne bool
	// Aborted asks for the aborted transactions among what is read.
	Aborted bool
}

// AbortedTxn is an aborted transaction: of its producer's records from FirstOffset
// on, up to the marker at LastOffset, none counts.
type AbortedTxn = segment.AbortedTxn

// ReadResult is what a read found. At most one of Data and Region is set; both
// are nil when there is nothing to read.
type ReadResult struct {
	// Data are whole batches; the caller owns it.
	Data []byte
	// Region references a segment for large reads; the caller releases it. Its
	// last batch may be cut at MaxBytes, as in Kafka.
	Region *Region
	// Aborted are the aborted transactions that were asked for, in the order of
	// their markers. Some may concern only what follows.
	Aborted []AbortedTxn
	// LogStartOffset and LogEndOffset are those of the moment of the read.
	LogStartOffset, LogEndOffset int64
}

// TimestampOffset is the answer to a search by time.
type TimestampOffset struct {
	Offset      int64
	TimestampMs int64
	LeaderEpoch int32
}

// ProducerState is what a log remembers of one idempotent producer.
type ProducerState struct {
	ProducerID            int64
	ProducerEpoch         int16
	LastSequence          int32
	LastTimestampMs       int64
	CoordinatorEpoch      int32
	CurrentTxnFirstOffset int64
}

// StoreConfig bounds what one data directory uses.
type StoreConfig struct {
	// FlushBehindBytes bounds the bytes past recovery points over all logs.
	FlushBehindBytes int64
	// ReserveBytes is the free space below which appends are refused, 0 for the
	// default and negative for none.
	ReserveBytes int64
	// OpenFiles bounds the open segment files; MappedBytes the live maps.
	OpenFiles   int
	MappedBytes int64
	// RetentionCheck is how often retention, expiry and deletion run.
	RetentionCheck time.Duration
	// CheckpointEvery is how often recovery points and high watermarks are
	// written.
	CheckpointEvery time.Duration
	// ProducerIDExpirationMs is producer.id.expiration.ms.
	ProducerIDExpirationMs int64
	// TransactionMaxTimeoutMs is transaction.max.timeout.ms, after which, and five
	// minutes, an open transaction counts as late.
	TransactionMaxTimeoutMs int64
	// RecoveryThreads is num.recovery.threads.per.data.dir.
	RecoveryThreads int
	// Cleaner is about compaction.
	Cleaner CleanerConfig
}
