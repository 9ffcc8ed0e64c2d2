package compact

import "math"

// Segment is what a plan needs to know of a segment.
type Segment struct {
	BaseOffset, SizeBytes      int64
	IndexBytes, TimeIndexBytes int64
}

// Log is what a plan needs to know of a log.
type Log struct {
	// Segments in order; the last one is the active one, which is never cleaned.
	Segments                                 []Segment
	StartOffset, EndOffset, LastStableOffset int64
	// CleanedTo is where the last round ended, -1 when there was none.
	CleanedTo int64
	// MinLagMs and MaxLagMs are min.compaction.lag.ms and max.compaction.lag.ms.
	MinLagMs, MaxLagMs int64
	// NewestMs is a segment's largest timestamp, OldestMs that of its first batch.
	NewestMs, OldestMs func(i int) (int64, error)
}

// Plan is what there is to clean in a log.
type Plan struct {
	// FirstDirty is where the part begins that was never cleaned, End the segment
	// that must not be cleaned yet.
	FirstDirty, End int64
	// Reset says that CleanedTo does not fit the log, which is cleaned from its
	// start again.
	Reset                  bool
	CleanBytes, DirtyBytes int64
	// OverdueMs is by how much max.compaction.lag.ms has passed, 0 when it has not.
	OverdueMs int64
}

// Ratio is the dirty part of what may be cleaned.
func (p Plan) Ratio() float64 {
	if p.DirtyBytes == 0 {
		return 0
	}
	return float64(p.DirtyBytes) / float64(p.CleanBytes+p.DirtyBytes)
}

// Due says that the log is to be cleaned: it is dirtier than
// min.cleanable.dirty.ratio, or max.compaction.lag.ms has passed.
func (p Plan) Due(minRatio float64) bool {
	return p.DirtyBytes > 0 && (p.Ratio() > minRatio || p.OverdueMs > 0)
}

// Before says which of two logs is cleaned first: what is overdue, then what is
// dirtier.
func (p Plan) Before(q Plan) bool {
	if p.OverdueMs != q.OverdueMs {
		return p.OverdueMs > q.OverdueMs
	}
	return p.Ratio() > q.Ratio()
}

// NewPlan finds out what there is to clean. Not the active segment, nothing from
// the first transaction on that is still open, and no segment with a record that
// is younger than min.compaction.lag.ms, nor anything behind it.
func NewPlan(l Log, nowMs int64) (Plan, error) {
	p := Plan{FirstDirty: l.CleanedTo}
	switch {
	case l.CleanedTo < 0:
		p.FirstDirty = l.StartOffset
	case l.CleanedTo < l.StartOffset || l.CleanedTo > l.EndOffset:
		p.FirstDirty, p.Reset = l.StartOffset, true
	}
	active := len(l.Segments) - 1
	dirty := floor(l.Segments, p.FirstDirty)
	end := min(floor(l.Segments, max(l.LastStableOffset, p.FirstDirty)), active)
	if l.MinLagMs > 0 {
		for i := dirty; i < end; i++ {
			newest, err := l.NewestMs(i)
			if err != nil {
				return p, err
			}
			if newest > nowMs-l.MinLagMs {
				end = i
			}
		}
	}
	p.End = l.Segments[end].BaseOffset
	for i, s := range l.Segments[:end] {
		if s.BaseOffset < p.FirstDirty {
			p.CleanBytes += s.SizeBytes
		}
		if i >= dirty {
			p.DirtyBytes += s.SizeBytes
		}
	}
	var err error
	p.OverdueMs, err = l.overdue(dirty, active, nowMs)
	return p, err
}

// overdue is by how much the oldest dirty record is older than
// max.compaction.lag.ms.
func (l Log) overdue(dirty, active int, nowMs int64) (int64, error) {
	if l.MaxLagMs <= 0 || l.MaxLagMs >= nowMs {
		return 0, nil // no timestamp is so old
	}
	oldest := int64(math.MaxInt64)
	for i := dirty; i < active; i++ {
		first, err := l.OldestMs(i)
		if err != nil {
			return 0, err
		}
		if first > 0 {
			oldest = min(oldest, first)
		}
	}
	return max(nowMs-l.MaxLagMs-oldest, 0), nil
}

// floor is the segment that may hold an offset.
func floor(segments []Segment, offset int64) int {
	i := len(segments) - 1
	for i > 0 && segments[i].BaseOffset > offset {
		i--
	}
	return i
}

// Limits bound the segments that a cleaning makes.
type Limits struct {
	SizeBytes, IndexBytes int64
}

// Group divides segments into those that are cleaned into one each, so that
// segments do not shrink to nothing. segments are in order; end is where the last
// one ends. The result counts the segments of each group.
func Group(segments []Segment, end int64, limits Limits) []int {
	var groups []int
	for len(segments) > 0 {
		n, size, index, timeIndex := 1, segments[0].SizeBytes, segments[0].IndexBytes, segments[0].TimeIndexBytes
		for ; n < len(segments); n++ {
			s, last := segments[n], end-1
			if n+1 < len(segments) {
				last = segments[n+1].BaseOffset - 1
			}
			size, index, timeIndex = size+s.SizeBytes, index+s.IndexBytes, timeIndex+s.TimeIndexBytes
			if size > limits.SizeBytes || index > limits.IndexBytes || timeIndex > limits.IndexBytes {
				break
			}
			// An index has 31 bits for an offset. An empty segment adds none.
			if s.SizeBytes > 0 && last-segments[0].BaseOffset > math.MaxInt32 {
				break
			}
		}
		groups = append(groups, n)
		segments = segments[n:]
	}
	return groups
}
