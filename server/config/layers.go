package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// TopicConfig is the parsed configuration of one topic. It never changes.
type TopicConfig struct {
	Log storage.LogConfig
	// Batch are the options for produced batches; the caller sets NowMs and
	// what depends on the request.
	Batch batch.Options
	// MinInsyncReplicas is min.insync.replicas.
	MinInsyncReplicas int32
	// MaxMessageBytes is max.message.bytes.
	MaxMessageBytes int32
}

// Topic is the configuration of a topic on which overrides are set; the map, as
// an Image has it, must never change. The answer is shared.
func (s *Snapshot) Topic(name string, overrides map[string]string) *TopicConfig {
	if len(overrides) == 0 {
		return s.topics.plain
	}
	s.topics.mu.Lock()
	cached, ok := s.topics.byName[name]
	s.topics.mu.Unlock()
	if ok && sameMap(cached.overrides, overrides) {
		return cached.config
	}
	t := s.topic(overrides)
	s.topics.mu.Lock()
	defer s.topics.mu.Unlock()
	if s.topics.byName == nil || len(s.topics.byName) >= maxCachedTopics {
		s.topics.byName = map[string]cachedTopic{}
	}
	s.topics.byName[name] = cachedTopic{overrides: overrides, config: t}
	return t
}

// sameMap says that a and b are one map. The cache holds a, so its address is
// not used again.
func sameMap(a, b map[string]string) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// LogConfig is what storage needs to know of a topic on which overrides are set.
func (s *Snapshot) LogConfig(overrides map[string]string) storage.LogConfig {
	if len(overrides) == 0 {
		return s.topics.plain.Log
	}
	return s.topic(overrides).Log
}

func (s *Snapshot) topic(overrides map[string]string) *TopicConfig {
	t := &TopicConfig{
		Log:               s.logConfig(overrides),
		MinInsyncReplicas: MinInsyncReplicas.forTopic(s, overrides),
		MaxMessageBytes:   MessageMaxBytes.forTopic(s, overrides),
	}
	t.Batch = batch.Options{
		TimestampBeforeMaxMs: LogMessageTimestampBeforeMaxMs.forTopic(s, overrides),
		TimestampAfterMaxMs:  LogMessageTimestampAfterMaxMs.forTopic(s, overrides),
		LogAppendTime:        t.Log.LogAppendTime,
		Compacted:            t.Log.Compact,
		MaxMessageBytes:      int(t.MaxMessageBytes),
		MaxDecodedBytes:      int(MaxDecompressedMessageBytes.forTopic(s, overrides)),
	}
	s.setCompression(&t.Batch, overrides)
	return t
}

func (s *Snapshot) setCompression(o *batch.Options, overrides map[string]string) {
	o.Recompress = true
	switch CompressionType.forTopic(s, overrides) {
	case "uncompressed":
		o.Codec = batch.None
	case "gzip":
		o.Codec, o.Level = batch.Gzip, int(CompressionGzipLevel.forTopic(s, overrides))
	case "snappy":
		o.Codec = batch.Snappy
	case "lz4":
		o.Codec, o.Level = batch.LZ4, int(CompressionLz4Level.forTopic(s, overrides))
	case "zstd":
		o.Codec, o.Level = batch.Zstd, int(CompressionZstdLevel.forTopic(s, overrides))
	default:
		o.Recompress = false
	}
	if o.Level < 0 && o.Codec == batch.Gzip {
		o.Level = 0 // the codec's own default
	}
}

