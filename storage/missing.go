package storage

import (
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// tellMissing names the segments that the folder has lost, as far as its list of
// files says: index files without their .log, and a first segment behind the start
// that was noted. What retention, a truncation or a roll leaves when it is cut
// short is none: the first lies below the log's start, the others behind its last
// segment.
func (l *Log) tellMissing(f *folderFiles) {
	start, end, first := l.logStart.Load(), int64(-1), int64(-1)
	if len(f.bases) > 0 {
		first, end = f.bases[0], f.bases[len(f.bases)-1]
	}
	if l.endKnown {
		end = max(end, l.logEnd.Load())
	}
	all := slices.Sorted(maps.Keys(f.sizes))
	for i, base := range all {
		if f.sizes[base].LogBytes >= 0 || base < start || base >= end || l.unclean && base >= l.recoveryPoint.Load() {
			continue // what was not synced is the recovery's to tell
		}
		next := end
		if i+1 < len(all) {
			next = all[i+1]
		}
		first = min(first, base)
		l.store.env.Logger.Warn("a segment's file is missing, and its records with it; the index files that it left are removed",
			"log", l.tp.String(), "file", l.path(segment.FileName(base, segment.LogSuffix)), "fromOffset", base, "toOffset", next)
	}
	// The start is noted before files go, but for a full disk; compaction leaves a
	// file, empty or not, where the first segment began.
	if !l.startKnown.Load() || first <= start {
		return
	}
	l.store.env.Logger.Warn("the log's first segments are missing, and their records with them", "log", l.tp.String(),
		"firstFile", l.path(segment.FileName(first, segment.LogSuffix)), "fromOffset", start, "toOffset", first)
}

// compacted says that compaction may have left gaps.
func (l *Log) compacted() bool { return l.Config().Compact || l.cleanedTo.Load() >= 0 }

// tellGap names, once, the gap before a segment that a read went over. Only
// compaction leaves one that is none of our business.
func (l *Log) tellGap(before *segment.Segment, offset int64, after *segment.Segment) {
	if offset >= after.BaseOffset() || l.compacted() {
		return
	}
	if _, told := l.gaps.LoadOrStore(after.BaseOffset(), true); told {
		return
	}
	l.store.env.Logger.Warn("a read went over a gap: the records between two segments are missing, unless the topic was compacted once",
		"log", l.tp.String(), "before", before.Path(), "after", after.Path(), "fromOffset", offset, "toOffset", after.BaseOffset())
}
