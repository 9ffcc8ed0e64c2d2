package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// normalised replaces what Kafka reads as "no limit" or "default".
func (c LogConfig) normalised() LogConfig {
	if c.SegmentBytes <= 0 || c.SegmentBytes > segment.MaxSizeBytes {
		c.SegmentBytes = min(1<<30, segment.MaxSizeBytes)
	}
	if c.SegmentMs <= 0 {
		c.SegmentMs = math.MaxInt64
	}
	if c.SegmentIndexBytes <= 0 {
		c.SegmentIndexBytes = 10 << 20
	}
	if c.IndexIntervalBytes < 0 {
		c.IndexIntervalBytes = 4096
	}
	if c.FlushMessages <= 0 {
		c.FlushMessages = math.MaxInt64
	}
	if c.FlushMs <= 0 {
		c.FlushMs = math.MaxInt64
	}
	return c
}

// rollAfter is segment.ms less a random part of segment.jitter.ms, so that the
// partitions of a topic do not all roll at once. What has to be compacted by
// max.compaction.lag.ms must not be in the active segment any more by then.
func (s *Store) rollAfter(c LogConfig) int64 {
	after := c.SegmentMs
	if c.Compact && c.MaxCompactionLagMs > 0 {
		after = min(after, c.MaxCompactionLagMs)
	}
	jitter := min(c.SegmentJitterMs, after)
	if jitter <= 0 {
		return after
	}
	return after - int64(s.env.Rand()%uint64(jitter))
}

// OpenLog opens a partition's log, or makes it. After a clean stop nothing but
// the topic id is read: the log loads itself when it is first used. After an
// unclean one its recovery starts in the background, and whoever uses it before
// that recovers it first.
func (s *Store) OpenLog(tp TopicPartition, id TopicID, cfg LogConfig) (*Log, error) {
	l, found, done, err := s.beginOpen(tp, id, cfg)
	if err != nil {
		return nil, fmt.Errorf("open log %v: %w", tp, err)
	}
	if done == nil {
		return l, nil
	}
	defer done()
	if found {
		var err error
		if found, err = s.claimFolder(l, id); err != nil {
			return nil, fmt.Errorf("open log %v: %w", tp, err)
		}
	}
	if !found {
		if err := s.clearLeftover(tp); err != nil {
			return nil, fmt.Errorf("create log %v: %w", tp, err)
		}
		if err := l.create(); err != nil {
			return nil, fmt.Errorf("create log %v: %w", tp, err)
		}
	}
	return s.install(l, found)
}

// beginOpen returns the log when it is open already. Otherwise the caller is the
// only one who makes it, until it calls done.
func (s *Store) beginOpen(tp TopicPartition, id TopicID, cfg LogConfig) (l *Log, found bool, done func(), err error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, false, nil, ErrClosed
		}
		if l, ok := s.logs[tp]; ok {
			s.mu.Unlock()
			if l.topicID != id {
				return nil, false, nil, fmt.Errorf("it is open for topic id %s, not %s", FormatID(l.topicID), FormatID(id))
			}
			return l, true, nil, nil
		}
		other, busy := s.opening[tp]
		if !busy {
			break
		}
		s.mu.Unlock()
		<-other
	}
	ready := make(chan struct{})
	s.opening[tp] = ready
	_, found = s.folders[tp.String()]
	l = s.newLogLocked(tp, id, cfg)
	s.mu.Unlock()
	return l, found, func() {
		s.mu.Lock()
		delete(s.opening, tp)
		s.mu.Unlock()
		close(ready)
	}, nil
}

func (s *Store) newLogLocked(tp TopicPartition, id TopicID, cfg LogConfig) *Log {
	c := cfg.normalised()
	l := &Log{
		store: s, tp: tp, topicID: id, dir: s.path(tp.String()),
		maintenance: make(chan struct{}, 1), syncing: make(chan struct{}, 1), createdMs: s.env.Clock.Elapsed().Milliseconds(),
		rollAfter: s.rollAfter(c), unclean: !s.clean,
	}
	l.cfg.Store(&c)
	l.cleanedTo.Store(-1)
	l.flushedMs = l.createdMs
	return l
}

