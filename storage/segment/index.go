package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// ErrCorruptIndex says that an index file can't be right. The .log holds
// everything that is needed to rebuild it.
var ErrCorruptIndex = errors.New("corrupt index")

const (
	// OffsetEntrySize is the size of an entry of a .index file.
	OffsetEntrySize = 8
	// TimeEntrySize is the size of an entry of a .timeindex file.
	TimeEntrySize = 12

	// tailMax bounds the entries that an active index keeps in memory; beyond
	// it the older half is served from the file.
	tailMax = 4096
	// searchBlock is the number of entries below which a search in a file
	// reads them all at once.
	searchBlock = 512
)

// entry is one index entry: (relative offset, position) of a .index file or
// (timestamp, relative offset) of a .timeindex file. Both are searched by key.
type entry struct {
	key   int64
	value uint32
}

// index is a sparse, sorted list of entries, of which the older ones are in a
// file and the newer ones in memory. Only the segment's writer changes it;
// lookups take no lock.
type index struct {
	ref   *FileRef
	width int
	state atomic.Pointer[indexState]
	// written is how many entries of the tail the file holds too. Writer only.
	written int
	// exists says that the file was made.
	exists atomic.Bool
}

// indexState is what readers see. The tail's array never moves; n entries of it
// are published.
type indexState struct {
	inFile int
	tail   []entry
	n      atomic.Int64
}

func newIndex(ref *FileRef, width, inFile int, exists bool) *index {
	x := &index{ref: ref, width: width}
	x.exists.Store(exists)
	x.state.Store(&indexState{inFile: inFile})
	return x
}

// len is the number of entries.
func (x *index) len() int {
	s := x.state.Load()
	return s.inFile + int(s.n.Load())
}

func (x *index) append(e entry) error {
	s := x.state.Load()
	n := int(s.n.Load())
	if n == len(s.tail) {
		var err error
		if s, err = x.grow(s, n); err != nil {
			return err
		}
		n = int(s.n.Load())
	}
	s.tail[n] = e
	s.n.Store(int64(n + 1))
	return nil
}

// grow makes room for one more entry: a larger tail, or one whose older half is
// left to the file.
func (x *index) grow(s *indexState, n int) (*indexState, error) {
	keepFrom, capacity := 0, max(16, 2*n)
	if n >= tailMax {
		if err := x.writeOut(); err != nil {
			return nil, err
		}
		keepFrom, capacity = n/2, tailMax
	}
	next := &indexState{inFile: s.inFile + keepFrom, tail: make([]entry, capacity)}
	next.n.Store(int64(copy(next.tail, s.tail[keepFrom:n])))
	x.written -= min(x.written, keepFrom)
	x.state.Store(next)
	return next, nil
}

func (x *index) encode(dst []byte, e entry) []byte {
	if x.width == OffsetEntrySize {
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.key))
	} else {
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.key))
	}
	return binary.BigEndian.AppendUint32(dst, e.value)
}

func decodeEntry(b []byte, width int) entry {
	if width == OffsetEntrySize {
		return entry{key: int64(binary.BigEndian.Uint32(b)), value: binary.BigEndian.Uint32(b[4:])}
	}
	return entry{key: int64(binary.BigEndian.Uint64(b)), value: binary.BigEndian.Uint32(b[8:])}
}

// writeOut brings the file up to date and makes it when missing.
func (x *index) writeOut() error {
	s := x.state.Load()
	n := int(s.n.Load())
	if x.exists.Load() && x.written == n {
		return nil
	}
	buf := make([]byte, 0, (n-x.written)*x.width)
	for _, e := range s.tail[x.written:n] {
		buf = x.encode(buf, e)
	}
	f, err := x.ref.Acquire()
	if err != nil {
		return err
	}
	defer x.ref.Release()
	if _, err := f.WriteAt(buf, int64(s.inFile+x.written)*int64(x.width)); err != nil {
		return fmt.Errorf("write %s: %w", x.ref.path, err)
	}
	x.exists.Store(true)
	x.written = n
	return nil
}

