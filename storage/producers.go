package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage/producer"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// historyBytes is how far before a snapshot the log is looked at for the other
// four of a producer's last five batches, which a snapshot does not hold. Five
// batches of the default largest size fit.
const historyBytes = 8 << 20

// loadProducersLocked rebuilds the producer table for the log's end, from the
// newest sound snapshot and the headers of the batches after it, and the
// transaction indexes, which are known to be complete below offset sound. With trust, a log that has no snapshot at all has no producers either:
// it was stopped cleanly, by something that keeps none.
func (l *Log) loadProducersLocked(end, sound int64, trust bool) error {
	for n := len(l.snapshots); n > 0 && l.snapshots[n-1] > end; n-- {
		if err := l.removeSnapshot(l.snapshots[n-1]); err != nil {
			return err
		}
		l.snapshots, l.folderNew = l.snapshots[:n-1], true
	}
	had := len(l.snapshots)
	table, from, err := l.nearestTableLocked(end)
	if err == nil && sound < from {
		err = l.fillAbortedLocked(sound, from)
	}
	if err != nil {
		return err
	}
	table.Expire(l.nowMs(), l.store.cfg.ProducerIDExpirationMs)
	l.producers.Reset()
	for _, e := range table.Entries() {
		l.producers.Set(e)
	}
	if !trust || had > 0 {
		err = l.replay(&l.producers, from, end, noteAborted)
	}
	for _, s := range l.list() {
		err = errors.Join(err, s.WriteAborted()) // a flush writes the last one's only
	}
	l.stable.reset(&l.producers)
	return err
}

// fillAbortedLocked completes the transaction indexes between offsets for which
// the producers themselves are known from a later snapshot.
func (l *Log) fillAbortedLocked(sound, to int64) error {
	table, from, err := l.nearestTableLocked(sound)
	if err != nil {
		return err
	}
	return l.replay(table, from, to, noteAborted)
}

