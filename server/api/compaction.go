package api

import (
	"encoding/json"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/storage"
)

// CompactionTag is the number of the tagged field with which a DescribeLogDirs
// request asks how far compaction is, and in which each partition's row answers,
// as JSON of a Compaction. No API of Kafka's tells. Nobody but who asks sees it,
// and a broker that does not know it leaves it out.
const CompactionTag = 25186

// Compaction is how far the compaction of a partition is.
type Compaction struct {
	// CompactedTo is the first offset that was never compacted.
	CompactedTo int64 `json:"compacted_to"`
	// DirtyBytes may be compacted now, CleanBytes were.
	CleanBytes int64 `json:"clean_bytes"`
	DirtyBytes int64 `json:"dirty_bytes"`
	// ActiveBytes are in the active segment, which is not compacted before it rolls:
	// at the first append after segment.ms, or when it is full.
	ActiveBytes int64 `json:"active_bytes"`
	// DirtyPercent is what min.cleanable.dirty.ratio is compared with.
	DirtyPercent float64 `json:"dirty_percent"`
	// Error is why the partition is not compacted any more.
	Error string `json:"error,omitempty"`
}

// asksForCompaction says that a request has the tag.
func asksForCompaction(tags kmsg.Tags) (asks bool) {
	tags.Each(func(key uint32, _ []byte) { asks = asks || key == CompactionTag })
	return asks
}

// compactionOf is a partition's answer; ok is false when it is not compacted, or
// nobody has used it since the start.
func compactionOf(dir LogDir, tp storage.TopicPartition) (answer []byte, ok bool) {
	s, ok := dir.Compaction(tp)
	if !ok {
		return nil, false
	}
	c := Compaction{CompactedTo: s.CleanedTo, CleanBytes: s.CleanBytes, DirtyBytes: s.DirtyBytes, ActiveBytes: s.ActiveBytes, DirtyPercent: 100 * s.DirtyRatio()}
	if s.Err != nil {
		c.Error = s.Err.Error()
	}
	answer, err := json.Marshal(c)
	return answer, err == nil
}

// CompactionIn reads a partition's answer.
func CompactionIn(tags kmsg.Tags) (c Compaction, ok bool) {
	tags.Each(func(key uint32, value []byte) {
		if key == CompactionTag {
			ok = json.Unmarshal(value, &c) == nil
		}
	})
	return c, ok
}