// at reads one entry of the file.
func (x *index) at(f vfs.File, i int) (entry, error) {
	buf := make([]byte, x.width)
	if err := x.readRaw(f, buf, i); err != nil {
		return entry{}, err
	}
	return decodeEntry(buf, x.width), nil
}

// floor finds the last entry whose key is not above key; ok is false when there
// is none.
func (x *index) floor(key int64) (e entry, ok bool, err error) {
	s := x.state.Load()
	tail := s.tail[:s.n.Load()]
	if len(tail) > 0 && tail[0].key <= key {
		return tail[lastAtMost(tail, key)], true, nil
	}
	return x.floorInFile(s.inFile, byKey, key)
}

func byKey(e entry) int64 { return e.key }

// floorBy is floor by another field that rises with the entries.
func (x *index) floorBy(field func(entry) int64, most int64) (e entry, ok bool, err error) {
	s := x.state.Load()
	tail := s.tail[:s.n.Load()]
	if i := floorIn(tail, field, most); i >= 0 {
		return tail[i], true, nil
	}
	return x.floorInFile(s.inFile, field, most)
}

// ceilBy finds the first entry with a field of at least least.
func (x *index) ceilBy(field func(entry) int64, least int64) (e entry, ok bool, err error) {
	s := x.state.Load()
	tail := s.tail[:s.n.Load()]
	i := floorIn(tail, field, least-1) + 1
	if i == 0 && s.inFile > 0 {
		if e, ok, err = x.ceilInFile(s.inFile, field, least); ok || err != nil {
			return e, ok, err
		}
	}
	if i == len(tail) {
		return entry{}, false, nil
	}
	return tail[i], true, nil
}

func (x *index) ceilInFile(n int, field func(entry) int64, least int64) (e entry, ok bool, err error) {
	f, err := x.ref.Acquire()
	if err != nil {
		return entry{}, false, err
	}
	defer x.ref.Release()
	lo, hi := 0, n
	for lo < hi {
		mid := lo + (hi-lo)/2
		at, err := x.at(f, mid)
		if err != nil {
			return entry{}, false, err
		}
		if field(at) < least {
			lo = mid + 1
		} else {
			e, ok, hi = at, true, mid
		}
	}
	return e, ok, nil
}

// blocks are the buffers of index searches.
var blocks = sync.Pool{New: func() any { return new([searchBlock * TimeEntrySize]byte) }}

func (x *index) floorInFile(n int, field func(entry) int64, most int64) (entry, bool, error) {
	if n == 0 {
		return entry{}, false, nil
	}
	f, err := x.ref.Acquire()
	if err != nil {
		return entry{}, false, err
	}
	defer x.ref.Release()
	block := blocks.Get().(*[searchBlock * TimeEntrySize]byte)
	defer blocks.Put(block)
	lo, hi := 0, n // the answer, if any, is in [lo, hi)
	for hi-lo > searchBlock {
		mid := lo + (hi-lo)/2
		if err := x.readRaw(f, block[:x.width], mid); err != nil {
			return entry{}, false, err
		}
		if field(decodeEntry(block[:], x.width)) <= most {
			lo = mid
		} else {
			hi = mid
		}
	}
	raw := block[:(hi-lo)*x.width]
	if err := x.readRaw(f, raw, lo); err != nil {
		return entry{}, false, err
	}
	below, above := -1, hi-lo
	for above-below > 1 {
		mid := below + (above-below)/2
		if field(decodeEntry(raw[mid*x.width:], x.width)) <= most {
			below = mid
		} else {
			above = mid
		}
	}
	if below < 0 {
		return entry{}, false, nil
	}
	return decodeEntry(raw[below*x.width:], x.width), true, nil
}

// readRaw reads entries of the file from number from on; what a file that was
// cut under a reader lacks is zero, which leads to the start of the segment.
func (x *index) readRaw(f vfs.File, b []byte, from int) error {
	n, err := f.ReadAt(b, int64(from)*int64(x.width))
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", x.ref.path, err)
	}
	clear(b[n:])
	return nil
}

