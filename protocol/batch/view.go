package batch

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// The fields of a batch of message format v2, as byte positions.
const (
	posBaseOffset           = 0
	posLength               = 8
	posPartitionLeaderEpoch = 12
	posMagic                = 16
	posCRC                  = 17
	posAttributes           = 21
	posLastOffsetDelta      = 23
	posBaseTimestamp        = 27
	posMaxTimestamp         = 35
	posProducerID           = 43
	posProducerEpoch        = 51
	posBaseSequence         = 53
	posNumRecords           = 57

	// HeaderSize is the size of the fields before the first record.
	HeaderSize = 61
	// LogOverhead is the size of base offset and length, which the length
	// field does not count.
	LogOverhead = 12
)

const (
	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

const (
	// NoTimestamp is the timestamp of a record that has none.
	NoTimestamp = -1
	// NoProducerID, NoProducerEpoch and NoSequence mark a batch that no
	// idempotent producer wrote.
	NoProducerID    = -1
	NoProducerEpoch = -1
	NoSequence      = -1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// TimestampType says what a batch's timestamps mean.
type TimestampType int8

const (
	// CreateTime is the time that the producer gave each record.
	CreateTime TimestampType = 0
	// LogAppendTime is the time at which the broker wrote the batch.
	LogAppendTime TimestampType = 1
)

// View is one whole record batch. Its accessors read the header where it lies;
// they need the HeaderSize bytes that Next has checked.
type View []byte

// BaseOffset is the offset of the first record that was ever in the batch.
func (v View) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(v[posBaseOffset:])) }

// SizeBytes is the size of the whole batch, base offset and length included.
func (v View) SizeBytes() int {
	return LogOverhead + int(int32(binary.BigEndian.Uint32(v[posLength:])))
}

// PartitionLeaderEpoch is the epoch of the leader that appended the batch.
func (v View) PartitionLeaderEpoch() int32 {
	return int32(binary.BigEndian.Uint32(v[posPartitionLeaderEpoch:]))
}

// Magic is the message format: 2.
func (v View) Magic() int8 { return int8(v[posMagic]) }

// CRC is the stored checksum; it covers everything from the attributes on.
func (v View) CRC() uint32 { return binary.BigEndian.Uint32(v[posCRC:]) }

// Attributes are the flags that Codec, TimestampType and the like read.
func (v View) Attributes() int16 { return int16(binary.BigEndian.Uint16(v[posAttributes:])) }

// Codec is how the records are compressed; it may be a number that is no codec.
func (v View) Codec() Codec { return Codec(v.Attributes() & attrCodec) }

// IsTransactional says that the batch belongs to a transaction.
func (v View) IsTransactional() bool { return v.Attributes()&attrTransactional != 0 }

// IsControl says that the records are markers, not data.
func (v View) IsControl() bool { return v.Attributes()&attrControl != 0 }

// HasDeleteHorizon says that BaseTimestamp is the time after which compaction
// may drop the batch's tombstones or marker (KIP-534).
func (v View) HasDeleteHorizon() bool { return v.Attributes()&attrDeleteHorizon != 0 }

// TimestampType says what the batch's timestamps mean.
func (v View) TimestampType() TimestampType {
	if v.Attributes()&attrLogAppendTime != 0 {
		return LogAppendTime
	}
	return CreateTime
}

// LastOffsetDelta is LastOffset relative to BaseOffset.
func (v View) LastOffsetDelta() int32 {
	return int32(binary.BigEndian.Uint32(v[posLastOffsetDelta:]))
}

// LastOffset is the offset of the last record that was ever in the batch;
// compaction keeps it even when that record is gone.
func (v View) LastOffset() int64 { return v.BaseOffset() + int64(v.LastOffsetDelta()) }

// NextOffset is the first offset after the batch.
func (v View) NextOffset() int64 { return v.LastOffset() + 1 }

// BaseTimestamp is what the records' timestamps are relative to.
func (v View) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(v[posBaseTimestamp:])) }

// MaxTimestamp is the largest timestamp, or the append time.
func (v View) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(v[posMaxTimestamp:])) }

// ProducerID is NoProducerID for a batch of no idempotent producer.
func (v View) ProducerID() int64 { return int64(binary.BigEndian.Uint64(v[posProducerID:])) }

// ProducerEpoch is NoProducerEpoch for a batch of no idempotent producer.
func (v View) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(v[posProducerEpoch:])) }

// BaseSequence is the first record's sequence number, NoSequence for none.
func (v View) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(v[posBaseSequence:])) }

// HasProducerID says that an idempotent producer or a transaction wrote it.
func (v View) HasProducerID() bool { return v.ProducerID() > NoProducerID }

// LastSequence is the sequence number of the last record; after MaxInt32 the
// numbers start again at 0.
func (v View) LastSequence() int32 {
	base := v.BaseSequence()
	if base == NoSequence {
		return NoSequence
	}
	return AddSequence(base, v.LastOffsetDelta())
}

// AddSequence is the sequence number n after s, which wraps from MaxInt32 to 0.
func AddSequence(s, n int32) int32 {
	if s > math.MaxInt32-n {
		return n - (math.MaxInt32 - s) - 1
	}
	return s + n
}

// NumRecords is the number of records that are in the batch now.
func (v View) NumRecords() int32 { return int32(binary.BigEndian.Uint32(v[posNumRecords:])) }

// SetBaseOffset writes the base offset, which the CRC does not cover.
func (v View) SetBaseOffset(offset int64) {
	binary.BigEndian.PutUint64(v[posBaseOffset:], uint64(offset))
}

// SetPartitionLeaderEpoch writes the epoch, which the CRC does not cover.
func (v View) SetPartitionLeaderEpoch(epoch int32) {
	binary.BigEndian.PutUint32(v[posPartitionLeaderEpoch:], uint32(epoch))
}

// SetMaxTimestamp writes the timestamp type and the largest timestamp and, when
// that changes anything, the CRC.
func (v View) SetMaxTimestamp(t TimestampType, maxTimestampMs int64) {
	if v.TimestampType() == t && v.MaxTimestamp() == maxTimestampMs {
		return
	}
	attrs := v.Attributes() &^ attrLogAppendTime
	if t == LogAppendTime {
		attrs |= attrLogAppendTime
	}
	binary.BigEndian.PutUint16(v[posAttributes:], uint16(attrs))
	binary.BigEndian.PutUint64(v[posMaxTimestamp:], uint64(maxTimestampMs))
	v.updateCRC()
}

// ComputeCRC is the checksum that the bytes should have.
func (v View) ComputeCRC() uint32 { return crc32.Checksum(v[posAttributes:], castagnoli) }

func (v View) updateCRC() { binary.BigEndian.PutUint32(v[posCRC:], v.ComputeCRC()) }

// records are the bytes behind the header, compressed or not.
func (v View) records() []byte { return v[HeaderSize:] }