// nearestTableLocked is the table of the newest sound snapshot that is not behind
// an offset, and the offset that it is for; an empty one and the log's start when
// there is none.
func (l *Log) nearestTableLocked(at int64) (table *producer.Table, from int64, err error) {
	start := l.logStart.Load()
	for i := len(l.snapshots) - 1; i >= 0 && l.snapshots[i] >= start; i-- {
		from := l.snapshots[i]
		if from > at {
			continue
		}
		table, err := l.readSnapshot(from)
		if errors.Is(err, producer.ErrCorruptSnapshot) {
			l.store.env.Logger.Warn("a producer snapshot is unreadable and is removed", "file", l.snapshotPath(from), "err", err)
			if err := l.removeSnapshot(from); err != nil {
				return nil, 0, err
			}
			l.snapshots = slices.Delete(l.snapshots, i, i+1)
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if table.Len() > 0 {
			err = l.enrich(table, from)
		}
		return table, from, err
	}
	return &producer.Table{}, start, nil
}

// enrich finds the older batches of the producers that a snapshot names.
func (l *Log) enrich(table *producer.Table, at int64) error {
	segments := l.list()
	i := floorSegment(segments, at-1)
	if i < 0 {
		return nil
	}
	room := int64(historyBytes)
	position, err := segments[i].Position(at)
	if err != nil {
		return err
	}
	for i > 0 && position < room {
		room -= position
		i--
		position = segments[i].SizeBytes()
	}
	first, err := segments[i].OffsetNear(max(0, position-room))
	if err != nil {
		return err
	}
	var history producer.Table
	if err := l.replay(&history, max(first, l.logStart.Load()), at, nil); err != nil {
		return err
	}
	table.Enrich(&history)
	return nil
}

// replay feeds the batches in [from, end) to a table, and tells note, if it is not
// nil, of the transactions that end there.
func (l *Log) replay(t *producer.Table, from, end int64, note func(*segment.Segment, []producer.Ended) error) error {
	if from >= end {
		return nil
	}
	segments := l.list()
	for i := max(0, floorSegment(segments, from)); i < len(segments) && segments[i].BaseOffset() < end; i++ {
		s := segments[i]
		err := l.replaySegment(s, from, end, func(b producer.Batch) error {
			ended := t.Replay(b)
			if note == nil || len(ended) == 0 {
				return nil
			}
			return note(s, ended)
		})
		var bad *segment.CorruptError
		if errors.As(err, &bad) {
			// Rotten bytes in an old segment shall not keep the partition down.
			l.store.env.Logger.Error("the producers of a damaged part of a log are unknown", "log", l.tp.String(),
				"file", bad.Path, "position", bad.Position, "why", bad.Reason)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) replaySegment(s *segment.Segment, from, end int64, fn func(producer.Batch) error) error {
	var inner error
	err := s.Scan(max(from, s.BaseOffset()), func(h segment.Header) bool {
		if h.BaseOffset() >= end {
			return false
		}
		if !h.HasProducerID() {
			return true
		}
		b, ok, err := l.producerBatch(s, h)
		if err == nil && ok {
			err = fn(b)
		}
		inner = err
		return err == nil
	})
	return errors.Join(err, inner)
}

// producerBatch reads a batch's header, and of a control batch its record.
func (l *Log) producerBatch(s *segment.Segment, h segment.Header) (b producer.Batch, ok bool, err error) {
	whole := h.View
	if h.IsControl() {
		if whole, err = s.Batch(h); err != nil {
			return b, false, err
		}
	}
	if b, ok, err = producerBatch(h.View, whole); err != nil {
		err = &segment.CorruptError{Path: s.Path(), Position: h.Position, BaseOffset: h.BaseOffset(), Reason: err.Error()}
	}
	return b, ok, err
}

// producerBatch is what the table needs of a batch; whole need only be that for a
// control batch. One without a marker says nothing about its producer: ok is false.
func producerBatch(v, whole batch.View) (b producer.Batch, ok bool, err error) {
	b = producer.Batch{
		ProducerID: v.ProducerID(), Epoch: v.ProducerEpoch(),
		BaseSequence: v.BaseSequence(), LastSequence: v.LastSequence(),
		FirstOffset: v.BaseOffset(), LastOffset: v.LastOffset(),
		TimestampMs: v.MaxTimestamp(), Transactional: v.IsTransactional(),
	}
	if !v.IsControl() {
		return b, true, nil
	}
	m, ok, err := batch.ParseMarker(whole)
	if ok {
		b.Marker = &producer.Marker{CoordinatorEpoch: m.CoordinatorEpoch, Commit: m.Commit}
	}
	return b, ok, err
}

func (l *Log) snapshotPath(offset int64) string {
	return l.path(segment.FileName(offset, segment.SnapshotSuffix))
}

func (l *Log) readSnapshot(offset int64) (*producer.Table, error) {
	b, err := readFile(l.store.env.FS, l.snapshotPath(offset))
	if err != nil {
		return nil, err
	}
	return producer.Decode(b)
}

func (l *Log) removeSnapshot(offset int64) error {
	err := l.store.env.FS.Remove(l.snapshotPath(offset))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a producer snapshot: %w", err)
	}
	return nil
}

// snapshotLocked writes the producer table for an offset at the log's end. The
// file is not synced: it has a checksum, and a lost one only costs a longer
// replay.
func (l *Log) snapshotLocked(at int64) error {
	if n := len(l.snapshots); n > 0 && l.snapshots[n-1] == at || at == 0 {
		return nil
	}
	if err := placeFile(l.store.env.FS, l.snapshotPath(at), l.producers.Encode(), false); err != nil {
		return err
	}
	l.snapshots, l.folderNew = append(l.snapshots, at), true
	return l.pruneSnapshotsLocked()
}

// pruneSnapshotsLocked keeps the snapshots at the start of a segment, as Kafka
// does, and the newest one.
func (l *Log) pruneSnapshotsLocked() error {
	segments := l.list()
	keep := l.snapshots[:0:0]
	for i, at := range l.snapshots {
		j := floorSegment(segments, at)
		if i == len(l.snapshots)-1 || j >= 0 && segments[j].BaseOffset() == at {
			keep = append(keep, at)
			continue
		}
		if err := l.removeSnapshot(at); err != nil {
			return err
		}
	}
	l.snapshots = keep
	return nil
}
