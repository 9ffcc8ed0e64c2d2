package group

import (
	"math"
	"unicode/utf16"
)

// PartitionFor is the partition of the internal topic that owns a group: Java's
// hash of the group id, as every Kafka broker computes it.
func PartitionFor(groupID string, partitions int32) int32 {
	var h int32
	for _, r := range groupID {
		if r < 0x10000 {
			h = 31*h + r
			continue
		}
		hi, lo := utf16.EncodeRune(r)
		h = 31*(31*h+hi) + lo
	}
	if h == math.MinInt32 {
		return 0
	}
	return max(h, -h) % partitions
}
