package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Env is what the segments of one data directory share.
type Env struct {
	FS    vfs.FS
	Files *Files
	Maps  *Maps
	// Room says whether bytes may be reserved ahead of the writer, and counts
	// them; nil allows it always.
	Room func(sizeBytes int64) bool
}

// NoTimestamp is the timestamp of an empty segment.
const NoTimestamp = -1

// MaxSizeBytes is the largest .log file: positions in a .index have 31 bits.
const MaxSizeBytes = math.MaxInt32

// Segment is one .log file and its indexes.
//
// Methods that read (Read, Position, SizeBytes, BaseOffset) may be called at any
// time by anyone. All others belong to the writer: the caller's lock orders them.
type Segment struct {
	env  *Env
	dir  string
	base int64
	ref  *FileRef
	// size counts the bytes of whole batches that readers may see. The file can
	// be longer for a moment, while a batch is being written.
	size    atomic.Int64
	offsets *index
	times   *index
	txns    *txnIndex

	// Below: writer only.

	maxTimestampMs int64
	maxOffset      int64 // last offset of the first batch with maxTimestampMs
	maxKnown       bool
	complete       bool  // the time index ends with the largest timestamp
	firstMs        int64 // max timestamp of the first batch, for segment.ms
	firstKnown     bool
	sinceIndex     int64
	reserved       int64 // bytes preallocated in the file
	reserveFailed  bool
	unsynced       atomic.Bool // written since the last sync began
}

// Create makes an empty segment. Files that an interrupted run left under its
// name are emptied or removed. In a fresh folder nothing can be left, and the
// .log appears with its first write: creating files is what makes thousands of
// new partitions slow. Otherwise the .log is made at once, because the name of
// an empty one can be all that tells where the log goes on.
func Create(env *Env, dir string, baseOffset int64, fresh bool) (*Segment, error) {
	s := build(env, dir, baseOffset)
	if !fresh {
		if err := s.createFile(); err != nil {
			return nil, fmt.Errorf("create a segment: %w", err)
		}
	}
	s.ref = env.Files.Ref(s.ref.path, os.O_RDWR|os.O_CREATE)
	s.offsets = newIndex(env.Files.Ref(path(dir, baseOffset, IndexSuffix), os.O_RDWR|os.O_CREATE), OffsetEntrySize, 0, false)
	s.times = newIndex(env.Files.Ref(path(dir, baseOffset, TimeIndexSuffix), os.O_RDWR|os.O_CREATE), TimeEntrySize, 0, false)
	s.txns = newTxnIndex(env.Files, path(dir, baseOffset, TxnIndexSuffix), baseOffset, -1)
	s.maxKnown, s.firstKnown = true, true
	return s, nil
}

