package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

const (
	// TxnEntrySize is the size of an entry of a .txnindex file: a version and the
	// four numbers of AbortedTxn.
	TxnEntrySize    = 34
	txnEntryVersion = 0
	// txnTailMax bounds the entries that wait in memory for the file.
	txnTailMax = 1024
	// txnBlock is how many entries a search reads at once.
	txnBlock = 120
)

// AbortedTxn is an aborted transaction, as the .txnindex of the segment with its
// marker has it.
type AbortedTxn struct {
	ProducerID int64
	// FirstOffset is the transaction's first record, LastOffset its marker.
	FirstOffset, LastOffset int64
	// LastStableOffset is what was stable once the marker was written: every
	// transaction that ends later begins there or behind it.
	LastStableOffset int64
}

// EncodeAbortedTxn appends an entry of a .txnindex file.
func EncodeAbortedTxn(dst []byte, t AbortedTxn) []byte {
	dst = binary.BigEndian.AppendUint16(dst, txnEntryVersion)
	for _, n := range []int64{t.ProducerID, t.FirstOffset, t.LastOffset, t.LastStableOffset} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst
}

// decodeAbortedTxn reads one entry; ok is false when the bytes are none.
func decodeAbortedTxn(b []byte) (t AbortedTxn, ok bool) {
	be := binary.BigEndian
	t = AbortedTxn{
		ProducerID: int64(be.Uint64(b[2:])), FirstOffset: int64(be.Uint64(b[10:])),
		LastOffset: int64(be.Uint64(b[18:])), LastStableOffset: int64(be.Uint64(b[26:])),
	}
	ok = be.Uint16(b) == txnEntryVersion && t.ProducerID >= 0 && t.FirstOffset >= 0 &&
		t.FirstOffset < t.LastOffset && t.LastStableOffset >= 0 && t.LastStableOffset-1 <= t.LastOffset
	return t, ok
}

// txnIndex lists the aborted transactions whose markers are in a segment, by the
// marker's offset. The newest are in memory, all others in a file that exists only
// when there are any. Only the segment's writer changes it; readers take no lock.
type txnIndex struct {
	ref    *FileRef
	base   int64
	exists atomic.Bool
	// damaged says that the file can't be right; the log rebuilds it.
	damaged atomic.Bool
	state   atomic.Pointer[txnState]
}

// txnState is what readers see; it is replaced, never changed.
type txnState struct {
	inFile int
	tail   []AbortedTxn
}

func newTxnIndex(files *Files, path string, base int64, sizeBytes int64) *txnIndex {
	x := &txnIndex{ref: files.Ref(path, os.O_RDWR|os.O_CREATE), base: base}
	x.exists.Store(sizeBytes >= 0)
	x.damaged.Store(sizeBytes > 0 && sizeBytes%TxnEntrySize != 0)
	x.state.Store(&txnState{inFile: int(max(0, sizeBytes) / TxnEntrySize)})
	return x
}

func (x *txnIndex) empty() bool {
	s := x.state.Load()
	return s.inFile == 0 && len(s.tail) == 0
}

// sizeBytes is the length of the file, -1 when there is none.
func (x *txnIndex) sizeBytes() int64 {
	if !x.exists.Load() {
		return -1
	}
	return int64(x.state.Load().inFile) * TxnEntrySize
}

// last is the newest entry.
func (x *txnIndex) last() (t AbortedTxn, ok bool, err error) {
	s := x.state.Load()
	if n := len(s.tail); n > 0 {
		return s.tail[n-1], true, nil
	}
	if s.inFile == 0 {
		return t, false, nil
	}
	err = x.reading(func(f vfs.File) error {
		t, err = x.at(f, s.inFile-1)
		return err
	})
	return t, err == nil, err
}

// append adds an entry, unless the index reaches its marker already.
func (x *txnIndex) append(t AbortedTxn) error {
	newest, ok, err := x.last()
	if errors.Is(err, ErrCorruptIndex) {
		ok, err = false, nil // it will be filled anew
	}
	if err != nil || ok && newest.LastOffset >= t.LastOffset {
		return err
	}
	s := x.state.Load()
	// The array behind the entries that readers see may be shared.
	s = &txnState{inFile: s.inFile, tail: append(s.tail, t)}
	x.state.Store(s)
	if len(s.tail) >= txnTailMax {
		return x.writeOut()
	}
	return nil
}

// writeOut brings the file up to date.
func (x *txnIndex) writeOut() error {
	s := x.state.Load()
	if len(s.tail) == 0 {
		return nil
	}
	buf := make([]byte, 0, len(s.tail)*TxnEntrySize)
	for _, t := range s.tail {
		buf = EncodeAbortedTxn(buf, t)
	}
	f, err := x.ref.Acquire()
	if err != nil {
		return err
	}
	defer x.ref.Release()
	if _, err := f.WriteAt(buf, int64(s.inFile)*TxnEntrySize); err != nil {
		return fmt.Errorf("write %s: %w", x.ref.path, err)
	}
	x.exists.Store(true)
	x.state.Store(&txnState{inFile: s.inFile + len(s.tail)})
	return nil
}

