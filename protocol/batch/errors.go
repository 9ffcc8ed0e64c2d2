package batch

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

var (
	// ErrTruncated says that the bytes end before the batch does: the torn
	// tail of a log, or a fetch response cut at its limit.
	ErrTruncated error = protocol.Errorf(kerr.CorruptMessage, "the batch is longer than the bytes that are left")
	// ErrCorrupt says that the bytes can't be the start of a batch.
	ErrCorrupt error = protocol.Errorf(kerr.CorruptMessage, "no batch starts with these bytes")
	// ErrOldMagic says that a message of format v0 or v1 starts here.
	ErrOldMagic error = protocol.Errorf(kerr.InvalidRecord, "message formats v0 and v1 are not record batches")
	// ErrStop ends a walk over records early; the walk then returns nil.
	ErrStop error = stopError{}
)

type stopError struct{}

func (stopError) Error() string { return "stop" }

func batchTooLarge(sizeBytes, limit int) error {
	return protocol.Errorf(kerr.MessageTooLarge, "the batch of %d bytes is larger than the limit of %d", sizeBytes, limit)
}