func (s *Segment) createFile() error {
	for _, suffix := range []string{IndexSuffix, TimeIndexSuffix, TxnIndexSuffix} {
		if err := s.env.FS.Remove(path(s.dir, s.base, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := s.env.FS.OpenFile(s.ref.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// Sizes are the lengths of a segment's files; -1 for one that is missing.
type Sizes struct {
	LogBytes, IndexBytes, TimeIndexBytes, TxnIndexBytes int64
}

// Open takes over a segment whose files have these lengths. It reads nothing. An
// index that can't be right is reported with ErrCorruptIndex, and the segment is
// returned all the same: RebuildIndexes repairs it.
func Open(env *Env, dir string, baseOffset int64, sizes Sizes) (*Segment, error) {
	s := build(env, dir, baseOffset)
	s.size.Store(sizes.LogBytes)
	var err, timeErr error
	s.offsets, err = openIndex(env.Files, path(dir, baseOffset, IndexSuffix), OffsetEntrySize, max(0, sizes.IndexBytes), sizes.IndexBytes >= 0)
	s.times, timeErr = openIndex(env.Files, path(dir, baseOffset, TimeIndexSuffix), TimeEntrySize, max(0, sizes.TimeIndexBytes), sizes.TimeIndexBytes >= 0)
	s.txns = newTxnIndex(env.Files, path(dir, baseOffset, TxnIndexSuffix), baseOffset, sizes.TxnIndexBytes)
	if err == nil {
		err = timeErr
	}
	if err == nil && sizes.LogBytes > 0 && (sizes.IndexBytes < 0 || sizes.TimeIndexBytes < 0) {
		err = fmt.Errorf("%w: %s has no index", ErrCorruptIndex, s.ref.path)
	}
	if sizes.LogBytes > MaxSizeBytes {
		return s, &CorruptError{Path: s.ref.path, Position: MaxSizeBytes, BaseOffset: baseOffset, Reason: "the file is larger than any segment"}
	}
	return s, err
}

func build(env *Env, dir string, baseOffset int64) *Segment {
	return &Segment{
		env: env, dir: dir, base: baseOffset,
		ref:            env.Files.Ref(path(dir, baseOffset, LogSuffix), os.O_RDWR),
		maxTimestampMs: NoTimestamp, maxOffset: baseOffset, firstMs: NoTimestamp,
	}
}

// SetComplete says that the segment was sealed: its time index needs no look at
// the batches behind its last entry.
func (s *Segment) SetComplete() { s.complete = true }

// BaseOffset is the offset that names the segment.
func (s *Segment) BaseOffset() int64 { return s.base }

// SizeBytes is the length of the .log file that holds whole batches.
func (s *Segment) SizeBytes() int64 { return s.size.Load() }

// Path is the .log file.
func (s *Segment) Path() string { return s.ref.path }

// IndexBytes is the space that the index entries take.
func (s *Segment) IndexBytes() int64 {
	return int64(s.offsets.len())*OffsetEntrySize + int64(s.times.len())*TimeEntrySize
}

// IndexSizes are the bytes that the entries of the offset index and of the time
// index take.
func (s *Segment) IndexSizes() (offsets, times int64) {
	return int64(s.offsets.len()) * OffsetEntrySize, int64(s.times.len()) * TimeEntrySize
}

// IndexFull says that an index has no room for another entry when its file may
// have maxBytes; the time index keeps one entry for the roll.
func (s *Segment) IndexFull(maxBytes int64) bool {
	return int64(s.offsets.len()) >= maxBytes/OffsetEntrySize || int64(s.times.len()) >= maxBytes/TimeEntrySize-1
}

// CanHold says that the offset fits a relative offset of 31 bits.
func (s *Segment) CanHold(offset int64) bool {
	return offset >= s.base && offset-s.base <= math.MaxInt32
}

// FirstTimestamp is the max timestamp of the first batch, which segment.ms
// counts from; NoTimestamp when there is none.
func (s *Segment) FirstTimestamp() (int64, error) {
	if s.firstKnown {
		return s.firstMs, nil
	}
	if s.SizeBytes() == 0 {
		s.firstKnown = true
		return s.firstMs, nil
	}
	f, err := s.ref.Acquire()
	if err != nil {
		return 0, err
	}
	defer s.ref.Release()
	sc := NewScanner(f, s.ref.path, 0, s.SizeBytes(), s.base, false)
	if !sc.Next() {
		return 0, sc.Err()
	}
	s.firstMs, s.firstKnown = sc.Header().MaxTimestamp(), true
	return s.firstMs, nil
}

// ModTimeMs is when the .log file was last written, for segments without
// timestamps.
func (s *Segment) ModTimeMs() (int64, error) {
	info, err := s.env.FS.Stat(s.ref.path)
	if err != nil {
		return 0, fmt.Errorf("stat a segment: %w", err)
	}
	return info.ModTime().UnixMilli(), nil
}

// Close gives up the files; readers that hold them finish.
func (s *Segment) Close() {
	s.ref.Close()
	s.offsets.ref.Close()
	s.times.ref.Close()
	s.txns.ref.Close()
}

// Rename moves the segment's files to the given extra suffix, closes them and
// returns the new names.
func (s *Segment) Rename(extra string) (names []string, err error) {
	s.Close()
	return s.renameFiles(extra, func(_ int, old, name string) error { return s.env.FS.Rename(old, name) })
}
