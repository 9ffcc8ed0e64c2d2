package replica

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// Log is what a partition needs of its storage log; *storage.Log is one.
type Log interface {
	Append(storage.AppendRequest) (storage.AppendResult, error)
	// TryAppend is Append that fails with storage.ErrBusy instead of waiting.
	TryAppend(storage.AppendRequest) (storage.AppendResult, error)
	// StartVerification begins the verification of a transactional append, with
	// noWait only where that needs no wait.
	StartVerification(v storage.Verification, noWait bool) (storage.VerificationGuard, error)
	Read(storage.ReadRequest) (storage.ReadResult, error)
	LogStartOffset() int64
	LogEndOffset() int64
	HighWatermark() int64
	SetHighWatermark(highWatermark int64)
	// LastStableOffset is what read_committed may see up to at a high watermark.
	// It waits for the disk when the log is not Loaded.
	LastStableOffset(highWatermark int64) int64
	// Loaded says that a read at the end of the log needs no disk.
	Loaded() bool
	// RecoveryPoint is the offset below which everything is on disk.
	RecoveryPoint() int64
	Flush() error
	// WhenFlushed calls f once everything below upTo is on disk, or with the
	// error that prevents it; on the flusher's goroutine or at once.
	WhenFlushed(upTo int64, f func(error))
	OffsetForTimestamp(timestampMs int64) (storage.TimestampOffset, bool, error)
	MaxTimestamp() (storage.TimestampOffset, bool, error)
	OffsetsBefore(timestampMs int64) ([]int64, error)
	// EpochAt is the leader epoch of the record at an offset, -1 when unknown.
	EpochAt(offset int64) int32
	EndOffsetForEpoch(epoch int32) (foundEpoch int32, endOffset int64)
	CompactedTo() int64
	AssignEpoch(epoch int32) error
	// Producers are those with an id that the log remembers.
	Producers() ([]storage.ProducerState, error)
	DeleteRecordsTo(offset int64) (logStartOffset int64, err error)
	Reconfigure(storage.LogConfig)
	// Writable is why the log takes no append now, nil when it should.
	Writable() error
}

var _ Log = (*storage.Log)(nil)

// Store opens and deletes logs; StoreOf makes one of a *storage.Store.
type Store interface {
	OpenLog(tp storage.TopicPartition, id storage.TopicID, cfg storage.LogConfig) (Log, error)
	Delete(tp storage.TopicPartition) error
	// Found tells whether a partition that is not open has a folder.
	Found(tp storage.TopicPartition) bool
}

type storeOf struct{ *storage.Store }

// StoreOf is a storage's store as a Manager uses it.
func StoreOf(s *storage.Store) Store { return storeOf{s} }

func (s storeOf) OpenLog(tp storage.TopicPartition, id storage.TopicID, cfg storage.LogConfig) (Log, error) {
	l, err := s.Store.OpenLog(tp, id, cfg)
	if err != nil {
		return nil, err // no *storage.Log that is nil inside a Log that isn't
	}
	return l, nil
}

// coded gives an error of the storage a Kafka code, which most have, and says
// what was done.
func coded(op string, tp storage.TopicPartition, err error) error {
	var e *protocol.Error
	if errors.As(err, &e) {
		return fmt.Errorf("%s %v: %w", op, tp, err)
	}
	return protocol.Errorf(kerr.KafkaStorageError, "%s %v: %w", op, tp, err)
}
