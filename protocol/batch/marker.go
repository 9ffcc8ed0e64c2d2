package batch

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// The types of control records that end a transaction.
const (
	controlAbort  = 0
	controlCommit = 1
)

// Marker is a control record that ends a transaction: its key is a version and
// the type, its value a version and the epoch of the coordinator that decided.
type Marker struct {
	Commit           bool
	CoordinatorEpoch int32
}

// MarkerOptions says what stands in a marker's batch.
type MarkerOptions struct {
	Marker
	ProducerID    int64
	ProducerEpoch int16
	TimestampMs   int64
	// LogAppendTime marks the timestamp as the broker's.
	LogAppendTime bool
}

// NewMarker is the control batch with one marker.
func NewMarker(o MarkerOptions) View {
	var key [4]byte
	var value [6]byte
	if o.Commit {
		binary.BigEndian.PutUint16(key[2:], controlCommit)
	}
	binary.BigEndian.PutUint32(value[2:], uint32(o.CoordinatorEpoch))
	bo := BuilderOptions{
		Producer:      &ProducerStamp{ID: o.ProducerID, Epoch: o.ProducerEpoch, BaseSequence: NoSequence},
		Transactional: true, Control: true,
	}
	if o.LogAppendTime {
		bo.AppendTimeMs = o.TimestampMs
	}
	b := NewBuilder(bo)
	b.Add(o.TimestampMs, key[:], value[:])
	return b.Build()
}

// ParseMarker reads the marker of a control batch. ok is false when the batch has
// no record left, which compaction leaves of a transaction that is wholly gone, or
// one of another type (Kafka's own metadata log has such).
func ParseMarker(v View) (m Marker, ok bool, err error) {
	err = Records(v, 0, func(r Record) error {
		if len(r.Key) < 4 {
			return protocol.Errorf(kerr.CorruptMessage, "the control record at offset %d has a key of %d bytes", r.Offset, len(r.Key))
		}
		kind := binary.BigEndian.Uint16(r.Key[2:])
		if kind != controlAbort && kind != controlCommit {
			return ErrStop
		}
		if len(r.Value) < 6 {
			return protocol.Errorf(kerr.CorruptMessage, "the marker at offset %d has a value of %d bytes", r.Offset, len(r.Value))
		}
		m, ok = Marker{Commit: kind == controlCommit, CoordinatorEpoch: int32(binary.BigEndian.Uint32(r.Value[2:]))}, true
		return ErrStop
	})
	return m, ok, err
}
