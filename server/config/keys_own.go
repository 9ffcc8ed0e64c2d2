package config

// Keys of Barnabas that Kafka does not have.
var (
	ClusterID = define(familyOurs, Key[string]{
		Name: "barnabas.cluster.id", Null: true,
		Doc: "The id of the cluster, Kafka's 22 characters; made at the first start when it is not given. CLUSTER_ID sets it too.",
	})
	AdminListener = define(familyOurs, Key[string]{
		Name: "barnabas.admin.listener", Default: "127.0.0.1:9080", Importance: Medium,
		Doc: "Where /metrics, /healthz, /readyz and pprof are served, as host:port; off for nowhere.",
	})
	LogLevel = define(familyOurs, Key[string]{
		Name: "barnabas.log.level", Default: "info", Check: OneOf("debug", "info", "warn", "error"), Importance: Medium,
		Doc: "How much the broker's own log says.",
	})
	LogFormat = define(familyOurs, Key[string]{
		Name: "barnabas.log.format", Default: "text", Check: OneOf("text", "json"), Importance: Medium,
		Doc: "The form of the broker's own log.",
	})
	ReserveBytes = define(familyOurs, Key[int64]{
		Name: "barnabas.storage.reserve.bytes", Default: 256 << 20, Check: AtLeast(0), Importance: Medium,
		Doc: "Free disk space below which produce requests are refused, so that the broker's own state always finds room.",
	})
	FlushBehindBytes = define(familyOurs, Key[int64]{
		Name: "barnabas.flush.behind.bytes", Default: 256 << 20, Check: AtLeast(1 << 20), Importance: Low,
		Doc: "The most bytes, over all partitions, that may lie unflushed behind the writers; it bounds recovery after a crash.",
	})
	OpenFiles = define(familyOurs, Key[int32]{
		Name: "barnabas.open.segment.files", Default: 1024, Check: AtLeast(16), Importance: Low,
		Doc: "How many segment files are kept open.",
	})
	MappedBytes = define(familyOurs, Key[int64]{
		Name: "barnabas.mapped.bytes", Default: 64 << 20, Check: AtLeast(1 << 20), Importance: Low,
		Doc: "The most bytes of segments mapped for sending at a time.",
	})
)
