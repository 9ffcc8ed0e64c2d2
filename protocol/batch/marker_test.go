package batch

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// TestMarkerBytes fixes the records as Kafka writes them: a client that finds a
// marker without a value waits for ever.
func TestMarkerBytes(t *testing.T) {
	for _, test := range []struct {
		commit     bool
		key, value string
	}{{false, "00000000", "000000000009"}, {true, "00000001", "000000000009"}} {
		v := NewMarker(MarkerOptions{Marker: Marker{Commit: test.commit, CoordinatorEpoch: 9}, ProducerID: 4, ProducerEpoch: 2, TimestampMs: 77})
		if _, err := Validate(v, Options{Control: true}); err != nil {
			t.Fatal(err)
		}
		err := Records(v, 0, func(r Record) error {
			if hex.EncodeToString(r.Key) != test.key || hex.EncodeToString(r.Value) != test.value || r.TimestampMs != 77 {
				t.Errorf("commit %t: key %x, value %x, time %d", test.commit, r.Key, r.Value, r.TimestampMs)
			}
			return nil
		})
		m, ok, parseErr := ParseMarker(v)
		if err != nil || parseErr != nil || !ok || m != (Marker{Commit: test.commit, CoordinatorEpoch: 9}) {
			t.Errorf("%+v, %t, %v, %v", m, ok, err, parseErr)
		}
	}
}

func TestParseMarkerOfOthers(t *testing.T) {
	control := func(key, value []byte) View {
		b := NewBuilder(BuilderOptions{Control: true})
		b.Add(1, key, value)
		return b.Build()
	}
	if _, ok, err := ParseMarker(control([]byte{0, 0, 0, 2}, bytes.Repeat([]byte{0}, 20))); ok || err != nil {
		t.Errorf("a control record of another type: %t, %v", ok, err)
	}
	for _, v := range []View{control([]byte{0, 0}, nil), control([]byte{0, 0, 0, 1}, []byte{0, 0, 1})} {
		if _, ok, err := ParseMarker(v); ok || err == nil {
			t.Errorf("a cut one: %t, %v", ok, err)
		}
	}
}
