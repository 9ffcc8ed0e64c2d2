package segment

import (
	"fmt"
	"io"
	"time"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// DumpLog prints a line per batch of a .log file, and stops with an error at the
// first byte that can't be right.
func DumpLog(w io.Writer, name string, r io.ReaderAt, baseOffset, sizeBytes int64) error {
	sc := NewScanner(r, name, 0, sizeBytes, baseOffset, true)
	for sc.Next() {
		if err := DumpBatch(w, sc.Header()); err != nil {
			return err
		}
	}
	return sc.Err()
}

func DumpBatch(w io.Writer, h Header) error {
	_, err := fmt.Fprintf(w, "baseOffset: %d lastOffset: %d count: %d position: %d size: %d leaderEpoch: %d %s: %s codec: %s",
		h.BaseOffset(), h.LastOffset(), h.NumRecords(), h.Position, h.SizeBytes(), h.PartitionLeaderEpoch(),
		timestampName(h.View), formatMs(h.MaxTimestamp()), h.Codec())
	if err == nil && h.HasProducerID() {
		_, err = fmt.Fprintf(w, " producerId: %d producerEpoch: %d baseSequence: %d lastSequence: %d transactional: %t control: %t",
			h.ProducerID(), h.ProducerEpoch(), h.BaseSequence(), h.LastSequence(), h.IsTransactional(), h.IsControl())
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

func timestampName(v batch.View) string {
	if v.TimestampType() == batch.LogAppendTime {
		return "logAppendTime"
	}
	return "createTime"
}

func formatMs(ms int64) string {
	if ms < 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%s)", ms, time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"))
}

// DumpOffsetIndex prints a line per entry of a .index file.
func DumpOffsetIndex(w io.Writer, r io.ReaderAt, baseOffset, sizeBytes int64) error {
	return dumpIndex(r, OffsetEntrySize, sizeBytes, func(e entry) error {
		_, err := fmt.Fprintf(w, "offset: %d position: %d\n", baseOffset+e.key, e.value)
		return err
	})
}

// DumpTimeIndex prints a line per entry of a .timeindex file.
func DumpTimeIndex(w io.Writer, r io.ReaderAt, baseOffset, sizeBytes int64) error {
	return dumpIndex(r, TimeEntrySize, sizeBytes, func(e entry) error {
		_, err := fmt.Fprintf(w, "timestamp: %s offset: %d\n", formatMs(e.key), baseOffset+int64(e.value))
		return err
	})
}

// DumpTxnIndex prints a line per entry of a .txnindex file.
func DumpTxnIndex(w io.Writer, r io.ReaderAt, sizeBytes int64) error {
	var b [TxnEntrySize]byte
	for at := int64(0); at+TxnEntrySize <= sizeBytes; at += TxnEntrySize {
		if _, err := r.ReadAt(b[:], at); err != nil && err != io.EOF {
			return err
		}
		t, ok := decodeAbortedTxn(b[:])
		if !ok {
			return fmt.Errorf("%w: entry %d is no aborted transaction", ErrCorruptIndex, at/TxnEntrySize)
		}
		_, err := fmt.Fprintf(w, "producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n", t.ProducerID, t.FirstOffset, t.LastOffset, t.LastStableOffset)
		if err != nil {
			return err
		}
	}
	if sizeBytes%TxnEntrySize != 0 {
		return fmt.Errorf("%w: %d bytes, not a multiple of %d", ErrCorruptIndex, sizeBytes, TxnEntrySize)
	}
	return nil
}

// dumpIndex walks over the entries up to the zeros that an unfinished file ends
// with, and checks that they rise.
func dumpIndex(r io.ReaderAt, width int, sizeBytes int64, fn func(entry) error) error {
	buf := make([]byte, searchBlock*width)
	last, first := int64(-1), true
	for at := int64(0); at < sizeBytes; {
		b := buf[:min(int64(len(buf)), sizeBytes-at)]
		if _, err := r.ReadAt(b, at); err != nil && err != io.EOF {
			return err
		}
		at += int64(len(b))
		for ; len(b) >= width; b = b[width:] {
			e := decodeEntry(b, width)
			if e == (entry{}) && !first {
				return nil
			}
			if e.key <= last {
				return fmt.Errorf("%w: %d follows %d", ErrCorruptIndex, e.key, last)
			}
			if err := fn(e); err != nil {
				return err
			}
			last, first = e.key, false
		}
	}
	if sizeBytes%int64(width) != 0 {
		return fmt.Errorf("%w: %d bytes, not a multiple of %d", ErrCorruptIndex, sizeBytes, width)
	}
	return nil
}
