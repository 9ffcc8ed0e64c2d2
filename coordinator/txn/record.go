package txn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/storage"
)

// The versions of Kafka's records. The first value version, which is written while
// the cluster's transaction version is 0, has no room for what KIP-890 added; the
// producer id before is then forgotten in a restart, as in Kafka.
const (
	keyVersion      = 0
	valueVersion0   = 0
	valueVersionMax = 1
)

// maxString is the longest string that goes into a record of version 0, where its
// length takes two bytes.
const maxString = 1<<15 - 1

// Record is one record of __transaction_state; a nil Transaction is a tombstone.
type Record struct {
	TransactionalID string
	Transaction     *Transaction
	// Version is the value's version.
	Version int16
}

// Codec turns records into Kafka's bytes and back.
type Codec struct{}

var errNoVersion = errors.New("shorter than its version")

// Encode is the record's key and value; a nil value is a tombstone.
func (Codec) Encode(r Record) (key, value []byte) {
	k := kmsg.TxnMetadataKey{Version: keyVersion, TransactionalID: r.TransactionalID}
	key = k.AppendTo(nil)
	t := r.Transaction
	if t == nil {
		return key, nil
	}
	v := kmsg.NewTxnMetadataValue()
	v.Version, v.ProducerID, v.ProducerEpoch, v.TimeoutMillis = r.Version, t.ProducerID, t.Epoch, t.TimeoutMs
	v.State, v.LastUpdateTimestamp, v.StartTimestamp = kmsg.TransactionState(t.State), t.UpdateMs, t.StartMs
	v.PreviousProducerID, v.NextProducerID, v.ClientTransactionVersion = t.PrevProducerID, t.NextProducerID, t.ClientVersion
	if t.State != Empty {
		v.Topics = byTopic(t.Partitions)
	}
	return key, v.AppendTo(nil)
}

// byTopic groups sorted partitions; it is empty rather than nil.
func byTopic(partitions []storage.TopicPartition) []kmsg.TxnMetadataValueTopic {
	topics := []kmsg.TxnMetadataValueTopic{}
	for _, tp := range partitions {
		if n := len(topics); n == 0 || topics[n-1].Topic != tp.Topic {
			topics = append(topics, kmsg.TxnMetadataValueTopic{Topic: tp.Topic})
		}
		t := &topics[len(topics)-1]
		t.Partitions = append(t.Partitions, tp.Partition)
	}
	return topics
}

// Decode parses what Encode or any Kafka broker wrote; ok is false for records of
// kinds that are not known. It keeps nothing of key and value.
func (Codec) Decode(key, value []byte) (r Record, ok bool, err error) {
	if len(key) < 2 {
		return r, false, fmt.Errorf("key of a transaction record: %w", errNoVersion)
	}
	if binary.BigEndian.Uint16(key) != keyVersion {
		return r, false, nil
	}
	var k kmsg.TxnMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return r, false, fmt.Errorf("key of a transactional id: %w", err)
	}
	r.TransactionalID = k.TransactionalID
	if value == nil {
		return r, true, nil
	}
	if r.Transaction, r.Version, err = decodeValue(value); err != nil {
		return Record{}, false, fmt.Errorf("transactional id %q: %w", k.TransactionalID, err)
	}
	return r, true, nil
}

func decodeValue(value []byte) (*Transaction, int16, error) {
	if len(value) < 2 {
		return nil, 0, errNoVersion
	}
	if v := int16(binary.BigEndian.Uint16(value)); v < 0 || v > valueVersionMax {
		return nil, 0, fmt.Errorf("version %d is not known", v)
	}
	v := kmsg.NewTxnMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return nil, 0, err
	}
	if v.State < 0 || int(v.State) >= logStates {
		return nil, 0, fmt.Errorf("state %d cannot stand in a record", v.State)
	}
	t := &Transaction{
		ProducerID: v.ProducerID, PrevProducerID: v.PreviousProducerID, NextProducerID: v.NextProducerID,
		Epoch: v.ProducerEpoch, lastEpoch: noEpoch, TimeoutMs: v.TimeoutMillis, State: State(v.State),
		StartMs: v.StartTimestamp, UpdateMs: v.LastUpdateTimestamp, ClientVersion: v.ClientTransactionVersion,
	}
	if t.State != Empty {
		for i := range v.Topics {
			for _, p := range v.Topics[i].Partitions {
				t.Partitions = append(t.Partitions, storage.TopicPartition{Topic: v.Topics[i].Topic, Partition: p})
			}
		}
		slices.SortFunc(t.Partitions, comparePartitions)
		t.Partitions = slices.Compact(t.Partitions)
	}
	return t, v.Version, nil
}
