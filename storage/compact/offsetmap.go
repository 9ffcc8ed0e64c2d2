package compact

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// EntryBytes is what one key takes of an OffsetMap's memory, whatever its length:
// 16 bytes of its hash and its offset.
const EntryBytes = 24

// entry is one key's newest offset. One more is stored, so that the zero value is
// a free slot.
type entry struct {
	high, low uint64
	next      int64
}

// OffsetMap knows the newest offset of keys, in memory of a fixed size. Keys are
// told apart by 128 bits of their SHA-256: two keys with the same are not to be
// found, not even on purpose, as they are for the MD5 that Kafka takes.
type OffsetMap struct {
	slots []entry
	max   int
	used  int
	// latest is the last offset that is mapped; the map speaks for all records up
	// to it.
	latest int64
}

// Slots is how many slots a map needs to hold keys with a load factor, and that
// fit into sizeBytes.
func Slots(keys int64, sizeBytes int64, loadFactor float64) int {
	most := max(sizeBytes/EntryBytes, 2)
	if want := float64(keys)/loadFactor + 2; want < float64(most) {
		return int(want)
	}
	return int(most)
}

// NewOffsetMap makes a map of that many slots, which is full once a loadFactor of
// them is taken.
func NewOffsetMap(slots int, loadFactor float64) *OffsetMap {
	m := &OffsetMap{}
	m.Reset(slots, loadFactor)
	return m
}

// Reset empties the map and gives it another size. It uses the memory that it has
// where that is enough.
func (m *OffsetMap) Reset(slots int, loadFactor float64) {
	if cap(m.slots) < slots {
		m.slots = nil // before the new ones are there
		m.slots = make([]entry, slots)
	} else {
		m.slots = m.slots[:slots]
		clear(m.slots)
	}
	// A free slot ends every search.
	m.max = min(max(int(float64(slots)*loadFactor), 1), slots-1)
	m.used, m.latest = 0, -1
}

// Len is the number of keys.
func (m *OffsetMap) Len() int { return m.used }

// Utilization is the part of the slots that is taken.
func (m *OffsetMap) Utilization() float64 { return float64(m.used) / float64(len(m.slots)) }

// Latest is the last offset that the map speaks for, -1 for none.
func (m *OffsetMap) Latest() int64 { return m.latest }

// advance says that the map speaks for everything up to an offset.
func (m *OffsetMap) advance(offset int64) { m.latest = max(m.latest, offset) }

// find is the slot of a key, or the free one where it belongs: probed at a
// distance of the key's own, which keeps searches short in a map that is nearly
// full.
func (m *OffsetMap) find(k key) *entry {
	n := uint64(len(m.slots))
	at := k.high % n
	step := k.low % n
	if step == 0 {
		step = 1
	}
	for range 16 {
		e := &m.slots[at]
		if e.next == 0 || e.high == k.high && e.low == k.low {
			return e
		}
		if at += step; at >= n {
			at -= n
		}
	}
	// The distance may share a divisor with the number of slots and never come to
	// a free one; one by one always does.
	for {
		e := &m.slots[at]
		if e.next == 0 || e.high == k.high && e.low == k.low {
			return e
		}
		if at++; at == n {
			at = 0
		}
	}
}

// put notes a key's newest offset; false when the key is new and the map full.
func (m *OffsetMap) put(k key, offset int64) bool {
	e := m.find(k)
	if e.next == 0 {
		if m.used >= m.max {
			return false
		}
		m.used++
	}
	*e = entry{high: k.high, low: k.low, next: offset + 1}
	m.advance(offset)
	return true
}

// get is a key's newest offset, -1 when the map does not have it.
func (m *OffsetMap) get(k key) int64 { return m.find(k).next - 1 }

// key is the hash of a record's key.
type key struct{ high, low uint64 }

// hasher hashes keys that come in pieces.
type hasher struct {
	hash.Hash
	sum [sha256.Size]byte
}

func newHasher() *hasher { return &hasher{Hash: sha256.New()} }

// key is the hash of what was written since the last Reset.
func (h *hasher) key() key {
	h.Sum(h.sum[:0])
	return key{binary.BigEndian.Uint64(h.sum[:]), binary.BigEndian.Uint64(h.sum[8:])}
}
