package storage

import (
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// beforeEarliest is the timestamp that asks for the log's start.
const beforeEarliest = -2

// OffsetsBefore answers ListOffsets v0, which is older than the records'
// timestamps: the offsets at which segments begin, newest first, from the last
// segment on that was written at timestampMs or before. The log's end is the
// first of them when it is that old, which it always is for -1 (latest); for -2
// (earliest) there is the log's start only.
func (l *Log) OffsetsBefore(timestampMs int64) (offsets []int64, err error) {
	type start struct{ offset, writtenMs int64 }
	var starts []start
	err = l.search(func(segments []*segment.Segment) error {
		from, now := l.logStart.Load(), l.store.env.Clock.Now().UnixMilli()
		empty := true
		for _, s := range segments {
			written := now // of a segment without a record there may be no file yet
			if empty = s.SizeBytes() == 0; !empty {
				var err error
				if written, err = s.ModTimeMs(); err != nil {
					return err
				}
			}
			starts = append(starts, start{max(s.BaseOffset(), from), written})
		}
		if !empty {
			starts = append(starts, start{l.logEnd.Load(), now})
		}
		return nil
	})
	if timestampMs == beforeEarliest {
		starts = starts[:min(1, len(starts))]
	}
	for i := len(starts) - 1; i >= 0; i-- {
		if timestampMs < 0 || len(offsets) > 0 || starts[i].writtenMs <= timestampMs {
			offsets = append(offsets, starts[i].offset)
		}
	}
	return offsets, err
}
