package metadata

import (
	"errors"
	"reflect"
	"testing"
)

func id(n byte) TopicID { return TopicID{15: n} }

// everyRecord has one of each kind, with every field set.
func everyRecord() []Record {
	return []Record{
		&RegisterBrokerRecord{BrokerID: 1, IncarnationID: [16]byte{1, 2}, Rack: "r", Fenced: true, Endpoints: []Endpoint{
			{Listener: "PLAINTEXT", Host: "h", Port: 9092}, {Listener: "TLS", Host: "::1", Port: 65535, SecurityProtocol: 3},
		}},
		&UnregisterBrokerRecord{BrokerID: 7},
		&BrokerChangeRecord{BrokerID: 1, Fenced: new(false), InShutdown: new(true)},
		&BrokerChangeRecord{BrokerID: 1},
		&TopicRecord{Name: "t", ID: id(1), Internal: true},
		&PartitionRecord{TopicID: id(1), Partition: Partition{
			Index: 3, Replicas: []int32{1, 2, 3}, ISR: []int32{1}, ELR: []int32{2}, LastKnownELR: []int32{},
			AddingReplicas: []int32{4}, RemovingReplicas: []int32{5}, Leader: -1, LeaderEpoch: 8, PartitionEpoch: 9,
		}},
		&PartitionChangeRecord{TopicID: id(1), Index: 3, Leader: new(int32(-1)), ISR: []int32{}, ELR: []int32{1}},
		&PartitionChangeRecord{
			TopicID: id(1), Replicas: []int32{1}, LastKnownELR: []int32{1}, AddingReplicas: []int32{2}, RemovingReplicas: []int32{3},
		},
		&RemoveTopicRecord{ID: id(2)},
		&ConfigRecord{Resource: ConfigResource{Type: 2, Name: "t"}, Name: "retention.ms", Value: new("5")},
		&ConfigRecord{Resource: ConfigResource{Type: -1}, Name: "x"},
		&ProducerIDsRecord{BrokerID: 1, BrokerEpoch: 5, Next: 1 << 60},
		&FeatureLevelRecord{Name: "metadata.version", Level: -2},
		&NoOpRecord{},
		&ClientQuotaRecord{Entity: QuotaEntity{User: QuotaName{Given: true, Name: "u"}, ClientID: QuotaName{Given: true, Default: true}}, Key: "k", Value: new(0.5)},
		&ClientQuotaRecord{Entity: QuotaEntity{IP: QuotaName{Given: true, Name: "::1"}}, Key: "k"},
		&ScramCredentialRecord{User: "u", Mechanism: ScramSHA512, Credential: &ScramCredential{
			Salt: []byte{1}, StoredKey: []byte{2, 3}, ServerKey: []byte{4}, Iterations: 4096,
		}},
		&ScramCredentialRecord{User: "u", Mechanism: -1},
	}
}

func TestBatchRoundTrip(t *testing.T) {
	want := everyRecord()
	term, got, err := DecodeBatch(EncodeBatch(1<<40, want))
	if err != nil || term != 1<<40 {
		t.Fatalf("term %d, %v", term, err)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("record %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	kinds := map[recordKind]bool{}
	for _, rec := range want {
		kinds[rec.kind()] = true
	}
	for kind := recordKind(1); ; kind++ {
		rec, _ := newRecord(kind)
		if rec == nil {
			break
		}
		if !kinds[kind] {
			t.Errorf("record kind %d (%T) is not tested", kind, rec)
		}
	}
}

func TestBatchRefusesNewer(t *testing.T) {
	for name, data := range map[string][]byte{
		"format":  {batchFormat + 1, 0, 0},
		"kind":    {batchFormat, 0, 1, 100, 0, 0},
		"version": {batchFormat, 0, 1, byte(kindNoOp), 1, 0},
	} {
		if _, _, err := DecodeBatch(data); !errors.Is(err, ErrNewer) {
			t.Errorf("newer %s: %v", name, err)
		}
	}
}

// TestBatchCut cuts a batch everywhere: each cut is an error.
func TestBatchCut(t *testing.T) {
	data := EncodeBatch(5, everyRecord())
	for n := range data {
		if _, _, err := DecodeBatch(data[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are taken for a batch", n, len(data))
		}
	}
	if _, _, err := DecodeBatch(append(data, 0)); err == nil {
		t.Fatal("a byte too many is taken")
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(EncodeBatch(5, everyRecord()))
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		term, records, err := DecodeBatch(data)
		if err != nil {
			return
		}
		again, same, err := DecodeBatch(EncodeBatch(term, records))
		if err != nil || again != term || !reflect.DeepEqual(same, records) {
			t.Fatalf("%v does not survive a round trip: %v, %v", records, same, err)
		}
	})
}

func FuzzDecodeSnapshot(f *testing.F) {
	body := sample().Encode()
	f.Add(body[:len(body)-crcBytes])
	f.Fuzz(func(t *testing.T, body []byte) {
		img, err := Decode(withCRC(body))
		if err != nil {
			return
		}
		again, err := Decode(img.Encode())
		if err != nil || again.Hash() != img.Hash() {
			t.Fatalf("an image does not survive a round trip: %v", err)
		}
	})
}
