package config

import "math"

// Keys with an effect: logs.
var (
	LogDir = define(familyLog, Key[[]string]{
		Name: "log.dir", Default: []string{"./barnabas-data"}, Check: NoEmpty(),
		Doc: "The data folder; used when log.dirs is not set.",
	})
	LogDirs = define(familyLog, Key[[]string]{
		Name: "log.dirs", Null: true, Check: NoEmpty(),
		Doc: "The data folder. One folder only; a list of several is refused.",
	})
	LogSegmentBytes = define(familyLog, Key[int32]{
		Name: "log.segment.bytes", Topic: "segment.bytes", Default: 1073741824, Check: AtLeast(1048576), Scope: ClusterWide,
		Doc: "Roll the active segment once it reaches this size.",
	})
	LogRollMs = define(familyLog, Key[int64]{
		Name: "log.roll.ms", Topic: "segment.ms", TopicCheck: topicCheck(AtLeast(1)), Null: true, Scope: ClusterWide, Fallback: []Fallback{{"log.roll.hours", 3600000}},
		Doc: "Roll the active segment once it is this old; falls back to log.roll.hours.",
	})
	LogRollHours = define(familyLog, Key[int32]{
		Name: "log.roll.hours", Default: 168, Check: AtLeast(1),
		Doc: "Roll the active segment once it is this old.",
	})
	LogRollJitterMs = define(familyLog, Key[int64]{
		Name: "log.roll.jitter.ms", Topic: "segment.jitter.ms", TopicCheck: topicCheck(AtLeast(0)), Null: true, Scope: ClusterWide, Fallback: []Fallback{{"log.roll.jitter.hours", 3600000}},
		Doc: "The most that is taken off log.roll.ms at random, so that segments do not roll together; falls back to log.roll.jitter.hours.",
	})
	LogRollJitterHours = define(familyLog, Key[int32]{
		Name: "log.roll.jitter.hours", Check: AtLeast(0),
		Doc: "The most that is taken off log.roll.hours at random.",
	})
	LogIndexSizeMaxBytes = define(familyLog, Key[int32]{
		Name: "log.index.size.max.bytes", Topic: "segment.index.bytes", Default: 10485760, Check: AtLeast(4), Importance: Medium, Scope: ClusterWide,
		Doc: "The largest size of an offset index; a full index rolls the segment.",
	})
	LogIndexIntervalBytes = define(familyLog, Key[int32]{
		Name: "log.index.interval.bytes", Topic: "index.interval.bytes", Default: 4096, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "Add an index entry after this many bytes of batches.",
	})
	LogRetentionBytes = define(familyLog, Key[int64]{
		Name: "log.retention.bytes", Topic: "retention.bytes", Default: -1, Scope: ClusterWide,
		Doc: "Delete the oldest segments once a partition is larger than this; -1 is no limit.",
	})
	LogRetentionMs = define(familyLog, Key[int64]{
		Name: "log.retention.ms", Topic: "retention.ms", TopicCheck: topicCheck(AtLeast(-1)), Null: true, Scope: ClusterWide, Fallback: []Fallback{{"log.retention.minutes", 60000}, {"log.retention.hours", 3600000}},
		Doc: "Delete segments whose newest record is older than this, -1 never; falls back to log.retention.minutes, then log.retention.hours.",
	})
	LogRetentionMinutes = define(familyLog, Key[int32]{
		Name: "log.retention.minutes", Null: true, Fallback: []Fallback{{"log.retention.hours", 60}},
		Doc: "Delete segments whose newest record is older than this; falls back to log.retention.hours.",
	})
	LogRetentionHours = define(familyLog, Key[int32]{
		Name: "log.retention.hours", Default: 168,
		Doc: "Delete segments whose newest record is older than this.",
	})
	LogRetentionCheckIntervalMs = define(familyLog, Key[int64]{
		Name: "log.retention.check.interval.ms", Default: 300000, Check: AtLeast(1), Importance: Medium,
		Doc: "How often retention is looked at.",
	})
	LogSegmentDeleteDelayMs = define(familyLog, Key[int64]{
		Name: "log.segment.delete.delay.ms", Topic: "file.delete.delay.ms", Default: 60000, Check: AtLeast(0), Scope: ClusterWide,
		Doc: "How long the files of a deleted segment stay on disk.",
	})
	LogFlushIntervalMessages = define(familyLog, Key[int64]{
		Name: "log.flush.interval.messages", Topic: "flush.messages", Default: math.MaxInt64, Check: AtLeast(1), Scope: ClusterWide,
		Doc: "Flush to disk after this many records. 1 means an fsync, shared by all who wait, before every acknowledgement; the default leaves it to the page cache, as Kafka does.",
	})
	LogFlushIntervalMs = define(familyLog, Key[int64]{
		Name: "log.flush.interval.ms", Topic: "flush.ms", TopicCheck: topicCheck(AtLeast(0)), Null: true, Scope: ClusterWide, Fallback: []Fallback{{"log.flush.scheduler.interval.ms", 1}},
		Doc: "Flush to disk at the latest after this time; falls back to log.flush.scheduler.interval.ms.",
	})
	LogFlushSchedulerIntervalMs = define(familyLog, Key[int64]{
		Name: "log.flush.scheduler.interval.ms", Default: math.MaxInt64,
		Doc: "How often logs are checked for a flush that is due.",
	})
	LogCleanupPolicy = define(familyLog, Key[[]string]{
		Name: "log.cleanup.policy", Topic: "cleanup.policy", Default: []string{"delete"}, Check: EachOf("compact", "delete"), Importance: Medium, Scope: ClusterWide,
		Doc: "What happens to old segments: delete, compact, or both.",
	})
	LogCleanerDeleteRetentionMs = define(familyLog, Key[int64]{
		Name: "log.cleaner.delete.retention.ms", Topic: "delete.retention.ms", Default: 86400000, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "How long a compacted partition keeps tombstones and transaction markers.",
	})
	LogCleanerMinCompactionLagMs = define(familyLog, Key[int64]{
		Name: "log.cleaner.min.compaction.lag.ms", Topic: "min.compaction.lag.ms", Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "Records younger than this are never compacted away.",
	})
	LogCleanerMaxCompactionLagMs = define(familyLog, Key[int64]{
		Name: "log.cleaner.max.compaction.lag.ms", Topic: "max.compaction.lag.ms", Default: math.MaxInt64, Check: AtLeast(1), Importance: Medium, Scope: ClusterWide,
		Doc: "Records older than this are compacted even in a log that is mostly clean.",
	})
	LogCleanerMinCleanableRatio = define(familyLog, Key[float64]{
		Name: "log.cleaner.min.cleanable.ratio", Topic: "min.cleanable.dirty.ratio", Default: 0.5, Check: Between(0, 1), Importance: Medium, Scope: ClusterWide,
		Doc: "The share of a compacted log that must be dirty before it is cleaned.",
	})
	LogPreallocate = define(familyLog, Key[bool]{
		Name: "log.preallocate", Topic: "preallocate", Importance: Medium, Scope: ClusterWide,
		Doc: "Reserve a segment's whole size on disk when it is made.",
	})
	LogMessageTimestampType = define(familyLog, Key[string]{
		Name: "log.message.timestamp.type", Topic: "message.timestamp.type", Default: "CreateTime", Check: OneOf("CreateTime", "LogAppendTime"), Importance: Medium, Scope: ClusterWide,
		Doc: "Keep the time the producer set (CreateTime) or set it on append (LogAppendTime).",
	})
	LogMessageTimestampBeforeMaxMs = define(familyLog, Key[int64]{
		Name: "log.message.timestamp.before.max.ms", Topic: "message.timestamp.before.max.ms", Default: math.MaxInt64, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "Refuse records whose time lies further in the past than this.",
	})
	LogMessageTimestampAfterMaxMs = define(familyLog, Key[int64]{
		Name: "log.message.timestamp.after.max.ms", Topic: "message.timestamp.after.max.ms", Default: 3600000, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "Refuse records whose time lies further in the future than this.",
	})
)
