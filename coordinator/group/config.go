package group

// Config is what the machine needs to know of the broker's configuration.
type Config struct {
	// MinSessionTimeoutMs and MaxSessionTimeoutMs bound what a member asks for.
	MinSessionTimeoutMs, MaxSessionTimeoutMs int32
	// InitialRebalanceDelayMs is how long an empty group waits for more members
	// after the first one.
	InitialRebalanceDelayMs int32
	// MaxSize is the largest number of members, group.max.size.
	MaxSize int
	// NewMemberJoinTimeoutMs expires a new member whose parked JoinGroup nobody
	// seems to wait for any more.
	NewMemberJoinTimeoutMs int32
	// OffsetMetadataMaxBytes is offset.metadata.max.bytes.
	OffsetMetadataMaxBytes int
	// OffsetsRetentionMs is offsets.retention.minutes.
	OffsetsRetentionMs int64
	// RetentionCheckIntervalMs is offsets.retention.check.interval.ms.
	RetentionCheckIntervalMs int64
	// MaxBatchBytes bounds what one event may write atomically: the internal
	// topic's max.message.bytes.
	MaxBatchBytes int
}

// DefaultConfig has Kafka's defaults, but for the initial rebalance delay, which
// is 0 here.
func DefaultConfig() Config {
	return Config{
		MinSessionTimeoutMs: 6_000, MaxSessionTimeoutMs: 1_800_000,
		MaxSize: 1<<31 - 1, NewMemberJoinTimeoutMs: 300_000,
		OffsetMetadataMaxBytes: 4096, OffsetsRetentionMs: 7 * 24 * 3600 * 1000,
		RetentionCheckIntervalMs: 600_000, MaxBatchBytes: 1048588,
	}
}
