package storage

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// recoverLocked checks everything past the recovery point, cuts what is not
// whole and rebuilds indexes and epochs. It returns the segments that remain and
// the log's end.
func (l *Log) recoverLocked(segments []*segment.Segment) ([]*segment.Segment, int64, error) {
	l.unclean, l.scannedBytes = true, 0
	// Names that the last run made may not be durable yet.
	l.folderNew, l.parentNew = true, true
	point := l.recoveryPoint.Load()
	// Epochs past the recovery point come from the batches again.
	noted := l.epochs
	l.epochsNew = l.epochs.truncateFromEnd(point+1) || l.epochsNew
	var end int64
	for i, s := range segments {
		last := i == len(segments)-1
		if !last && segments[i+1].BaseOffset() <= point {
			continue
		}
		r, err := l.recoverSegment(s, point)
		if err != nil {
			return nil, 0, err
		}
		end = r.NextOffset
		// What follows is found again when the producers are loaded.
		if err := s.CutAborted(min(point, end)); err != nil {
			return nil, 0, err
		}
		l.addUnflushed(r.ScannedBytes)
		l.scannedBytes += r.ScannedBytes
		if r.CutBytes > 0 {
			l.folderNew = true
		}
		if !last && (r.Corrupt != nil || r.NextOffset != segments[i+1].BaseOffset() && !l.gapAllowed(segments[i+1].BaseOffset())) {
			// What follows a hole can't be served: offsets would be missing.
			if err := l.setSegmentsAside(segments[i+1:], s, r); err != nil {
				return nil, 0, err
			}
			segments, last = segments[:i+1], true
		}
		if last {
			break
		}
		if err := s.Seal(); err != nil {
			return nil, 0, err
		}
	}
	if point > end {
		l.store.env.Logger.Error("the log ends before its recovery point: synced data is gone", "log", l.tp.String(), "recoveryPoint", point, "logEndOffset", end)
		l.recoveryPoint.Store(end)
		if err := l.store.writeCheckpoints(); err != nil {
			return nil, 0, err
		}
	}
	for _, e := range noted {
		// A leader that wrote nothing left no batch.
		if e.StartOffset == end && e.Epoch > l.epochs.latest() {
			l.epochs.assign(e.Epoch, e.StartOffset)
		}
	}
	return segments, end, nil
}

// gapAllowed says that offsets may be missing before a segment: compaction leaves
// gaps, though only where everything was durable before it began.
func (l *Log) gapAllowed(base int64) bool {
	if base <= max(l.syncedTo, l.cleanedTo.Load()) {
		return true
	}
	// Without checkpoints, nothing tells a gap from a loss.
	return l.Config().Compact && l.syncedTo == 0 && l.cleanedTo.Load() < 0
}

func (l *Log) recoverSegment(s *segment.Segment, point int64) (segment.Recovery, error) {
	r, err := s.Recover(segment.RecoverOptions{
		From: point, IntervalBytes: l.Config().IndexIntervalBytes, Rewrite: l.rewrite,
		Keep: func(f vfs.File, position, sizeBytes int64, why *segment.CorruptError) error {
			return l.keepTail(f, s, position, sizeBytes, why)
		},
		Each: func(h segment.Header) {
			if epoch := h.PartitionLeaderEpoch(); epoch > l.epochs.latest() && l.epochs.assign(epoch, h.BaseOffset()) {
				l.epochsNew = true
			}
		},
	})
	if err != nil {
		return r, err
	}
	if r.CutBytes > 0 {
		l.store.env.Logger.Warn("cut an incomplete tail", "file", s.Path(), "position", r.ValidBytes, "bytes", r.CutBytes,
			"offset", r.NextOffset, "why", r.Corrupt.Reason)
	}
	return r, nil
}

// keepTail saves what follows the last valid batch beside the log, unless it is
// plainly the torn end of the last write: shorter than one batch, or zeros.
func (l *Log) keepTail(f vfs.File, s *segment.Segment, position, sizeBytes int64, why *segment.CorruptError) error {
	const window = 1 << 20
	sizeBytes = min(sizeBytes, maxKeptTail)
	buf := make([]byte, min(window, sizeBytes))
	if sizeBytes <= window {
		if _, err := f.ReadAt(buf, position); err != nil {
			return fmt.Errorf("read the tail of %s: %w", s.Path(), err)
		}
		if torn(buf) {
			return nil
		}
	}
	name := fmt.Sprintf("%s.%d%s", s.Path(), position, segment.CorruptSuffix)
	out, err := l.store.env.FS.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("keep a damaged tail: %w", err)
	}
	err = copyRange(out, f, position, sizeBytes, buf)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("keep a damaged tail: %w", err)
	}
	l.store.env.Logger.Error("a damaged part of a log was set aside", "file", s.Path(), "position", position, "aside", name, "why", why.Reason)
	return nil
}

// maxKeptTail bounds what is copied aside.
const maxKeptTail = 64 << 20

func copyRange(out, in vfs.File, position, sizeBytes int64, buf []byte) error {
	for sizeBytes > 0 {
		b := buf[:min(int64(len(buf)), sizeBytes)]
		if _, err := in.ReadAt(b, position); err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		position += int64(len(b))
		sizeBytes -= int64(len(b))
	}
	return nil
}

// setSegmentsAside renames segments that can't be served.
func (l *Log) setSegmentsAside(segments []*segment.Segment, damaged *segment.Segment, r segment.Recovery) error {
	for _, s := range segments {
		names, err := s.Rename(segment.CorruptSuffix)
		if err != nil {
			return err
		}
		l.store.env.Logger.Error("a segment behind a damaged one was set aside", "files", names, "damaged", damaged.Path(), "position", r.ValidBytes, "offset", r.NextOffset)
	}
	l.folderNew = true
	return nil
}

// torn says that a tail is what a write that was cut leaves: zeros, or bytes that
// hold no further whole batch.
func torn(tail []byte) bool {
	if len(bytes.Trim(tail, "\x00")) == 0 {
		return true
	}
	size, err := batch.PeekSize(tail)
	// The first batch is the damaged one; when another follows, this was not
	// the last write.
	return err != nil && len(tail) < maxTornHeader || err == nil && size >= len(tail)
}

// maxTornHeader is more than a torn write without a readable header leaves: the
// file system writes whole pages.
const maxTornHeader = 4096
