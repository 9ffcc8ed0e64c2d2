package txn

import (
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/storage"
)

// kafkaRecords were written by Apache Kafka 4.4.
var kafkaRecords = []struct{ key, value, says string }{
	{
		"0000000d42313739353939353833392d65",
		"000100000000000001517fff0000ea6003020e42313739353939353833392d74020000000000000001a229b1d7ef000001a229b1d7ef03000800000000000001510108000000000000015202020002",
		"PrepareAbort 337/32767 prev=337 next=338 timeout=60000 client=2 start=1795995850735 update=1795995850735 [B1795995839-t-0]",
	},
	{
		"0000002f782d50726f647563652d2d7472616e73616374696f6e616c2d2d61646465642d6265666f72652d76392d6362383661",
		"000100000000000000ef00000000ea60010230742d50726f647563652d2d7472616e73616374696f6e616c2d2d61646465642d6265666f72652d76392d6362383661020000000000000001a229b0c144000001a229b0c14401000800000000000000ef",
		"Ongoing 239/0 prev=239 timeout=60000 client=0 start=1795995779396 update=1795995779396 [t-Produce--transactional--added-before-v9-cb86a-0]",
	},
}

func TestRecordsOfKafka(t *testing.T) {
	for _, k := range kafkaRecords {
		key, value := unhex(t, k.key), unhex(t, k.value)
		r, ok, err := Codec{}.Decode(key, value)
		if err != nil || !ok {
			t.Fatalf("%s: ok %v, %v", k.says, ok, err)
		}
		if got := describeTransaction(r.Transaction); got != k.says {
			t.Errorf("got  %s\nwant %s", got, k.says)
		}
		againKey, again := Codec{}.Encode(r)
		if !slices.Equal(key, againKey) || !slices.Equal(value, again) {
			t.Errorf("%s is encoded as %x %x", k.says, againKey, again)
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRecordsThatAreNotTaken(t *testing.T) {
	key, value := unhex(t, kafkaRecords[0].key), unhex(t, kafkaRecords[0].value)
	for _, tc := range []struct {
		name       string
		key, value []byte
		ok         bool
		err        string
	}{
		{"a tombstone", key, nil, true, ""},
		{"another kind of key", []byte{0, 7, 1, 2}, value, false, ""},
		{"a key without a version", []byte{0}, value, false, "shorter than its version"},
		{"half a key", key[:5], value, false, "key of a transactional id"},
		{"a value without a version", key, []byte{0}, false, "shorter than its version"},
		{"a newer version", key, []byte{0, 9, 0}, false, "version 9 is not known"},
		{"half a value", key, value[:30], false, "transactional id"},
		{"a state that is none", key, slices.Replace(slices.Clone(value), 16, 17, 6), false, "state 6"},
	} {
		r, ok, err := Codec{}.Decode(tc.key, tc.value)
		if ok != tc.ok || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %+v, ok %v, %v", tc.name, r, ok, err)
		}
	}
}

// TestRecordsComeBack encodes and decodes: in version 1 everything comes back but
// the last epoch, in version 0 also what KIP-890 added is gone.
func TestRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SliceOf(rapid.Custom(func(t *rapid.T) storage.TopicPartition {
			return storage.TopicPartition{Topic: rapid.SampledFrom([]string{"t", "u", "v.w"}).Draw(t, "topic"), Partition: rapid.Int32Range(0, 9).Draw(t, "partition")}
		})).Draw(t, "partitions")
		tx := &Transaction{
			ProducerID: rapid.Int64().Draw(t, "id"), PrevProducerID: rapid.Int64().Draw(t, "prev"), NextProducerID: rapid.Int64().Draw(t, "next"),
			Epoch: rapid.Int16().Draw(t, "epoch"), lastEpoch: noEpoch, TimeoutMs: rapid.Int32().Draw(t, "timeout"),
			State:   State(rapid.IntRange(0, logStates-1).Draw(t, "state")),
			StartMs: rapid.Int64().Draw(t, "start"), UpdateMs: rapid.Int64().Draw(t, "update"), ClientVersion: rapid.Int16().Draw(t, "client"),
		}
		if tx.State != Empty && len(at) > 0 {
			tx.Partitions = union(nil, at)
		}
		r := Record{TransactionalID: rapid.String().Draw(t, "transactional id"), Transaction: tx, Version: rapid.Int16Range(0, 1).Draw(t, "version")}
		got, ok, err := Codec{}.Decode(Codec{}.Encode(r))
		if err != nil || !ok {
			t.Fatalf("ok %v, %v", ok, err)
		}
		if r.Version == 0 {
			tx.PrevProducerID, tx.NextProducerID, tx.ClientVersion = noProducerID, noProducerID, 0
		}
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v %+v, want %+v %+v", got, got.Transaction, r, tx)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, k := range kafkaRecords {
		key, _ := hex.DecodeString(k.key)
		value, _ := hex.DecodeString(k.value)
		f.Add(key, value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r, ok, err := Codec{}.Decode(key, value)
		if err != nil || !ok {
			return
		}
		again, ok, err := Codec{}.Decode(Codec{}.Encode(r))
		if err != nil || !ok || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v comes back as %+v, ok %v, %v", r, again, ok, err)
		}
	})
}
