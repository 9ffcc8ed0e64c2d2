package storage

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

var (
	// ErrOffsetOutOfRange says that an offset is not in [log start, log end].
	ErrOffsetOutOfRange error = protocol.Errorf(kerr.OffsetOutOfRange, "the offset is outside the log")
	// ErrFencedEpoch says that a newer leader has written to the log.
	ErrFencedEpoch error = protocol.Errorf(kerr.NotLeaderForPartition, "the log has a newer leader epoch")
	// ErrOffline says that the partition's files can't be used now: the disk is
	// full or failed. Log.Err has the cause.
	ErrOffline error = protocol.Errorf(kerr.KafkaStorageError, "the partition is offline")
	// ErrUnexpectedOffset says that a replicated batch does not follow the log.
	ErrUnexpectedOffset error = protocol.Errorf(kerr.UnknownServerError, "the batch does not follow the end of the log")
	// ErrBusy says that an operation would have to wait; do it where waiting is
	// allowed.
	ErrBusy = errors.New("the log is busy")
	// ErrCorrupt marks files that can't be right.
	ErrCorrupt = errors.New("corrupt file")
	// ErrLocked says that another broker uses the data directory.
	ErrLocked = errors.New("the data directory is in use")
	// ErrRemoved says that the data directory was removed under a running broker.
	ErrRemoved = errors.New("the data directory was removed")
	// ErrNewerFormat says that a newer version wrote the data directory.
	ErrNewerFormat = errors.New("the data directory was written by a newer version")
	// ErrClosed says that the store or the log was closed or deleted.
	ErrClosed error = protocol.Errorf(kerr.KafkaStorageError, "the log is closed")
)
