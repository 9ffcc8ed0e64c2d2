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
	Read(storage.ReadRequest) (storage.ReadResult, error)
	LogStartOffset() int64
	LogEndOffset() int64
	HighWatermark() int64
	SetHighWatermark(highWatermark int64)
	// WhenFlushed calls f once everything below upTo is on disk, or with the
	// error that prevents it; on the flusher's goroutine or at once.
	WhenFlushed(upTo int64, f func(error))
	OffsetForTimestamp(timestampMs int64) (storage.TimestampOffset, bool, error)
	MaxTimestamp() (storage.TimestampOffset, bool, error)
	EndOffsetForEpoch(epoch int32) (foundEpoch int32, endOffset int64)
	EarliestEpoch() (epoch int32, startOffset int64, ok bool)
	LatestEpoch() (epoch int32, ok bool)
	AssignEpoch(epoch int32) error
	DeleteRecordsTo(offset int64) (logStartOffset int64, err error)
	Reconfigure(storage.LogConfig)
	// Err is why the log takes no appends and serves no reads, nil while it
	// works.
	Err() error
}

// Store opens and deletes logs; StoreOf makes one of a *storage.Store.
type Store interface {
	OpenLog(tp storage.TopicPartition, id storage.TopicID, cfg storage.LogConfig) (Log, error)
	Delete(tp storage.TopicPartition) error
}

// codes says which Kafka error a client sees for storage's own errors. Everything
// that is not here and has no code of its own is a storage failure.
var codes = []struct {
	is  error
	err *kerr.Error
}{
	{storage.ErrOffsetOutOfRange, kerr.OffsetOutOfRange},
	// The metadata has made another broker the leader meanwhile.
	{storage.ErrFencedEpoch, kerr.NotLeaderForPartition},
	{storage.ErrOffline, kerr.KafkaStorageError},
}

// coded gives err a Kafka code and says what was done.
func coded(op string, tp storage.TopicPartition, err error) error {
	var e *protocol.Error
	if errors.As(err, &e) {
		return fmt.Errorf("%s %v: %w", op, tp, err)
	}
	for _, c := range codes {
		if errors.Is(err, c.is) {
			return protocol.Errorf(c.err, "%s %v: %w", op, tp, err)
		}
	}
	return protocol.Errorf(kerr.KafkaStorageError, "%s %v: %w", op, tp, err)
}
