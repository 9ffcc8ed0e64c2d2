package group

import (
	"fmt"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
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
	append(w *wireWriter)
	sizeBytes() int
}

// epochValue is the group's epoch and what it knows of its topics.
type epochValue struct {
	epoch        int32
	metadataHash int64
}

func (v *epochValue) append(w *wireWriter) {
	w.int32(v.epoch)
	if v.metadataHash == 0 {
		w.noTags()
		return
	}
	var field wireWriter
	field.int64(v.metadataHash)
	w.tag(field.buf)
}

func (v *epochValue) sizeBytes() int { return 16 }

func readEpoch(r *wireReader) *epochValue {
	v := &epochValue{epoch: r.int32()}
	r.tags(func(tag uint64, field *wireReader) {
		if tag == 0 {
			v.metadataHash = field.int64()
		}
	})
	return v
}

// partitionsValue stands for what Kafka 4.0 wrote, of which nothing is used.
type partitionsValue struct{}

func (partitionsValue) append(w *wireWriter) { w.count(0); w.noTags() }
func (partitionsValue) sizeBytes() int       { return 4 }

// targetEpochValue is the epoch for which the group was divided last, and when.
type targetEpochValue struct {
	epoch       int32
	timestampMs int64
}

func (v *targetEpochValue) append(w *wireWriter) {
	w.int32(v.epoch)
	if v.timestampMs == 0 {
		w.noTags()
		return
	}
	var field wireWriter
	field.int64(v.timestampMs)
	w.tag(field.buf)
}

func (v *targetEpochValue) sizeBytes() int { return 16 }

func readTargetEpoch(r *wireReader) *targetEpochValue {
	v := &targetEpochValue{epoch: r.int32()}
	r.tags(func(tag uint64, field *wireReader) {
		if tag == 0 {
			v.timestampMs = field.int64()
		}
	})
	return v
}

// targetValue is what one member is to get.
type targetValue struct{ partitions assignor.Assignment }

func (v *targetValue) append(w *wireWriter) {
	w.count(len(v.partitions))
	for _, topic := range v.partitions.TopicIDs() {
		w.id(topic)
		w.int32s(v.partitions[topic])
		w.noTags()
	}
	w.noTags()
}

func (v *targetValue) sizeBytes() (n int) {
	for _, partitions := range v.partitions {
		n += topicBytes + 4*len(partitions)
	}
	return n + 4
}

// topicBytes is what a topic takes beside its partitions.
const topicBytes = 24

func readTarget(r *wireReader) *targetValue {
	v := &targetValue{partitions: assignor.Assignment{}}
	for range r.count(topicBytes - 6) {
		topic, partitions := r.id(), r.int32s()
		r.tags(nil)
		if len(partitions) > 0 {
			slices.Sort(partitions)
			v.partitions[topic] = partitions
		}
	}
	r.tags(nil)
	return v
}

// currentValue is what one member has at this moment.
type currentValue struct {
	epoch, previousEpoch int32
	state                memberState
	assigned, revoking   owned
}

func (v *currentValue) append(w *wireWriter) {
	w.int32(v.epoch)
	w.int32(v.previousEpoch)
	w.int8(int8(v.state))
	v.assigned.append(w)
	v.revoking.append(w)
	w.noTags()
}

func (v *currentValue) sizeBytes() int { return 16 + v.assigned.sizeBytes() + v.revoking.sizeBytes() }

func readCurrent(r *wireReader) *currentValue {
	v := &currentValue{epoch: r.int32(), previousEpoch: r.int32(), state: memberState(r.int8())}
	if v.state > stateUnreleased || v.state < stateStable {
		v.state = stateUnknown
	}
	v.assigned, v.revoking = readOwned(r, v.epoch), readOwned(r, v.epoch)
	r.tags(nil)
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

func (v *regexValue) append(w *wireWriter) {
	w.strings(v.topics)
	w.int64(v.version)
	w.int64(v.timestampMs)
	w.noTags()
}

func (v *regexValue) sizeBytes() int {
	n := 24
	for _, t := range v.topics {
		n += 4 + len(t)
	}
	return n
}

func readRegex(r *wireReader) *regexValue {
	v := &regexValue{topics: r.strings(), version: r.int64(), timestampMs: r.int64()}
	r.tags(nil)
	slices.Sort(v.topics)
	return v
}

// encodeConsumer is the key and value of a record.
func encodeConsumer(group string, c *ConsumerRecord) (key, value []byte) {
	var k wireWriter
	k.int16(int16(c.kind))
	k.shortString(group)
	if c.kind.named() {
		k.shortString(c.name)
	}
	if c.value == nil {
		return k.buf, nil
	}
	var w wireWriter
	w.int16(0) // the only version of all of them
	c.value.append(&w)
	return k.buf, w.buf
}

// decodeConsumer parses what encodeConsumer or any Kafka broker wrote.
func decodeConsumer(kind recordKind, key, value []byte) (Record, error) {
	k := wireReader{buf: key[2:]}
	c := &ConsumerRecord{kind: kind}
	group := k.shortString()
	if kind.named() {
		c.name = k.shortString()
	}
	if k.err != nil {
		return Record{}, fmt.Errorf("key of a group's %v: %w", kind, k.err)
	}
	r := Record{Group: group, Consumer: c}
	if value == nil {
		return r, nil
	}
	if err := checkVersion(value, 0); err != nil {
		return Record{}, fmt.Errorf("%v of group %q: %w", kind, group, err)
	}
	v := &wireReader{buf: value[2:]}
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
	if v.err != nil {
		return Record{}, fmt.Errorf("%v of group %q: %w", kind, group, v.err)
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

func (o owned) append(w *wireWriter) {
	w.count(len(o))
	a := o.partitions()
	for _, topic := range a.TopicIDs() {
		partitions := a[topic]
		w.id(topic)
		w.int32s(partitions)
		var field wireWriter
		field.count(len(partitions))
		for _, p := range partitions {
			field.int32(o[topic][p])
		}
		w.tag(field.buf)
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
func readOwned(r *wireReader, memberEpoch int32) owned {
	o := owned{}
	for range r.count(topicBytes - 6) {
		topic, partitions := r.id(), r.int32s()
		var epochs []int32
		r.tags(func(tag uint64, field *wireReader) {
			if tag == 0 {
				epochs = field.int32s()
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
