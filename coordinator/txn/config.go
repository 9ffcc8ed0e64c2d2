package txn

import "time"

// Config is what the machine needs to know of the broker's configuration.
type Config struct {
	// MaxTimeoutMs is transaction.max.timeout.ms.
	MaxTimeoutMs int32
	// IDExpirationMs is transactional.id.expiration.ms.
	IDExpirationMs int32
	// AbortCheckIntervalMs is
	// transaction.abort.timed.out.transaction.cleanup.interval.ms.
	AbortCheckIntervalMs int32
	// ExpiryCheckIntervalMs is
	// transaction.remove.expired.transaction.cleanup.interval.ms.
	ExpiryCheckIntervalMs int32
	// AddRetryMaxMs is add.partitions.to.txn.retry.backoff.max.ms: how long a request
	// that begins a transaction waits for the one before to be complete.
	AddRetryMaxMs int32
	// MaxBatchBytes bounds a batch of what may be written in parts: the internal
	// topic's max.message.bytes.
	MaxBatchBytes int
}

// DefaultConfig has Kafka's defaults.
func DefaultConfig() Config {
	return Config{
		MaxTimeoutMs: 900_000, IDExpirationMs: 7 * 24 * 3600 * 1000,
		AbortCheckIntervalMs: 10_000, ExpiryCheckIntervalMs: 3_600_000, AddRetryMaxMs: 100,
		MaxBatchBytes: 1048588,
	}
}

// The wait before markers that could not be written are tried again.
const (
	markerRetryMin = 100 * time.Millisecond
	markerRetryMax = 5 * time.Second
)
