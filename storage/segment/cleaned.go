package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// CreateCleaned makes an empty segment that compaction writes: its files have
// CleanedSuffix, and any that an interrupted run left are emptied or removed.
func CreateCleaned(env *Env, dir string, baseOffset int64) (*Segment, error) {
	if err := RemoveFiles(env, dir, baseOffset, CleanedSuffix); err != nil {
		return nil, fmt.Errorf("create a cleaned segment: %w", err)
	}
	s := build(env, dir, baseOffset)
	ref := func(suffix string) *FileRef {
		return env.Files.Ref(path(dir, baseOffset, suffix)+CleanedSuffix, os.O_RDWR|os.O_CREATE)
	}
	s.ref = ref(LogSuffix)
	s.offsets = newIndex(ref(IndexSuffix), OffsetEntrySize, 0, false)
	s.times = newIndex(ref(TimeIndexSuffix), TimeEntrySize, 0, false)
	s.txns = newTxnIndex(env.Files, path(dir, baseOffset, TxnIndexSuffix)+CleanedSuffix, baseOffset, -1)
	s.maxKnown, s.firstKnown = true, true
	if _, err := s.ref.Acquire(); err != nil { // even an empty one has a .log
		return nil, fmt.Errorf("create a cleaned segment: %w", err)
	}
	s.ref.Release()
	return s, nil
}

// suffixes are the files of a segment, the .log first.
var suffixes = []string{LogSuffix, IndexSuffix, TimeIndexSuffix, TxnIndexSuffix}

// RemoveFiles removes the files of a segment that have an extra suffix.
func RemoveFiles(env *Env, dir string, baseOffset int64, extra string) error {
	for _, suffix := range suffixes {
		if err := env.FS.Remove(path(dir, baseOffset, suffix) + extra); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// MoveFiles changes the extra suffix of a segment's files.
func MoveFiles(env *Env, dir string, baseOffset int64, from, to string) error {
	for _, suffix := range suffixes {
		name := path(dir, baseOffset, suffix)
		if err := env.FS.Rename(name+from, name+to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rename a segment: %w", err)
		}
	}
	return nil
}

// PlaceFiles takes SwapSuffix off a segment's files. The name of the .log is
// durable before any other changes: as long as it has the suffix, the files
// without belong to what it replaces.
func PlaceFiles(env *Env, dir string, baseOffset int64) error {
	for i, suffix := range suffixes {
		name := path(dir, baseOffset, suffix)
		if err := env.FS.Rename(name+SwapSuffix, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rename a segment: %w", err)
		}
		if i == 0 {
			if err := env.FS.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	return env.FS.SyncDir(dir)
}

// Retire moves the segment's files to the given extra suffix, as Rename does, but
// those who read it go on until Close.
func (s *Segment) Retire(extra string) (names []string, err error) {
	refs := []*FileRef{s.ref, s.offsets.ref, s.times.ref, s.txns.ref}
	return s.renameFiles(extra, func(i int, _, name string) error { return refs[i].rename(name) })
}

// renameFiles moves those files of the segment that are there, in the order of
// suffixes, and returns their new names.
func (s *Segment) renameFiles(extra string, rename func(i int, old, name string) error) (names []string, err error) {
	for i, suffix := range suffixes {
		old := path(s.dir, s.base, suffix)
		err := rename(i, old, old+extra)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return names, fmt.Errorf("rename a segment: %w", err)
		}
		names = append(names, old+extra)
	}
	return names, nil
}

// Sizes are the lengths of the files of a sealed segment.
func (s *Segment) Sizes() Sizes {
	sizes := Sizes{LogBytes: s.SizeBytes(), IndexBytes: -1, TimeIndexBytes: -1, TxnIndexBytes: s.txns.sizeBytes()}
	if s.offsets.exists.Load() {
		sizes.IndexBytes = int64(s.offsets.len()) * OffsetEntrySize
	}
	if s.times.exists.Load() {
		sizes.TimeIndexBytes = int64(s.times.len()) * TimeEntrySize
	}
	return sizes
}

// ReadAt reads bytes of the .log.
func (s *Segment) ReadAt(p []byte, off int64) (int, error) {
	f, err := s.ref.Acquire()
	if err != nil {
		return 0, err
	}
	defer s.ref.Release()
	return f.ReadAt(p, off)
}
