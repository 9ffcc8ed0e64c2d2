package group

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The first two bytes of a key say what the record is; consumer_record.go has
// those of consumer groups. Kafka's coordinator knows more kinds (share and
// streams groups), which are left alone.
const (
	keyOffsetCommitV0 = 0
	keyOffsetCommit   = 1
	keyGroupMetadata  = 2
)

// The versions that Kafka 4 writes: the offset's topic id needs 4, a commit with
// its own retention time needs 1, the last version that has an expiry.
const (
	offsetValueVersion        = 4
	offsetValueVersionExpires = 1
	groupValueVersion         = 3

	offsetValueMaxVersion = 4
	groupValueMaxVersion  = 4
)

// maxString is the longest string that goes into a record, where its length takes
// two bytes; a member id is a client's or an instance's and 37 bytes more.
const maxString = 1<<15 - 1 - 64

func tooLong(s string) bool { return len(s) > maxString }

// Record is one record of __consumer_offsets. At most one of Offset, Metadata and
// Consumer is set; none in a tombstone of the first two.
type Record struct {
	// IsOffset tells a committed offset from a group's metadata.
	IsOffset  bool
	Group     string
	Topic     string
	Partition int32
	Offset    *kmsg.OffsetCommitValue
	Metadata  *kmsg.GroupMetadataValue
	// Consumer is a record of a group of the consumer protocol.
	Consumer *ConsumerRecord
}

// Codec turns records into Kafka's bytes and back.
type Codec struct{}

var errNoVersion = errors.New("shorter than its version")

// Encode is the record's key and value; a nil value is a tombstone.
func (Codec) Encode(r Record) (key, value []byte) {
	if r.Consumer != nil {
		return encodeConsumer(r.Group, r.Consumer)
	}
	if r.IsOffset {
		k := kmsg.OffsetCommitKey{Version: keyOffsetCommit, Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		key = k.AppendTo(nil)
		if r.Offset != nil {
			value = r.Offset.AppendTo(nil)
		}
		return key, value
	}
	k := kmsg.GroupMetadataKey{Version: keyGroupMetadata, Group: r.Group}
	key = k.AppendTo(nil)
	if r.Metadata != nil {
		value = r.Metadata.AppendTo(nil)
	}
	return key, value
}

// Decode parses what Encode or any Kafka broker wrote; ok is false for records
// of kinds that this machine does not hold. It keeps nothing of key and value.
func (Codec) Decode(key, value []byte) (r Record, ok bool, err error) {
	if len(key) < 2 {
		return r, false, fmt.Errorf("key of a group record: %w", errNoVersion)
	}
	switch version := int16(binary.BigEndian.Uint16(key)); {
	case version == keyOffsetCommitV0 || version == keyOffsetCommit:
		r, err = decodeOffset(key, value)
	case version == keyGroupMetadata:
		r, err = decodeMetadata(key, value)
	case recordKind(version).known():
		r, err = decodeConsumer(recordKind(version), key, value)
	default:
		return r, false, nil
	}
	return r, err == nil, err
}

func decodeOffset(key, value []byte) (Record, error) {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(key); err != nil {
		return Record{}, fmt.Errorf("key of a committed offset: %w", err)
	}
	r := Record{IsOffset: true, Group: k.Group, Topic: k.Topic, Partition: k.Partition}
	if value == nil {
		return r, nil
	}
	if err := checkVersion(value, offsetValueMaxVersion); err != nil {
		return Record{}, fmt.Errorf("committed offset of %q for %s-%d: %w", k.Group, k.Topic, k.Partition, err)
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(value); err != nil {
		return Record{}, fmt.Errorf("committed offset of %q for %s-%d: %w", k.Group, k.Topic, k.Partition, err)
	}
	if v.Version < 3 {
		v.LeaderEpoch = -1
	}
	if v.Version != 1 {
		v.ExpireTimestamp = -1
	}
	r.Offset = &v
	return r, nil
}

func decodeMetadata(key, value []byte) (Record, error) {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return Record{}, fmt.Errorf("key of a group: %w", err)
	}
	r := Record{Group: k.Group}
	if value == nil {
		return r, nil
	}
	if err := checkVersion(value, groupValueMaxVersion); err != nil {
		return Record{}, fmt.Errorf("group %q: %w", k.Group, err)
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return Record{}, fmt.Errorf("group %q: %w", k.Group, err)
	}
	for i := range v.Members {
		m := &v.Members[i]
		if m.RebalanceTimeoutMillis < 0 {
			m.RebalanceTimeoutMillis = m.SessionTimeoutMillis
		}
		m.Subscription = append([]byte(nil), m.Subscription...)
		m.Assignment = append([]byte(nil), m.Assignment...)
	}
	r.Metadata = &v
	return r, nil
}

func checkVersion(value []byte, highest int16) error {
	if len(value) < 2 {
		return errNoVersion
	}
	if v := int16(binary.BigEndian.Uint16(value)); v < 0 || v > highest {
		return fmt.Errorf("version %d is not known", v)
	}
	return nil
}

// encodedBytes is about what a record takes in a batch.
func encodedBytes(r Record) int {
	const overhead = 48
	n := overhead + len(r.Group) + len(r.Topic)
	if c := r.Consumer; c != nil {
		n += len(c.name)
		if c.value != nil {
			n += c.value.sizeBytes()
		}
	}
	if r.Offset != nil {
		n += 48 + len(r.Offset.Metadata)
	}
	if r.Metadata != nil {
		n += 32 + len(r.Metadata.ProtocolType)
		for i := range r.Metadata.Members {
			m := &r.Metadata.Members[i]
			n += overhead + len(m.MemberID) + len(m.ClientID) + len(m.ClientHost) + len(m.Subscription) + len(m.Assignment)
			if m.InstanceID != nil {
				n += len(*m.InstanceID)
			}
		}
	}
	return n
}