// find appends the transactions to dst that end at or after from and begin before
// upTo. done says that later ones can't.
func (x *txnIndex) find(dst []AbortedTxn, from, upTo int64) (found []AbortedTxn, done bool, err error) {
	s := x.state.Load()
	take := func(t AbortedTxn) bool {
		if t.LastOffset >= from && t.FirstOffset < upTo {
			dst = append(dst, t)
		}
		done = t.LastStableOffset >= upTo
		return !done
	}
	if s.inFile > 0 {
		err := x.reading(func(f vfs.File) error {
			i, err := x.search(f, s.inFile, from)
			if err != nil {
				return err
			}
			return x.each(f, i, s.inFile, take)
		})
		if err != nil || done {
			return dst, done, err
		}
	}
	for _, t := range s.tail {
		if !take(t) {
			break
		}
	}
	return dst, done, nil
}

// search is the number of the first entry of the file that ends at or after
// offset.
func (x *txnIndex) search(f vfs.File, n int, offset int64) (int, error) {
	lo, hi := 0, n
	for lo < hi {
		mid := lo + (hi-lo)/2
		t, err := x.at(f, mid)
		if err != nil {
			return 0, err
		}
		if t.LastOffset < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

func (x *txnIndex) at(f vfs.File, i int) (t AbortedTxn, err error) {
	err = x.each(f, i, i+1, func(found AbortedTxn) bool {
		t = found
		return false
	})
	return t, err
}

// each reads entries of the file until fn returns false.
func (x *txnIndex) each(f vfs.File, from, to int, fn func(AbortedTxn) bool) error {
	var block [txnBlock * TxnEntrySize]byte
	for from < to {
		n := min(to-from, txnBlock)
		b := block[:n*TxnEntrySize]
		got, err := f.ReadAt(b, int64(from)*TxnEntrySize)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read: %w", err)
		}
		if got < len(b) {
			return fmt.Errorf("%w: the file ends before entry %d", ErrCorruptIndex, from+got/TxnEntrySize)
		}
		for ; len(b) > 0; b = b[TxnEntrySize:] {
			t, ok := decodeAbortedTxn(b)
			if !ok || t.LastOffset < x.base {
				return fmt.Errorf("%w: entry %d is no aborted transaction of this segment", ErrCorruptIndex, from)
			}
			if !fn(t) {
				return nil
			}
			from++
		}
	}
	return nil
}

// truncate keeps the entries that end before offset, and of these only the first
// ones that are sound.
func (x *txnIndex) truncate(offset int64) error {
	if !x.exists.Load() && x.empty() {
		return nil
	}
	if err := x.writeOut(); err != nil {
		return err
	}
	return x.reading(func(f vfs.File) error {
		keep, last := 0, int64(-1)
		err := x.each(f, 0, x.state.Load().inFile, func(t AbortedTxn) bool {
			if t.LastOffset >= offset || t.LastOffset <= last {
				return false
			}
			keep, last = keep+1, t.LastOffset
			return true
		})
		if err != nil && !errors.Is(err, ErrCorruptIndex) {
			return err
		}
		if err := f.Truncate(int64(keep) * TxnEntrySize); err != nil {
			return fmt.Errorf("cut: %w", err)
		}
		x.state.Store(&txnState{inFile: keep})
		x.damaged.Store(false)
		return nil
	})
}

func (x *txnIndex) sync() error {
	if !x.exists.Load() {
		return nil
	}
	err := x.reading(vfs.File.SyncData)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted since
	}
	return err
}

func (x *txnIndex) reading(fn func(vfs.File) error) error {
	f, err := x.ref.Acquire()
	if err != nil {
		return err
	}
	defer x.ref.Release()
	if err := fn(f); err != nil {
		if errors.Is(err, ErrCorruptIndex) {
			x.damaged.Store(true)
		}
		return fmt.Errorf("%s: %w", x.ref.path, err)
	}
	return nil
}

// AddAborted notes an aborted transaction whose marker was appended to the
// segment. One that is noted already is left out. Writer only.
func (s *Segment) AddAborted(t AbortedTxn) error { return s.txns.append(t) }

// WriteAborted brings the .txnindex up to date. Writer only.
func (s *Segment) WriteAborted() error { return s.txns.writeOut() }

// Aborted appends the transactions to dst whose markers are in the segment, that
// end at or after from and begin before upTo. done says that those in later
// segments all begin later. Anyone may call it.
func (s *Segment) Aborted(dst []AbortedTxn, from, upTo int64) (found []AbortedTxn, done bool, err error) {
	return s.txns.find(dst, from, upTo)
}

// HasAborted says that Aborted may find any.
func (s *Segment) HasAborted() bool { return !s.txns.empty() }

// CutAborted forgets the transactions whose markers are at or behind offset.
func (s *Segment) CutAborted(offset int64) error { return s.txns.truncate(offset) }

// AbortedDamaged says that the .txnindex can't be right: it is to be cut to
// nothing and filled again.
func (s *Segment) AbortedDamaged() bool { return s.txns.damaged.Load() }