func (s *Snapshot) logConfig(overrides map[string]string) storage.LogConfig {
	policy := LogCleanupPolicy.forTopic(s, overrides)
	c := storage.LogConfig{
		SegmentBytes:       int64(LogSegmentBytes.forTopic(s, overrides)),
		SegmentMs:          LogRollMs.forTopic(s, overrides),
		SegmentJitterMs:    LogRollJitterMs.forTopic(s, overrides),
		SegmentIndexBytes:  int64(LogIndexSizeMaxBytes.forTopic(s, overrides)),
		IndexIntervalBytes: int64(LogIndexIntervalBytes.forTopic(s, overrides)),
		RetentionMs:        max(LogRetentionMs.forTopic(s, overrides), -1),
		RetentionBytes:     max(LogRetentionBytes.forTopic(s, overrides), -1),
		FlushMessages:      LogFlushIntervalMessages.forTopic(s, overrides),
		FlushMs:            LogFlushIntervalMs.forTopic(s, overrides),
		FileDeleteDelayMs:  LogSegmentDeleteDelayMs.forTopic(s, overrides),
		Compact:            slices.Contains(policy, "compact"),
		Delete:             slices.Contains(policy, "delete"),
		DeleteRetentionMs:  LogCleanerDeleteRetentionMs.forTopic(s, overrides),
		MinCompactionLagMs: LogCleanerMinCompactionLagMs.forTopic(s, overrides),
		MaxCompactionLagMs: LogCleanerMaxCompactionLagMs.forTopic(s, overrides),
		MinCleanableRatio:  LogCleanerMinCleanableRatio.forTopic(s, overrides),
		Preallocate:        LogPreallocate.forTopic(s, overrides),
		LogAppendTime:      LogMessageTimestampType.forTopic(s, overrides) == "LogAppendTime",
		VerifyTransactions: TransactionPartitionVerificationEnable.Get(s),
	}
	return c
}

// StoreConfig is what the data folder needs to know.
func (s *Snapshot) StoreConfig() storage.StoreConfig {
	reserve := ReserveBytes.Get(s)
	if reserve == 0 {
		reserve = -1 // the store takes 0 for its default
	}
	return storage.StoreConfig{
		FlushBehindBytes:        FlushBehindBytes.Get(s),
		ReserveBytes:            reserve,
		OpenFiles:               int(OpenFiles.Get(s)),
		MappedBytes:             MappedBytes.Get(s),
		RetentionCheck:          milliseconds(LogRetentionCheckIntervalMs.Get(s)),
		CheckpointEvery:         milliseconds(ReplicaHighWatermarkCheckpointIntervalMs.Get(s)),
		ProducerIDExpirationMs:  int64(ProducerIDExpirationMs.Get(s)),
		TransactionMaxTimeoutMs: int64(TransactionMaxTimeoutMs.Get(s)),
		RecoveryThreads:         int(NumRecoveryThreadsPerDataDir.Get(s)),
		Cleaner:                 s.CleanerConfig(),
	}
}

// CleanerConfig is what the data folder needs to know of compaction.
func (s *Snapshot) CleanerConfig() storage.CleanerConfig {
	c := storage.CleanerConfig{
		DedupeBufferBytes: LogCleanerDedupeBufferSize.Get(s),
		LoadFactor:        LogCleanerIOBufferLoadFactor.Get(s),
		IOBufferBytes:     int(LogCleanerIOBufferSize.Get(s)),
		MaxBytesPerSecond: LogCleanerIOMaxBytesPerSecond.Get(s),
		Backoff:           milliseconds(max(LogCleanerBackoffMs.Get(s), 1)),
	}
	if LogCleanerEnable.Get(s) {
		c.Threads = int(LogCleanerThreads.Get(s))
	}
	return c
}

// GroupConfig is what the group coordinator's machine needs to know.
func (s *Snapshot) GroupConfig() group.Config {
	c := group.DefaultConfig()
	c.MinSessionTimeoutMs = GroupMinSessionTimeoutMs.Get(s)
	c.MaxSessionTimeoutMs = GroupMaxSessionTimeoutMs.Get(s)
	c.InitialRebalanceDelayMs = GroupInitialRebalanceDelayMs.Get(s)
	c.MaxSize = int(GroupMaxSize.Get(s))
	c.OffsetMetadataMaxBytes = int(OffsetMetadataMaxBytes.Get(s))
	c.OffsetsRetentionMs = int64(OffsetsRetentionMinutes.Get(s)) * time.Minute.Milliseconds()
	c.RetentionCheckIntervalMs = OffsetsRetentionCheckIntervalMs.Get(s)
	c.MaxBatchBytes = int(MessageMaxBytes.Get(s))
	c.Consumer = s.consumerConfig()
	return c
}

