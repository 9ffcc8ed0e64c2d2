package group

import (
	"fmt"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
	"github.com/barnabas-mq/barnabas/protocol/wire"
)

// recordKind is the version of a record's key, which says what the record is.
type recordKind int16

// The records of a group of the consumer protocol (KIP-848).
const (
	kindEpoch recordKind = iota + 3
	// kindPartitions is what Kafka 4.0 wrote about topics; newer versions only
	// remove it.
	kindPartitions
	kindMember
	kindTargetEpoch
	kindTarget
	kindCurrent
	kindRegex recordKind = 16
)

func (k recordKind) known() bool { return k >= kindEpoch && k <= kindCurrent || k == kindRegex }

// named tells whether the key has a member's id, or a regular expression, beside
// the group.
func (k recordKind) named() bool {
	return k == kindMember || k == kindTarget || k == kindCurrent || k == kindRegex
}

func (k recordKind) String() string {
	switch k {
	case kindEpoch:
		return "epoch"
	case kindPartitions:
		return "partitions"
	case kindMember:
		return "member"
	case kindTargetEpoch:
		return "target-epoch"
	case kindTarget:
		return "target"
	case kindCurrent:
		return "current"
	}
	return "regex"
}

// ConsumerRecord is one record of a group of the consumer protocol.
type ConsumerRecord struct {
	kind recordKind
	// name is the member's id or the regular expression, where the kind has one.
	name string
	// value is nil in a tombstone.
	value consumerValue
}

// consumerValue is the value of one kind of record.
type consumerValue interface {
	append(w *wire.Writer)
	sizeBytes() int
}

// epochValue is the group's epoch and what it knows of its topics.
type epochValue struct {
	epoch        int32
	metadataHash int64
}

func (v *epochValue) append(w *wire.Writer) {
	w.Int32(v.epoch)
	w.TagInt64(v.metadataHash)
}

func (v *epochValue) sizeBytes() int { return 16 }

func readEpoch(r *wire.Reader) *epochValue {
	return &epochValue{epoch: r.Int32(), metadataHash: r.TagInt64()}
}

// partitionsValue stands for what Kafka 4.0 wrote, of which nothing is used.
type partitionsValue struct{}

func (partitionsValue) append(w *wire.Writer) { w.Count(0); w.NoTags() }
func (partitionsValue) sizeBytes() int        { return 4 }

// targetEpochValue is the epoch for which the group was divided last, and when.
type targetEpochValue struct {
	epoch       int32
	timestampMs int64
}

func (v *targetEpochValue) append(w *wire.Writer) {
	w.Int32(v.epoch)
	w.TagInt64(v.timestampMs)
}

func (v *targetEpochValue) sizeBytes() int { return 16 }

func readTargetEpoch(r *wire.Reader) *targetEpochValue {
	return &targetEpochValue{epoch: r.Int32(), timestampMs: r.TagInt64()}
}

// targetValue is what one member is to get.
type targetValue struct{ partitions assignor.Assignment }

func (v *targetValue) append(w *wire.Writer) {
	w.Count(len(v.partitions))
	for _, topic := range v.partitions.TopicIDs() {
		w.ID(topic)
		w.Int32s(v.partitions[topic])
		w.NoTags()
	}
	w.NoTags()
}

func (v *targetValue) sizeBytes() (n int) {
	for _, partitions := range v.partitions {
		n += topicBytes + 4*len(partitions)
	}
	return n + 4
}

// topicBytes is what a topic takes beside its partitions.
const topicBytes = 24

func readTarget(r *wire.Reader) *targetValue {
	v := &targetValue{partitions: assignor.Assignment{}}
	for range r.Count(topicBytes - 6) {
		topic, partitions := r.ID(), r.Int32s()
		r.Tags(nil)
		if len(partitions) > 0 {
			slices.Sort(partitions)
			v.partitions[topic] = partitions
		}
	}
	r.Tags(nil)
	return v
}

// currentValue is what one member has at this moment.
type currentValue struct {
	epoch, previousEpoch int32
	state                memberState
	assigned, revoking   owned
}

func (v *currentValue) append(w *wire.Writer) {
	w.Int32(v.epoch)
	w.Int32(v.previousEpoch)
	w.Int8(int8(v.state))
	v.assigned.append(w)
	v.revoking.append(w)
	w.NoTags()
}

func (v *currentValue) sizeBytes() int { return 16 + v.assigned.sizeBytes() + v.revoking.sizeBytes() }

func readCurrent(r *wire.Reader) *currentValue {
	v := &currentValue{epoch: r.Int32(), previousEpoch: r.Int32(), state: memberState(r.Int8())}
	if v.state > stateUnreleased || v.state < stateStable {
		v.state = stateUnknown
	}
	v.assigned, v.revoking = readOwned(r, v.epoch), readOwned(r, v.epoch)
	r.Tags(nil)
	return v
}

