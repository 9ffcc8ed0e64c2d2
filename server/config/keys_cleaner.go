package config

import "math"

// Keys with an effect: compaction.
var (
	LogCleanerEnable = define(familyCleaner, Key[bool]{
		Name: "log.cleaner.enable", Default: true, Importance: Medium,
		Doc: "Compact the logs whose cleanup.policy says so. Without it the groups' and transactions' own topics grow for ever.",
	})
	LogCleanerThreads = define(familyCleaner, Key[int32]{
		Name: "log.cleaner.threads", Default: 1, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "How many logs are compacted at the same time.",
	})
	LogCleanerDedupeBufferSize = define(familyCleaner, Key[int64]{
		Name: "log.cleaner.dedupe.buffer.size", Default: 128 << 20, Importance: Medium, Scope: ClusterWide,
		Doc: "Memory for the keys of the logs being compacted, over all threads: 24 bytes a key, taken only while there is something to compact. A log with more keys is compacted in several rounds.",
	})
	LogCleanerIOBufferLoadFactor = define(familyCleaner, Key[float64]{
		Name: "log.cleaner.io.buffer.load.factor", Default: 0.9, Importance: Medium, Scope: ClusterWide,
		Doc: "How full the table of keys may get.",
	})
	LogCleanerIOBufferSize = define(familyCleaner, Key[int32]{
		Name: "log.cleaner.io.buffer.size", Default: 512 << 10, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "Memory for reading and writing while compacting, over all threads.",
	})
	LogCleanerIOMaxBytesPerSecond = define(familyCleaner, Key[float64]{
		Name: "log.cleaner.io.max.bytes.per.second", Default: math.MaxFloat64, Importance: Medium, Scope: ClusterWide,
		Doc: "The most bytes a second that compaction reads and writes.",
	})
	LogCleanerBackoffMs = define(familyCleaner, Key[int64]{
		Name: "log.cleaner.backoff.ms", Default: 15000, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "How long a cleaner rests when there is nothing to compact.",
	})
)
