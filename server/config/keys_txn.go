package config

// Keys with an effect: transactions.
var (
	TransactionMaxTimeoutMs = define(familyTxn, Key[int32]{
		Name: "transaction.max.timeout.ms", Default: 900000, Check: AtLeast(1),
		Doc: "The longest time-out a transactional producer may ask for.",
	})
	TransactionStateLogNumPartitions = define(familyTxn, Key[int32]{
		Name: "transaction.state.log.num.partitions", Default: 50, Check: AtLeast(1),
		Doc: "Partitions of __transaction_state; must not change once the topic exists.",
	})
	TransactionStateLogReplicationFactor = define(familyTxn, Key[int16]{
		Name: "transaction.state.log.replication.factor", Default: 3, Check: AtLeast(1),
		Doc: "Replicas of __transaction_state; clipped to the live brokers.",
	})
	TransactionStateLogMinIsr = define(familyTxn, Key[int32]{
		Name: "transaction.state.log.min.isr", Default: 2, Check: AtLeast(1),
		Doc: "min.insync.replicas of __transaction_state; clipped to its replicas.",
	})
	TransactionStateLogSegmentBytes = define(familyTxn, Key[int32]{
		Name: "transaction.state.log.segment.bytes", Default: 104857600, Check: AtLeast(1),
		Doc: "Segment size of __transaction_state.",
	})
	TransactionalIDExpirationMs = define(familyTxn, Key[int32]{
		Name: "transactional.id.expiration.ms", Default: 604800000, Check: AtLeast(1),
		Doc: "How long a transactional id that is not used is kept.",
	})
	TransactionAbortTimedOutCheckIntervalMs = define(familyTxn, Key[int32]{
		Name: "transaction.abort.timed.out.transaction.cleanup.interval.ms", Default: 10000, Check: AtLeast(1), Importance: Low,
		Doc: "How often transactions that timed out are aborted.",
	})
	TransactionRemoveExpiredCheckIntervalMs = define(familyTxn, Key[int32]{
		Name: "transaction.remove.expired.transaction.cleanup.interval.ms", Default: 3600000, Check: AtLeast(1), Importance: Low,
		Doc: "How often expired transactional ids are looked for.",
	})
	TransactionPartitionVerificationEnable = define(familyTxn, Key[bool]{
		Name: "transaction.partition.verification.enable", Default: true, Importance: Low, Scope: ClusterWide,
		Doc: "Ask the coordinator whether a partition belongs to the transaction before appending to it (KIP-890).",
	})
	AddPartitionsToTxnRetryBackoffMaxMs = define(familyTxn, Key[int32]{
		Name: "add.partitions.to.txn.retry.backoff.max.ms", Default: 100, Check: AtLeast(0), Importance: High,
		Doc: "How long a request that begins a transaction waits for the one before to be complete.",
	})
)
