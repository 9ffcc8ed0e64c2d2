package producer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The .snapshot file: version, CRC-32C of all behind it, number of entries and
// the entries, all big-endian.
const (
	snapshotVersion  = 1
	crcPosition      = 2
	entriesPosition  = 6
	snapshotHeader   = 10
	snapshotEntryLen = 46
)

// ErrCorruptSnapshot says that a .snapshot file can't be right; the log is
// replayed instead.
var ErrCorruptSnapshot = errors.New("corrupt producer snapshot")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode is the .snapshot file of the table.
func (t *Table) Encode() []byte {
	entries := t.Entries()
	b := make([]byte, 0, snapshotHeader+snapshotEntryLen*len(entries))
	b = binary.BigEndian.AppendUint16(b, snapshotVersion)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(entries)))
	for i := range entries {
		b = entries[i].encode(b)
	}
	binary.BigEndian.PutUint32(b[crcPosition:], crc32.Checksum(b[entriesPosition:], castagnoli))
	return b
}

func (e *Entry) encode(b []byte) []byte {
	last, _ := e.Last()
	b = binary.BigEndian.AppendUint64(b, uint64(e.ProducerID))
	b = binary.BigEndian.AppendUint16(b, uint16(e.Epoch))
	b = binary.BigEndian.AppendUint32(b, uint32(last.LastSequence))
	b = binary.BigEndian.AppendUint64(b, uint64(last.LastOffset))
	b = binary.BigEndian.AppendUint32(b, uint32(last.OffsetDelta))
	b = binary.BigEndian.AppendUint64(b, uint64(e.LastTimestampMs))
	b = binary.BigEndian.AppendUint32(b, uint32(e.CoordinatorEpoch))
	return binary.BigEndian.AppendUint64(b, uint64(e.CurrentTxnFirstOffset))
}

// Decode reads a .snapshot file.
func Decode(b []byte) (*Table, error) {
	if len(b) < snapshotHeader {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorruptSnapshot, len(b))
	}
	if v := binary.BigEndian.Uint16(b); v != snapshotVersion {
		return nil, fmt.Errorf("%w: version %d", ErrCorruptSnapshot, v)
	}
	want, sum := binary.BigEndian.Uint32(b[crcPosition:]), crc32.Checksum(b[entriesPosition:], castagnoli)
	if want != sum {
		return nil, fmt.Errorf("%w: checksum %08x, computed %08x", ErrCorruptSnapshot, want, sum)
	}
	n, rest := int64(int32(binary.BigEndian.Uint32(b[entriesPosition:]))), b[snapshotHeader:]
	if n < 0 || n*snapshotEntryLen > int64(len(rest)) {
		return nil, fmt.Errorf("%w: %d entries in %d bytes", ErrCorruptSnapshot, n, len(rest))
	}
	t := &Table{}
	for range n {
		e, err := decodeEntry(rest[:snapshotEntryLen])
		if err != nil {
			return nil, err
		}
		t.Set(e)
		rest = rest[snapshotEntryLen:]
	}
	return t, nil
}

func decodeEntry(b []byte) (Entry, error) {
	be := binary.BigEndian
	e := newEntry(int64(be.Uint64(b)))
	e.Epoch = int16(be.Uint16(b[8:]))
	last := BatchMeta{
		LastSequence: int32(be.Uint32(b[10:])), LastOffset: int64(be.Uint64(b[14:])),
		OffsetDelta: int32(be.Uint32(b[22:])), TimestampMs: int64(be.Uint64(b[26:])),
	}
	e.LastTimestampMs = last.TimestampMs
	e.CoordinatorEpoch = int32(be.Uint32(b[34:]))
	if first := int64(be.Uint64(b[38:])); first >= 0 {
		e.CurrentTxnFirstOffset = first
	}
	if last.OffsetDelta < 0 {
		return Entry{}, fmt.Errorf("%w: producer %d has the offset delta %d", ErrCorruptSnapshot, e.ProducerID, last.OffsetDelta)
	}
	if last.LastOffset >= 0 {
		e.add(last)
	}
	return e, nil
}
