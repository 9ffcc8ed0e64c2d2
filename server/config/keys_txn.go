package config

// Keys with an effect: transactions.
var (
	TransactionMaxTimeoutMs = define(familyTxn, Key[int32]{
		Name: "transaction.max.timeout.ms", NoEffect: true, Default: 900000, Check: AtLeast(1),
		Doc: "The longest time-out a transactional producer may ask for.",
	})
	TransactionStateLogNumPartitions = define(familyTxn, Key[int32]{
		Name: "transaction.state.log.num.partitions", NoEffect: true, Default: 50, Check: AtLeast(1),
		Doc: "Partitions of __transaction_state; must not change once the topic exists.",
	})
	TransactionStateLogReplicationFactor = define(familyTxn, Key[int16]{
		Name: "transaction.state.log.replication.factor", NoEffect: true, Default: 3, Check: AtLeast(1),
		Doc: "Replicas of __transaction_state; clipped to the live brokers.",
	})
	TransactionStateLogMinIsr = define(familyTxn, Key[int32]{
		Name: "transaction.state.log.min.isr", NoEffect: true, Default: 2, Check: AtLeast(1),
		Doc: "min.insync.replicas of __transaction_state; clipped to its replicas.",
	})
	TransactionStateLogSegmentBytes = define(familyTxn, Key[int32]{
		Name: "transaction.state.log.segment.bytes", NoEffect: true, Default: 104857600, Check: AtLeast(1),
		Doc: "Segment size of __transaction_state.",
	})
	TransactionalIDExpirationMs = define(familyTxn, Key[int32]{
		Name: "transactional.id.expiration.ms", NoEffect: true, Default: 604800000, Check: AtLeast(1),
		Doc: "How long a transactional id that is not used is kept.",
	})
	TransactionPartitionVerificationEnable = define(familyTxn, Key[bool]{
		Name: "transaction.partition.verification.enable", Default: true, Importance: Low, Scope: ClusterWide,
		Doc: "Ask the coordinator whether a partition belongs to the transaction before appending to it (KIP-890).",
	})
	AddPartitionsToTxnRetryBackoffMs = define(familyTxn, Key[int32]{
		Name: "add.partitions.to.txn.retry.backoff.ms", Default: 20, Check: AtLeast(1), Importance: High,
		Doc: "How long a Produce that adds a partition to a transaction waits before it asks again while an earlier one ends.",
	})
	AddPartitionsToTxnRetryBackoffMaxMs = define(familyTxn, Key[int32]{
		Name: "add.partitions.to.txn.retry.backoff.max.ms", Default: 100, Check: AtLeast(0), Importance: High,
		Doc: "The longest time a Produce goes on asking so.",
	})
)
