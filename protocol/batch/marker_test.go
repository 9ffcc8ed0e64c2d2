package batch

import (
	"encoding/hex"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

func TestMarker(t *testing.T) {
	for _, tc := range []struct {
		m          Marker
		key, value string
	}{
		{Marker{Commit: true, CoordinatorEpoch: 7}, "00000001", "000000000007"},
		{Marker{Commit: false, CoordinatorEpoch: 1 << 20}, "00000000", "000000100000"},
	} {
		v := NewMarker(MarkerOptions{Marker: tc.m, ProducerID: 9, ProducerEpoch: 2, TimestampMs: 77})
		if !v.IsControl() || !v.IsTransactional() || v.CRC() != v.ComputeCRC() || v.MaxTimestamp() != 77 {
			t.Errorf("%+v: batch %x", tc.m, []byte(v))
		}
		if v.ProducerID() != 9 || v.ProducerEpoch() != 2 || v.BaseSequence() != NoSequence {
			t.Errorf("%+v: producer %d/%d, sequence %d", tc.m, v.ProducerID(), v.ProducerEpoch(), v.BaseSequence())
		}
		err := Records(v, 0, func(r Record) error {
			if hex.EncodeToString(r.Key) != tc.key || hex.EncodeToString(r.Value) != tc.value {
				t.Errorf("%+v: key %x, value %x", tc.m, r.Key, r.Value)
			}
			return nil
		})
		if got, ok, err2 := ParseMarker(v); err != nil || err2 != nil || !ok || got != tc.m {
			t.Errorf("%+v: read %+v %v, %v %v", tc.m, got, ok, err, err2)
		}
	}
}

func TestParseMarkerOfOthers(t *testing.T) {
	control := func(key, value []byte) View {
		b := NewBuilder(BuilderOptions{Control: true})
		b.Add(0, key, value)
		return b.Build()
	}
	// A leader change, as a raft log has them.
	if _, ok, err := ParseMarker(control([]byte{0, 0, 0, 2}, []byte{0})); ok || err != nil {
		t.Errorf("another kind: ok %v, %v", ok, err)
	}
	for _, v := range []View{control([]byte{0, 0}, make([]byte, 6)), control([]byte{0, 0, 0, 1}, make([]byte, 5)), control(nil, nil)} {
		if _, ok, err := ParseMarker(v); ok || protocol.Code(err) != kerr.CorruptMessage.Code {
			t.Errorf("%x: ok %v, %v", []byte(v), ok, err)
		}
	}
}
