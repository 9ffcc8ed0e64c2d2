package batch

import (
	"encoding/binary"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// BuilderOptions says what stands in a new batch's header. The zero value is an
// uncompressed batch at offset 0 that no idempotent producer wrote.
type BuilderOptions struct {
	BaseOffset  int64
	LeaderEpoch int32
	Codec       Codec
	// Level is the codec's level, 0 its default.
	Level int
	// Producer is nil for a batch without a producer id.
	Producer      *ProducerStamp
	Transactional bool
	Control       bool
	// AppendTimeMs, when not 0, makes the timestamps LogAppendTime.
	AppendTimeMs int64
}

// ProducerStamp is an idempotent producer's mark on a batch.
type ProducerStamp struct {
	ID           int64
	Epoch        int16
	BaseSequence int32
}

// Builder puts records into a batch.
type Builder struct {
	o             BuilderOptions
	records       []byte
	n             int32
	baseTs, maxTs int64
	body          []byte
}

// NewBuilder starts a batch.
func NewBuilder(o BuilderOptions) *Builder { return &Builder{o: o} }

// Len is the number of records added.
func (b *Builder) Len() int { return int(b.n) }

// SizeBytes is the size of the batch before compression.
func (b *Builder) SizeBytes() int { return HeaderSize + len(b.records) }

// Add appends a record. A nil key or value is null. The arguments are copied.
func (b *Builder) Add(timestampMs int64, key, value []byte, headers ...Header) {
	if b.n == 0 {
		b.baseTs, b.maxTs = timestampMs, timestampMs
	}
	b.maxTs = max(b.maxTs, timestampMs)
	b.body = appendRecord(b.body[:0], timestampMs-b.baseTs, b.n, key, value, headers)
	b.records = binary.AppendVarint(b.records, int64(len(b.body)))
	b.records = append(b.records, b.body...)
	b.n++
}

// appendRecord appends a record without its length.
func appendRecord(dst []byte, timestampDelta int64, offsetDelta int32, key, value []byte, headers []Header) []byte {
	dst = append(dst, 0) // attributes
	dst = binary.AppendVarint(dst, timestampDelta)
	dst = binary.AppendVarint(dst, int64(offsetDelta))
	dst = appendField(dst, key)
	dst = appendField(dst, value)
	dst = binary.AppendVarint(dst, int64(len(headers)))
	for _, h := range headers {
		dst = binary.AppendVarint(dst, int64(len(h.Key)))
		dst = append(dst, h.Key...)
		dst = appendField(dst, h.Value)
	}
	return dst
}

func appendField(dst, field []byte) []byte {
	if field == nil {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(field)))
	return append(dst, field...)
}

// Build makes the batch; the builder may go on afterwards and build a longer
// one. A batch has at least one record.
func (b *Builder) Build() View {
	invariant.That(b.n > 0, "a batch without records was built")
	w := &appendWriter{b: make([]byte, HeaderSize, HeaderSize+len(b.records))}
	err := compressInto(w, b.o.Codec, b.o.Level, b.records)
	invariant.That(err == nil, "compress into memory: %v", err)
	v := View(w.b)
	b.writeHeader(v)
	return v
}

func (b *Builder) writeHeader(v View) {
	attrs := int16(b.o.Codec)
	maxTs := b.maxTs
	if b.o.AppendTimeMs != 0 {
		attrs |= attrLogAppendTime
		maxTs = b.o.AppendTimeMs
	}
	if b.o.Transactional {
		attrs |= attrTransactional
	}
	if b.o.Control {
		attrs |= attrControl
	}
	p := ProducerStamp{ID: NoProducerID, Epoch: NoProducerEpoch, BaseSequence: NoSequence}
	if b.o.Producer != nil {
		p = *b.o.Producer
	}
	be := binary.BigEndian
	v.SetBaseOffset(b.o.BaseOffset)
	be.PutUint32(v[posLength:], uint32(len(v)-LogOverhead))
	v.SetPartitionLeaderEpoch(b.o.LeaderEpoch)
	v[posMagic] = 2
	be.PutUint16(v[posAttributes:], uint16(attrs))
	be.PutUint32(v[posLastOffsetDelta:], uint32(b.n-1))
	be.PutUint64(v[posBaseTimestamp:], uint64(b.baseTs))
	be.PutUint64(v[posMaxTimestamp:], uint64(maxTs))
	be.PutUint64(v[posProducerID:], uint64(p.ID))
	be.PutUint16(v[posProducerEpoch:], uint16(p.Epoch))
	be.PutUint32(v[posBaseSequence:], uint32(p.BaseSequence))
	be.PutUint32(v[posNumRecords:], uint32(b.n))
	v.updateCRC()
}