// install makes the log known.
func (s *Store) install(l *Log, found bool) (*Log, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	if found {
		s.adoptCheckpointsLocked(l)
	}
	s.forgetLocked(l.tp)
	s.logs[l.tp] = l
	s.mu.Unlock()
	if l.cfg.Load().Compact {
		s.cleaner.wake()
	}
	if found && l.unclean {
		s.recovering.add(s, l)
	}
	return l, nil
}

// clearLeftover takes out of the checkpoint files what they have of an earlier topic
// of the name: after a crash the new folder would be taken for the old one, which
// began and was whole at other offsets.
func (s *Store) clearLeftover(tp TopicPartition) error {
	s.mu.Lock()
	_, named := s.leftover[tp]
	s.mu.Unlock()
	if !named {
		return nil
	}
	return s.writeCheckpoints()
}

// forgetLocked drops what was read at start about a partition.
func (s *Store) forgetLocked(tp TopicPartition) {
	delete(s.folders, tp.String())
	delete(s.points, tp)
	delete(s.marks, tp)
	delete(s.starts, tp)
	delete(s.cleaned, tp)
}

// adoptCheckpointsLocked gives a found log the offsets of the last run. After a
// clean stop the recovery point is the log's end, so that nothing needs to be
// read to know it.
func (s *Store) adoptCheckpointsLocked(l *Log) {
	point, havePoint := s.points[l.tp]
	start, haveStart := s.starts[l.tp]
	l.recoveryPoint.Store(point)
	l.logStart.Store(start)
	l.startKnown.Store(haveStart)
	l.highWatermark.Store(s.marks[l.tp])
	if offset, ok := s.cleaned[l.tp]; ok {
		l.cleanedTo.Store(offset)
	}
	if !havePoint {
		// An unclean start recovers what is opened. What nobody opened until it was
		// stopped cleanly is as the crash left it, and has no recovery point any more.
		l.unclean = true
	}
	if s.clean && havePoint && haveStart && start <= point {
		l.logEnd.Store(point)
		l.durable.Store(point)
		l.endKnown = true
		l.highWatermark.Store(min(max(l.highWatermark.Load(), start), point))
	}
}

// claimFolder checks that a folder found on disk belongs to the topic. One of
// another topic of that name is set aside, never deleted: false then.
func (s *Store) claimFolder(l *Log, id TopicID) (bool, error) {
	name := l.path(partitionMetadataFile)
	b, err := readFile(s.env.FS, name)
	var have TopicID
	if err == nil {
		have, err = ParsePartitionMetadata(b)
	}
	switch {
	case err == nil && have == id:
		return true, nil
	case err == nil:
		return false, s.setFolderAside(l.tp, have, id)
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt):
		// A crash between the making of the folder and its first sync, or a
		// folder from before topic ids.
		s.env.Logger.Warn("the folder has no readable topic id and is taken for the topic that has its name", "file", name, "err", err)
		return true, replaceFile(s.env.FS, name, EncodePartitionMetadata(id))
	}
	return false, err
}

func (s *Store) setFolderAside(tp TopicPartition, have, want TopicID) error {
	old, aside := s.path(tp.String()), s.path(s.uniqueFolder(tp, straySuffix))
	if err := s.env.FS.Rename(old, aside); err != nil {
		return err
	}
	s.env.Logger.Warn("a folder of another topic of the same name was set aside",
		"folder", old, "aside", aside, "topicID", FormatID(have), "wanted", FormatID(want))
	s.mu.Lock()
	s.forgetLocked(tp)
	s.leftover[tp] = struct{}{}
	s.mu.Unlock()
	return s.env.FS.SyncDir(s.dir)
}

