package config

// Keys with an effect: broker and topics.
var (
	NodeID = define(familyBroker, Key[int32]{
		Name: "node.id", Default: 1, Check: AtLeast(0),
		Doc: "The number of this broker in the cluster.",
	})
	BrokerID = define(familyBroker, Key[int32]{
		Name: "broker.id", Default: -1,
		Doc: "The older name of node.id; when both are set they must agree.",
	})
	BrokerRack = define(familyBroker, Key[string]{
		Name: "broker.rack", Null: true, Importance: Medium,
		Doc: "The rack or zone of this broker, told to clients and used to spread replicas.",
	})
	TelemetryMaxBytes = define(familyBroker, Key[int32]{
		Name: "telemetry.max.bytes", Default: 1 << 20, Check: AtLeast(1), Importance: Low,
		Doc: "The largest push of a client's metrics (KIP-714), compressed or not.",
	})
	ProcessRoles = define(familyBroker, Key[[]string]{
		Name: "process.roles", Default: []string{"broker", "controller"}, Check: EachOf("broker", "controller"),
		Doc: "What this process is. A Barnabas node is always broker and controller at once.",
	})
	ControllerListenerNames = define(familyBroker, Key[[]string]{
		Name: "controller.listener.names", Check: NoEmpty(),
		Doc: "Names of listeners that Kafka opens for controllers. They are accepted; their ports are not opened.",
	})
	ControllerQuorumVoters = define(familyBroker, Key[[]string]{
		Name: "controller.quorum.voters", Check: NoEmpty(),
		Doc: "The controllers as id@host:port. A single node must name itself only.",
	})
	ControllerQuorumBootstrapServers = define(familyBroker, Key[[]string]{
		Name: "controller.quorum.bootstrap.servers", Check: NoEmpty(),
		Doc: "Addresses at which Kafka finds its controllers. A single node needs none.",
	})
	AutoCreateTopicsEnable = define(familyBroker, Key[bool]{
		Name: "auto.create.topics.enable", Default: true,
		Doc: "Create a topic when a client that allows it asks for one that does not exist.",
	})
	DeleteTopicEnable = define(familyBroker, Key[bool]{
		Name: "delete.topic.enable", Default: true,
		Doc: "Whether topics may be deleted.",
	})
	NumPartitions = define(familyBroker, Key[int32]{
		Name: "num.partitions", Default: 1, Check: AtLeast(1), Importance: Medium,
		Doc: "Partitions of a topic that is created without a number.",
	})
	DefaultReplicationFactor = define(familyBroker, Key[int32]{
		Name: "default.replication.factor", Default: 1, Importance: Medium,
		Doc: "Replicas of a topic that is created without a number; clipped to the live brokers when it is created automatically.",
	})
	MinInsyncReplicas = define(familyBroker, Key[int32]{
		Name: "min.insync.replicas", Topic: "min.insync.replicas", Default: 1, Check: AtLeast(1), Scope: ClusterWide,
		Doc: "How many replicas must be in sync for a produce with acks=all to be taken.",
	})
	UncleanLeaderElectionEnable = define(familyBroker, Key[bool]{
		Name: "unclean.leader.election.enable", NoEffect: true, Topic: "unclean.leader.election.enable", Scope: ClusterWide,
		Doc: "Let a replica that is out of sync become leader when no other is alive; acknowledged records may be lost.",
	})
	MessageMaxBytes = define(familyBroker, Key[int32]{
		Name: "message.max.bytes", Topic: "max.message.bytes", Default: 1048588, Check: AtLeast(0), Scope: ClusterWide,
		Doc: "The largest record batch a topic takes, as sent (compressed).",
	})
	MaxDecompressedMessageBytes = define(familyBroker, Key[int32]{
		Name: "max.decompressed.message.bytes", Topic: "max.decompressed.message.bytes", Default: 256 << 20, Check: Between(1, 2147483639), Importance: Medium, Scope: ClusterWide,
		Doc: "The largest size a compressed batch may unpack to. Kafka allows 2 GiB; here one batch can't ask for that much memory unless this says so.",
	})
	CompressionType = define(familyBroker, Key[string]{
		Name: "compression.type", Topic: "compression.type", Default: "producer", Check: OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), Scope: ClusterWide,
		Doc: "How batches are stored: as the producer sent them (producer), or recompressed to this codec.",
	})
	CompressionGzipLevel = define(familyBroker, Key[int32]{
		Name: "compression.gzip.level", Topic: "compression.gzip.level", Default: -1, Check: GzipLevel(), Importance: Medium, Scope: ClusterWide,
		Doc: "The gzip level used when batches are recompressed; -1 is the library's own.",
	})
	CompressionLz4Level = define(familyBroker, Key[int32]{
		Name: "compression.lz4.level", Topic: "compression.lz4.level", Default: 9, Check: Between(1, 17), Importance: Medium, Scope: ClusterWide,
		Doc: "The lz4 level used when batches are recompressed.",
	})
	CompressionZstdLevel = define(familyBroker, Key[int32]{
		Name: "compression.zstd.level", Topic: "compression.zstd.level", Default: 3, Check: Between(-131072, 22), Importance: Medium, Scope: ClusterWide,
		Doc: "The zstd level used when batches are recompressed.",
	})
	FetchMaxBytes = define(familyBroker, Key[int32]{
		Name: "fetch.max.bytes", Default: 57671680, Check: AtLeast(1024), Importance: Medium,
		Doc: "The most bytes one fetch answers, whatever the client asks for; the first batch is always whole.",
	})
	MaxIncrementalFetchSessionCacheSlots = define(familyBroker, Key[int32]{
		Name: "max.incremental.fetch.session.cache.slots", Default: 1000, Check: AtLeast(0), Importance: Medium,
		Doc: "How many incremental fetch sessions (KIP-227) are kept.",
	})
	MaxRequestPartitionSizeLimit = define(familyBroker, Key[int32]{
		Name: "max.request.partition.size.limit", NoEffect: true, Default: 2000, Check: AtLeast(1), Importance: Medium,
		Doc: "The most partitions one DescribeTopicPartitions answer lists.",
	})
	ReplicaHighWatermarkCheckpointIntervalMs = define(familyBroker, Key[int64]{
		Name: "replica.high.watermark.checkpoint.interval.ms", Default: 5000,
		Doc: "How often high watermarks are written to disk.",
	})
	LogFlushOffsetCheckpointIntervalMs = define(familyBroker, Key[int32]{
		Name: "log.flush.offset.checkpoint.interval.ms", NoEffect: true, Default: 60000, Check: AtLeast(0),
		Doc: "How often recovery points are written to disk.",
	})
	LogFlushStartOffsetCheckpointIntervalMs = define(familyBroker, Key[int32]{
		Name: "log.flush.start.offset.checkpoint.interval.ms", NoEffect: true, Default: 60000, Check: AtLeast(0),
		Doc: "How often log start offsets are written to disk.",
	})
	NumRecoveryThreadsPerDataDir = define(familyBroker, Key[int32]{
		Name: "num.recovery.threads.per.data.dir", Default: 2, Check: AtLeast(1), Scope: ClusterWide,
		Doc: "How many partitions are recovered at the same time after an unclean stop.",
	})
	ProducerIDExpirationMs = define(familyBroker, Key[int32]{
		Name: "producer.id.expiration.ms", Default: 86400000, Check: AtLeast(1), Importance: Low, Scope: ClusterWide,
		Doc: "How long a partition remembers an idempotent producer that is silent.",
	})
	ReplicaLagTimeMaxMs = define(familyBroker, Key[int64]{
		Name: "replica.lag.time.max.ms", NoEffect: true, Default: 30000,
		Doc: "A follower that has not caught up for this long leaves the in-sync replicas.",
	})
)
