package storage

import (
	"errors"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/storage/compact"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

var (
	// errAbandoned ends a cleaning that makes no sense any more: the log was
	// truncated, closed, deleted or is no longer compacted.
	errAbandoned = errors.New("the cleaning was abandoned")
	// errNoRoom ends a cleaning for which the disk has no room now.
	errNoRoom = errors.New("the disk has no room for the cleaned segments")
)

// cleaning is one round over a log.
type cleaning struct {
	l        *Log
	w        *cleanWorker
	cfg      *LogConfig
	round    compact.Round
	segments []*segment.Segment // as they were when the round began
	cuts     int64
	txns     *compact.Transactions
	offsets  *compact.OffsetMap
}

// compactionPlan finds out what there is to clean.
func (l *Log) compactionPlan() (compact.Plan, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil || !l.loaded.Load() {
		return compact.Plan{}, errors.Join(errAbandoned, err)
	}
	segments, cfg := l.list(), l.cfg.Load()
	list := make([]compact.Segment, len(segments))
	for i, s := range segments {
		list[i] = describe(s)
	}
	p, err := compact.NewPlan(compact.Log{
		Segments: list, StartOffset: l.logStart.Load(), EndOffset: l.logEnd.Load(),
		LastStableOffset: l.LastStableOffset(l.highWatermark.Load()), CleanedTo: l.cleanedTo.Load(),
		MinLagMs: cfg.MinCompactionLagMs, MaxLagMs: cfg.MaxCompactionLagMs,
		NewestMs: func(i int) (int64, error) {
			newest, _, err := segments[i].MaxTimestamp()
			return newest, err
		},
		OldestMs: func(i int) (int64, error) { return segments[i].FirstTimestamp() },
	}, l.nowMs())
	if err != nil {
		return p, fmt.Errorf("what there is to clean in %v: %w", l.tp, err)
	}
	return p, nil
}

func describe(s *segment.Segment) compact.Segment {
	index, timeIndex := s.IndexSizes()
	return compact.Segment{BaseOffset: s.BaseOffset(), SizeBytes: s.SizeBytes(), IndexBytes: index, TimeIndexBytes: timeIndex}
}

// startOver notes that the offset which compaction had reached does not fit the
// log.
func (l *Log) startOver(p compact.Plan) {
	if !p.Reset {
		return
	}
	if was := l.cleanedTo.Swap(p.FirstDirty); !l.cfg.Load().Delete || was > p.FirstDirty {
		l.store.env.Logger.Warn("a log is compacted from its start again", "log", l.tp.String(), "logStartOffset", p.FirstDirty, "compactedTo", was)
	}
}

// clean does one round and returns where the cleaned part ends now.
func (l *Log) clean(w *cleanWorker, p compact.Plan) (end int64, err error) {
	if err := l.settleBelow(p.End); err != nil {
		return 0, err
	}
	r := &cleaning{l: l, w: w, cfg: l.cfg.Load(), cuts: l.cuts.Load(), segments: l.list(), txns: compact.NewTransactions()}
	r.round = compact.Round{
		FirstDirty: p.FirstDirty, End: p.End, NowMs: l.nowMs(), DeleteRetentionMs: r.cfg.DeleteRetentionMs,
		Aborted: r.aborted,
	}
	w.check = r.check
	if err := r.check(); err != nil {
		return 0, err
	}
	r.offsets = w.newMap(p.End - p.FirstDirty)
	if err := r.buildMap(); err != nil {
		return 0, err
	}
	end = r.offsets.Latest() + 1
	if end <= p.FirstDirty {
		return 0, fmt.Errorf("the memory for keys (log.cleaner.dedupe.buffer.size) is too small to clean anything of %v", l.tp)
	}
	if err := r.cleanGroups(end); err != nil {
		return 0, err
	}
	return end, r.finish(end)
}

// finish notes how far the log is clean.
func (r *cleaning) finish(end int64) error {
	release := r.l.take()
	err := r.check() // not while the log is cut
	if err == nil {
		r.l.cleanedTo.Store(end)
	}
	release()
	if err != nil {
		return err
	}
	return r.l.store.writeCheckpoints()
}

// settleBelow makes everything below an offset durable, and the note of it: after
// a crash nobody shall look there for what the disk has lost, and take the gaps
// that compaction leaves for that.
func (l *Log) settleBelow(offset int64) error {
	if l.recoveryPoint.Load() < offset {
		if err := l.Flush(); err != nil {
			return err
		}
	}
	if l.recoveryPoint.Load() < offset {
		return errAbandoned // it was truncated meanwhile
	}
	return l.store.writeCheckpoints()
}

// check ends the round when it makes no sense any more.
func (r *cleaning) check() error {
	l := r.l
	if l.Err() != nil || l.cuts.Load() != r.cuts || !l.cfg.Load().Compact {
		return errors.Join(errAbandoned, l.Err())
	}
	return nil
}

// read says what an error of reading the log means.
func (r *cleaning) read(err error) error {
	if err == nil || errors.Is(err, errAbandoned) {
		return err
	}
	if gone(err) || r.check() != nil {
		return errors.Join(errAbandoned, err)
	}
	var bad *compact.CorruptError
	if errors.As(err, &bad) {
		return err
	}
	r.l.fail(fmt.Errorf("read log %v: %w", r.l.tp, err), offlineBroken)
	return errors.Join(r.l.Err(), err)
}

// source reads a segment.
type source struct{ *segment.Segment }

func (s source) Name() string { return s.Path() }

func sources(segments []*segment.Segment) []compact.Source {
	list := make([]compact.Source, len(segments))
	for i, s := range segments {
		list[i] = source{s}
	}
	return list
}

// buildMap reads the dirty part for the newest offsets of its keys.
func (r *cleaning) buildMap() error {
	from := max(floorSegment(r.segments, r.round.FirstDirty), 0)
	to := slices.IndexFunc(r.segments, func(s *segment.Segment) bool { return s.BaseOffset() >= r.round.End })
	if to < 0 || from >= to {
		return errAbandoned
	}
	start, err := r.segments[from].Position(r.round.FirstDirty)
	if err == nil {
		err = r.w.Map(&r.round, sources(r.segments[from:to]), start, r.offsets)
	}
	return r.read(err)
}

// cleanGroups cleans the segments up to an offset, one group after the other.
func (r *cleaning) cleanGroups(end int64) error {
	n := slices.IndexFunc(r.segments, func(s *segment.Segment) bool { return s.BaseOffset() >= end })
	if n < 0 {
		return errAbandoned
	}
	list := make([]compact.Segment, n)
	for i, s := range r.segments[:n] {
		list[i] = describe(s)
	}
	limits := compact.Limits{SizeBytes: r.cfg.SegmentBytes, IndexBytes: r.cfg.SegmentIndexBytes}
	from := 0
	for _, count := range compact.Group(list, r.segments[n].BaseOffset(), limits) {
		next := r.segments[from+count].BaseOffset()
		if err := r.cleanGroup(r.segments[from:from+count], next); err != nil {
			return err
		}
		from += count
	}
	return nil
}

// cleanGroup cleans some segments into one that takes their place.
func (r *cleaning) cleanGroup(group []*segment.Segment, next int64) error {
	if err := r.check(); err != nil {
		return err
	}
	room, err := r.l.store.roomToClean(group)
	if err != nil {
		return err
	}
	defer room.release()
	r.round.LastRecord = r.l.lastRecords()
	if len(group) == 1 {
		if same, err := r.w.Unchanged(&r.round, source{group[0]}, next, r.offsets, r.txns); same || err != nil {
			return r.read(err)
		}
	}
	into, err := segment.CreateCleaned(r.l.store.seg, r.l.dir, group[0].BaseOffset())
	if err != nil {
		return fmt.Errorf("clean %v: %w", r.l.tp, err)
	}
	err = r.writeGroup(group, next, into, room)
	if err == nil {
		err = r.swap(group, into)
	}
	if err == nil || r.l.Err() != nil {
		return err // files that have moved are for the reload
	}
	// What is left of it is removed by the next round or the next start.
	into.Close()
	_ = segment.RemoveFiles(r.l.store.seg, r.l.dir, group[0].BaseOffset(), segment.CleanedSuffix)
	if isDiskFull(err) {
		err = errors.Join(errNoRoom, err)
	}
	return err
}

// writeGroup writes the cleaned segment and makes it durable.
func (r *cleaning) writeGroup(group []*segment.Segment, next int64, into *segment.Segment, room *cleaningRoom) error {
	sink := &cleanedSink{into: into, intervalBytes: r.cfg.IndexIntervalBytes, room: room}
	for _, s := range group {
		sink.limitBytes += s.SizeBytes()
	}
	if err := r.w.CleanGroup(&r.round, sources(group), next, r.offsets, r.txns, sink); err != nil {
		if sink.failed {
			return err
		}
		return r.read(err)
	}
	if err := into.Seal(); err != nil {
		return err
	}
	if err := into.SyncLog(); err != nil {
		return err
	}
	return into.SyncIndexes()
}

// cleanedSink writes a cleaned segment.
type cleanedSink struct {
	into                      *segment.Segment
	intervalBytes, limitBytes int64
	room                      *cleaningRoom
	infos                     []segment.BatchInfo
	failed                    bool
}

// Append writes batches; the segment is nobody else's yet.
func (s *cleanedSink) Append(batches []byte, infos []compact.Batch) error {
	s.infos = s.infos[:0]
	for _, b := range infos {
		s.infos = append(s.infos, segment.BatchInfo{SizeBytes: b.SizeBytes, LastOffset: b.LastOffset, MaxTimestampMs: b.MaxTimestampMs})
	}
	s.room.take(int64(len(batches)))
	err := s.into.Append(batches, s.infos, s.intervalBytes, s.limitBytes)
	s.failed = s.failed || err != nil
	return err
}

// swap puts the cleaned segment in place of the group; see swap.go for the steps.
// Who reads the old segments finishes, and whoever comes too late for them looks
// again.
func (r *cleaning) swap(group []*segment.Segment, into *segment.Segment) error {
	l := r.l
	release := l.take()
	defer release()
	if err := r.check(); err != nil {
		return err
	}
	at := slices.Index(l.list(), group[0])
	if at < 0 || !slices.Equal(l.list()[at:at+len(group)], group) {
		return errAbandoned // retention was faster
	}
	into.Close()
	if err := l.store.env.FS.SyncDir(l.dir); err != nil {
		return err
	}
	if err := r.place(group, into); err != nil {
		// Some of the files may have moved. A reload ends what was begun.
		l.fail(fmt.Errorf("swap cleaned segments of %v: %w", l.tp, err), offlineBroken)
		return errors.Join(l.Err(), err)
	}
	return nil
}

// place is the part of a swap that has to end once it has begun.
func (r *cleaning) place(group []*segment.Segment, into *segment.Segment) error {
	l, base, fsys := r.l, into.BaseOffset(), r.l.store.env.FS
	if err := segment.MoveFiles(l.store.seg, l.dir, base, segment.CleanedSuffix, segment.SwapSuffix); err != nil {
		return err
	}
	if err := fsys.SyncDir(l.dir); err != nil {
		return err
	}
	var retired []string
	for _, s := range group {
		names, err := s.Retire(segment.DeletedSuffix)
		retired = append(retired, names...)
		if err != nil {
			return err
		}
	}
	if err := fsys.SyncDir(l.dir); err != nil {
		return err
	}
	if err := segment.PlaceFiles(l.store.seg, l.dir, base); err != nil {
		return err
	}
	placed, err := segment.Open(l.store.seg, l.dir, base, into.Sizes())
	if err != nil {
		return err
	}
	placed.SetComplete()
	l.mu.Lock()
	segments := slices.Clone(l.list())
	at := slices.Index(segments, group[0])
	l.publish(slices.Replace(segments, at, at+len(group), placed))
	err = l.pruneSnapshotsLocked()
	l.mu.Unlock()
	for _, s := range group {
		s.Close()
	}
	l.store.removeLater(r.cfg.FileDeleteDelayMs, retired...)
	return err
}

// lastRecords knows, as of now, where the state of the log's producers comes from.
func (l *Log) lastRecords() func(int64) (compact.LastRecord, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := make(map[int64]compact.LastRecord, l.producers.Len())
	for _, e := range l.producers.Entries() {
		last, _ := e.Last()
		m[e.ProducerID] = compact.LastRecord{Offset: last.LastOffset, Epoch: e.Epoch}
	}
	return func(id int64) (compact.LastRecord, bool) {
		last, ok := m[id]
		return last, ok
	}
}