// consumerConfig is what it needs to know of groups of the consumer protocol.
func (s *Snapshot) consumerConfig() group.ConsumerConfig {
	policy := strings.ToLower(GroupConsumerMigrationPolicy.Get(s))
	c := group.ConsumerConfig{
		SessionTimeoutMs: group.Limited{
			DefaultMs: GroupConsumerSessionTimeoutMs.Get(s),
			Limits:    group.Limits{MinMs: GroupConsumerMinSessionTimeoutMs.Get(s), MaxMs: GroupConsumerMaxSessionTimeoutMs.Get(s)},
		},
		HeartbeatIntervalMs: group.Limited{
			DefaultMs: GroupConsumerHeartbeatIntervalMs.Get(s),
			Limits:    group.Limits{MinMs: GroupConsumerMinHeartbeatIntervalMs.Get(s), MaxMs: GroupConsumerMaxHeartbeatIntervalMs.Get(s)},
		},
		AssignmentIntervalMs:   group.Limits{MinMs: GroupConsumerMinAssignmentIntervalMs.Get(s), MaxMs: GroupConsumerMaxAssignmentIntervalMs.Get(s)},
		MaxSize:                int(GroupConsumerMaxSize.Get(s)),
		Upgrade:                policy == "bidirectional" || policy == "upgrade",
		Downgrade:              policy == "bidirectional" || policy == "downgrade",
		RegexRefreshIntervalMs: int(GroupConsumerRegexRefreshIntervalMs.Get(s)),
	}
	for _, name := range GroupConsumerAssignors.Get(s) {
		switch name {
		case uniformClass:
			name = assignor.Uniform
		case rangeClass:
			name = assignor.Range
		}
		c.Assignors = append(c.Assignors, name)
	}
	if len(c.Assignors) == 0 {
		c.Assignors = group.DefaultConfig().Consumer.Assignors
	}
	return c
}

// TxnConfig is what the transaction coordinator's machine needs to know.
func (s *Snapshot) TxnConfig() txn.Config {
	c := txn.DefaultConfig()
	c.MaxTimeoutMs = TransactionMaxTimeoutMs.Get(s)
	c.IDExpirationMs = TransactionalIDExpirationMs.Get(s)
	c.AbortCheckIntervalMs = TransactionAbortTimedOutCheckIntervalMs.Get(s)
	c.ExpiryCheckIntervalMs = TransactionRemoveExpiredCheckIntervalMs.Get(s)
	c.AddRetryMaxMs = AddPartitionsToTxnRetryBackoffMaxMs.Get(s)
	c.MaxBatchBytes = int(MessageMaxBytes.Get(s))
	return c
}

// NetworkLimits bound what connections may use; a negative limit for each address
// allows none.
type NetworkLimits struct {
	MaxConnections, MaxConnectionsPerIP int
	// PerIP are the limits of max.connections.per.ip.overrides by address.
	PerIP              map[string]int
	IdleTimeout        time.Duration
	MaxRequestBytes    int
	QueuedRequestBytes int64
}

// NetworkLimits are the limits of the listeners.
func (s *Snapshot) NetworkLimits() NetworkLimits {
	perIP, _ := parsePerIP(MaxConnectionsPerIPOverrides.Get(s)) // checked when it was set
	queued := QueuedMaxRequestBytes.Get(s)
	if queued <= 0 { // Kafka's no limit; there always is one here
		queued = QueuedMaxRequestBytes.Default
	}
	return NetworkLimits{
		MaxConnections:      int(MaxConnections.Get(s)),
		MaxConnectionsPerIP: noneBelowZero(MaxConnectionsPerIP.Get(s)),
		PerIP:               perIP,
		IdleTimeout:         milliseconds(ConnectionsMaxIdleMs.Get(s)),
		MaxRequestBytes:     int(SocketRequestMaxBytes.Get(s)),
		QueuedRequestBytes:  queued,
	}
}

// noneBelowZero turns Kafka's 0, which with max.connections.per.ip allows only the
// addresses of its overrides, into a number that no default replaces.
func noneBelowZero(limit int32) int {
	if limit == 0 {
		return -1
	}
	return int(limit)
}

// milliseconds is a duration; a negative one is one of -1 ms.
func milliseconds(ms int64) time.Duration { return clock.Milliseconds(max(ms, -1)) }