// floorIn is the position of the last entry with a field of at most most, or -1.
func floorIn(entries []entry, field func(entry) int64, most int64) int {
	lo, hi := -1, len(entries)
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if field(entries[mid]) <= most {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// lastAtMost is floorIn by key, on the path of every fetch.
func lastAtMost(entries []entry, key int64) int {
	lo, hi := -1, len(entries)
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if entries[mid].key <= key {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// last is the newest entry.
func (x *index) last() (entry, bool, error) {
	s := x.state.Load()
	if n := s.n.Load(); n > 0 {
		return s.tail[n-1], true, nil
	}
	if s.inFile == 0 {
		return entry{}, false, nil
	}
	f, err := x.ref.Acquire()
	if err != nil {
		return entry{}, false, err
	}
	defer x.ref.Release()
	e, err := x.at(f, s.inFile-1)
	return e, err == nil, err
}

// truncate keeps the entries before the first one that cut chooses; the file is
// cut as well.
func (x *index) truncate(cut func(entry) bool) error {
	if err := x.writeOut(); err != nil {
		return err
	}
	n := x.len()
	f, err := x.ref.Acquire()
	if err != nil {
		return err
	}
	defer x.ref.Release()
	lo, hi := 0, n
	for lo < hi {
		mid := lo + (hi-lo)/2
		e, err := x.at(f, mid)
		if err != nil {
			return err
		}
		if cut(e) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return x.resetLocked(f, lo)
}

// reset drops every entry.
func (x *index) reset() error {
	f, err := x.ref.Acquire()
	if err != nil {
		return err
	}
	defer x.ref.Release()
	return x.resetLocked(f, 0)
}

// resetLocked keeps the first n entries, all of which the file holds.
func (x *index) resetLocked(f vfs.File, n int) error {
	if err := f.Truncate(int64(n) * int64(x.width)); err != nil {
		return fmt.Errorf("cut %s: %w", x.ref.path, err)
	}
	x.exists.Store(true)
	x.written = 0
	x.state.Store(&indexState{inFile: n})
	return nil
}

func (x *index) sync() error {
	if !x.exists.Load() {
		return nil
	}
	f, err := x.ref.Acquire()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted since
	}
	if err != nil {
		return err
	}
	defer x.ref.Release()
	if err := f.SyncData(); err != nil {
		return fmt.Errorf("sync %s: %w", x.ref.path, err)
	}
	return nil
}

// openIndex opens what a file's length promises. Kafka's own active files are
// longer than their entries; such a tail of zeros is found and ignored.
func openIndex(files *Files, path string, width int, sizeBytes int64, exists bool) (*index, error) {
	ref := files.Ref(path, os.O_RDWR|os.O_CREATE)
	if sizeBytes%int64(width) != 0 || sizeBytes/int64(width) > math.MaxInt32 {
		return newIndex(ref, width, 0, exists), fmt.Errorf("%w: %s has %d bytes, not a multiple of %d", ErrCorruptIndex, path, sizeBytes, width)
	}
	return newIndex(ref, width, int(sizeBytes/int64(width)), exists), nil
}

// check looks at the newest entry, as Kafka does when it opens an index, and
// drops a tail of zeros.
func (x *index) check() error {
	e, ok, err := x.last()
	if err != nil || !ok {
		return err
	}
	if e != (entry{}) {
		return nil
	}
	f, err := x.ref.Acquire()
	if err != nil {
		return err
	}
	defer x.ref.Release()
	return x.dropZeros(f)
}

// dropZeros cuts the entries after the last one that is not all zero. Only the
// first entry of an index can be all zero.
func (x *index) dropZeros(f vfs.File) error {
	n := x.state.Load().inFile
	lo, hi := 0, n // entries before lo are real, from hi on they are zero
	for lo < hi {
		mid := lo + (hi-lo)/2
		e, err := x.at(f, mid)
		if err != nil {
			return err
		}
		if e != (entry{}) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return x.resetLocked(f, lo)
}