// create makes the folder of a new partition. Nothing is synced: the first
// flush does that, before it calls anything durable.
func (l *Log) create() error {
	fsys := l.store.env.FS
	if l.store.look(); l.store.removed() {
		return ErrRemoved
	}
	if err := fsys.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	// Written in place: one that a crash tears counts as absent.
	if err := writeFile(fsys, l.path(partitionMetadataFile), EncodePartitionMetadata(l.topicID)); err != nil {
		return err
	}
	first, err := segment.Create(l.store.seg, l.dir, 0, true)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publish([]*segment.Segment{first})
	l.folderNew, l.parentNew, l.unclean = true, true, false
	l.loaded.Store(true)
	return nil
}

// Delete gives the log up: it is closed, its folder renamed and removed after
// file.delete.delay.ms. Readers that hold regions finish.
func (s *Store) Delete(tp TopicPartition) error {
	s.mu.Lock()
	l, ok := s.logs[tp]
	_, found := s.folders[tp.String()]
	delete(s.logs, tp)
	if ok {
		s.leftover[tp] = struct{}{}
	}
	s.mu.Unlock()
	if !ok && found {
		return s.DiscardStray(Stray{TopicPartition: tp, Path: s.path(tp.String())})
	}
	if !ok {
		return nil
	}
	l.dead.Store(true)
	s.cleaner.await(l) // it must not write into a folder that may be made anew
	release := l.take()
	defer release()
	l.abandon(ErrClosed)
	aside := s.uniqueFolder(tp, deleteSuffix)
	if err := s.env.FS.Rename(l.dir, s.path(aside)); err != nil {
		// A new topic of the name must not be made in there.
		s.mu.Lock()
		s.folders[tp.String()] = struct{}{}
		s.mu.Unlock()
		return fmt.Errorf("delete log %v: %w", tp, err)
	}
	if err := s.env.FS.SyncDir(s.dir); err != nil {
		return fmt.Errorf("delete log %v: %w", tp, err)
	}
	s.removeLater(l.Config().FileDeleteDelayMs, s.path(aside))
	return nil
}

// Found tells whether a partition whose log is not open has a folder.
func (s *Store) Found(tp TopicPartition) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.folders[tp.String()]
	return found
}

// Stray is a partition folder that no topic claims.
type Stray struct {
	TopicPartition
	// TopicID is zero when the folder has none.
	TopicID TopicID
	Path    string
}

// Strays are the folders found at start that belong to no topic: known says
// whether a topic id is one of ours. They are left alone.
func (s *Store) Strays(known func(tp TopicPartition, id TopicID) bool) []Stray {
	s.mu.Lock()
	names := make([]string, 0, len(s.folders))
	for name := range s.folders {
		names = append(names, name)
	}
	s.mu.Unlock()
	var strays []Stray
	for _, name := range names {
		tp, _ := ParseFolderName(name)
		stray := Stray{TopicPartition: tp, Path: s.path(name)}
		if b, err := readFile(s.env.FS, filepath.Join(stray.Path, partitionMetadataFile)); err == nil {
			if id, err := ParsePartitionMetadata(b); err == nil {
				stray.TopicID = id
			}
		}
		if !known(tp, stray.TopicID) {
			strays = append(strays, stray)
		}
	}
	return strays
}

// DiscardStray deletes a folder found at start whose topic was deleted while it
// was away: as Delete does, but at once.
func (s *Store) DiscardStray(stray Stray) error {
	aside := s.path(s.uniqueFolder(stray.TopicPartition, deleteSuffix))
	if err := s.env.FS.Rename(stray.Path, aside); err != nil {
		return fmt.Errorf("discard %s: %w", stray.Path, err)
	}
	s.mu.Lock()
	s.forgetLocked(stray.TopicPartition)
	s.leftover[stray.TopicPartition] = struct{}{}
	s.mu.Unlock()
	if err := s.env.FS.SyncDir(s.dir); err != nil {
		return fmt.Errorf("discard %s: %w", stray.Path, err)
	}
	s.removeLater(0, aside)
	return nil
}