// regexValue is the topics that a regular expression meant when it was last held
// against all topics.
type regexValue struct {
	topics []string
	// version is the metadata image of that time.
	version     int64
	timestampMs int64
}

func (v *regexValue) append(w *wire.Writer) {
	w.Strings(v.topics)
	w.Int64(v.version)
	w.Int64(v.timestampMs)
	w.NoTags()
}

func (v *regexValue) sizeBytes() int {
	n := 24
	for _, t := range v.topics {
		n += 4 + len(t)
	}
	return n
}

func readRegex(r *wire.Reader) *regexValue {
	v := &regexValue{topics: r.Strings(), version: r.Int64(), timestampMs: r.Int64()}
	r.Tags(nil)
	slices.Sort(v.topics)
	return v
}

// encodeConsumer is the key and value of a record.
func encodeConsumer(group string, c *ConsumerRecord) (key, value []byte) {
	var k wire.Writer
	k.Int16(int16(c.kind))
	k.ShortString(group)
	if c.kind.named() {
		k.ShortString(c.name)
	}
	if c.value == nil {
		return k.Buf, nil
	}
	var w wire.Writer
	w.Int16(0) // the only version of all of them
	c.value.append(&w)
	return k.Buf, w.Buf
}

// decodeConsumer parses what encodeConsumer or any Kafka broker wrote.
func decodeConsumer(kind recordKind, key, value []byte) (Record, error) {
	k := wire.NewReader(key[2:])
	c := &ConsumerRecord{kind: kind}
	group := k.ShortString()
	if kind.named() {
		c.name = k.ShortString()
	}
	if k.Err() != nil {
		return Record{}, fmt.Errorf("key of a group's %v: %w", kind, k.Err())
	}
	r := Record{Group: group, Consumer: c}
	if value == nil {
		return r, nil
	}
	if err := checkVersion(value, 0); err != nil {
		return Record{}, fmt.Errorf("%v of group %q: %w", kind, group, err)
	}
	v := wire.NewReader(value[2:])
	switch kind {
	case kindEpoch:
		c.value = readEpoch(v)
	case kindPartitions:
		c.value = partitionsValue{}
	case kindMember:
		c.value = readMember(v)
	case kindTargetEpoch:
		c.value = readTargetEpoch(v)
	case kindTarget:
		c.value = readTarget(v)
	case kindCurrent:
		c.value = readCurrent(v)
	default:
		c.value = readRegex(v)
	}
	if v.Err() != nil {
		return Record{}, fmt.Errorf("%v of group %q: %w", kind, group, v.Err())
	}
	return r, nil
}

// owned is the partitions of a member, each with the epoch since which it has it.
type owned map[assignor.TopicID]map[int32]int32

func (o owned) equal(other owned) bool {
	return maps.EqualFunc(o, other, maps.Equal[map[int32]int32])
}

func (o owned) has(topic assignor.TopicID, partition int32) bool {
	_, ok := o[topic][partition]
	return ok
}

// partitions is the same without the epochs.
func (o owned) partitions() assignor.Assignment {
	a := make(assignor.Assignment, len(o))
	for topic, epochs := range o {
		a[topic] = slices.Sorted(maps.Keys(epochs))
	}
	return a
}

func ownedAt(a assignor.Assignment, epoch int32) owned {
	o := make(owned, len(a))
	for topic, partitions := range a {
		epochs := make(map[int32]int32, len(partitions))
		for _, p := range partitions {
			epochs[p] = epoch
		}
		o[topic] = epochs
	}
	return o
}

func (o owned) append(w *wire.Writer) {
	w.Count(len(o))
	a := o.partitions()
	for _, topic := range a.TopicIDs() {
		partitions := a[topic]
		w.ID(topic)
		w.Int32s(partitions)
		var field wire.Writer
		field.Count(len(partitions))
		for _, p := range partitions {
			field.Int32(o[topic][p])
		}
		w.Tag(field.Buf)
	}
}

func (o owned) sizeBytes() int {
	n := 4
	for _, epochs := range o {
		n += topicBytes + 8*len(epochs)
	}
	return n
}

// readOwned gives partitions without an epoch the member's.
func readOwned(r *wire.Reader, memberEpoch int32) owned {
	o := owned{}
	for range r.Count(topicBytes - 6) {
		topic, partitions := r.ID(), r.Int32s()
		var epochs []int32
		r.Tags(func(tag uint64, field *wire.Reader) {
			if tag == 0 {
				epochs = field.Int32s()
			}
		})
		byPartition := make(map[int32]int32, len(partitions))
		for i, p := range partitions {
			byPartition[p] = max(memberEpoch, 0)
			if len(epochs) == len(partitions) {
				byPartition[p] = epochs[i]
			}
		}
		if len(byPartition) > 0 {
			o[topic] = byPartition
		}
	}
	return o
}
