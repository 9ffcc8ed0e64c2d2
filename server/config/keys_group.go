package config

import "math"

// Keys with an effect: groups and offsets.
var (
	GroupMinSessionTimeoutMs = define(familyGroup, Key[int32]{
		Name: "group.min.session.timeout.ms", Default: 6000, Importance: Medium,
		Doc: "The shortest session time-out a classic member may ask for.",
	})
	GroupMaxSessionTimeoutMs = define(familyGroup, Key[int32]{
		Name: "group.max.session.timeout.ms", Default: 1800000, Importance: Medium,
		Doc: "The longest session time-out a classic member may ask for.",
	})
	GroupInitialRebalanceDelayMs = define(familyGroup, Key[int32]{
		Name: "group.initial.rebalance.delay.ms", Importance: Medium,
		Doc: "How long an empty classic group waits for more members before its first rebalance. Kafka waits 3000 ms; here nobody waits unless asked to.",
	})
	GroupMaxSize = define(familyGroup, Key[int32]{
		Name: "group.max.size", Default: math.MaxInt32, Check: AtLeast(1), Importance: Medium,
		Doc: "The most members a classic group takes.",
	})
	OffsetMetadataMaxBytes = define(familyGroup, Key[int32]{
		Name: "offset.metadata.max.bytes", Default: 4096,
		Doc: "The longest metadata text of a committed offset.",
	})
	OffsetsRetentionMinutes = define(familyGroup, Key[int32]{
		Name: "offsets.retention.minutes", Default: 10080, Check: AtLeast(1),
		Doc: "How long the offsets of an empty group are kept.",
	})
	OffsetsRetentionCheckIntervalMs = define(familyGroup, Key[int64]{
		Name: "offsets.retention.check.interval.ms", Default: 600000, Check: AtLeast(1),
		Doc: "How often expired offsets are looked for.",
	})
	OffsetsCommitTimeoutMs = define(familyGroup, Key[int32]{
		Name: "offsets.commit.timeout.ms", NoEffect: true, Default: 5000, Check: AtLeast(1),
		Doc: "How long an offset commit waits to be replicated.",
	})
	OffsetsLoadBufferSize = define(familyGroup, Key[int32]{
		Name: "offsets.load.buffer.size", NoEffect: true, Default: 5242880, Check: AtLeast(1),
		Doc: "How many bytes at a time a coordinator reads while it loads.",
	})
	OffsetsTopicNumPartitions = define(familyGroup, Key[int32]{
		Name: "offsets.topic.num.partitions", Default: 50, Check: AtLeast(1),
		Doc: "Partitions of __consumer_offsets; must not change once the topic exists.",
	})
	OffsetsTopicReplicationFactor = define(familyGroup, Key[int16]{
		Name: "offsets.topic.replication.factor", Default: 3, Check: AtLeast(1),
		Doc: "Replicas of __consumer_offsets; clipped to the live brokers.",
	})
	OffsetsTopicSegmentBytes = define(familyGroup, Key[int32]{
		Name: "offsets.topic.segment.bytes", Default: 104857600, Check: AtLeast(1),
		Doc: "Segment size of __consumer_offsets.",
	})
	OffsetsTopicCompressionCodec = define(familyGroup, Key[int32]{
		Name: "offsets.topic.compression.codec", NoEffect: true, Check: Between(0, 4),
		Doc: "Compression of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
	})
	GroupCoordinatorRebalanceProtocols = define(familyGroup, Key[[]string]{
		Name: "group.coordinator.rebalance.protocols", Default: []string{"classic", "consumer", "streams"}, Check: EachOf("consumer", "classic", "share", "streams"), Importance: Medium,
		Doc: "The group protocols that are allowed: without consumer, clients that ask for it are told that it is not supported. The others change nothing here.",
	})
)
