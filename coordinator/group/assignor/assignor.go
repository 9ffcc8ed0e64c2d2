package assignor

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// TopicID is a topic's 16-byte id.
type TopicID = [16]byte

// Assignment is what one member gets: partitions by topic, in ascending order.
// Topics without partitions are absent. It is shared and never changed.
type Assignment map[TopicID][]int32

// Equal tells whether two assignments are the same.
func (a Assignment) Equal(b Assignment) bool {
	return maps.EqualFunc(a, b, slices.Equal[[]int32])
}

// Has tells whether a partition is assigned.
func (a Assignment) Has(topic TopicID, partition int32) bool {
	_, found := slices.BinarySearch(a[topic], partition)
	return found
}

// TopicIDs are the topics in order.
func (a Assignment) TopicIDs() []TopicID {
	return slices.SortedFunc(maps.Keys(a), CompareTopicIDs)
}

// Member is one member of a group that is to be divided.
type Member struct {
	ID         string
	InstanceID *string
	// Topics are the ids of the topics it subscribes to, in the order of
	// CompareTopicIDs and each once; topics that do not exist are left out.
	Topics []TopicID
	// Assigned is what it was given last.
	Assigned Assignment
}

// Group is what is to be divided.
type Group struct {
	// Members are in the order of their ids.
	Members []Member
	// Homogeneous says that all members have the same subscription.
	Homogeneous bool
	// Partitions is how many partitions a subscribed topic has.
	Partitions func(TopicID) int32
}

// Assignor is a way of dividing; the result has every member of the group, by id.
type Assignor func(Group) map[string]Assignment

// The names of the assignors, as clients and the configuration use them.
const (
	Uniform = "uniform"
	Range   = "range"
)

// ByName finds an assignor.
func ByName(name string) (Assignor, bool) {
	switch name {
	case Uniform:
		return uniform, true
	case Range:
		return byRange, true
	}
	return nil, false
}

// CompareTopicIDs is Kafka's order of topic ids, which takes their halves as
// signed numbers.
func CompareTopicIDs(a, b TopicID) int {
	high := cmp.Compare(int64(binary.BigEndian.Uint64(a[:8])), int64(binary.BigEndian.Uint64(b[:8])))
	return cmp.Or(high, cmp.Compare(int64(binary.BigEndian.Uint64(a[8:])), int64(binary.BigEndian.Uint64(b[8:]))))
}

// topicPartition is one partition to be given away.
type topicPartition struct {
	topic     TopicID
	partition int32
}

// hands collects what members get; a member's old assignment is copied only when
// something is taken from it or given to it.
type hands struct {
	out    map[string]Assignment
	copied map[string]bool
}

func newHands(members int) *hands {
	return &hands{out: make(map[string]Assignment, members), copied: map[string]bool{}}
}

// own is a member's assignment for changing.
func (h *hands) own(member string) Assignment {
	if h.copied[member] {
		return h.out[member]
	}
	own := make(Assignment, len(h.out[member])+1)
	for topic, partitions := range h.out[member] {
		own[topic] = slices.Clone(partitions)
	}
	h.out[member], h.copied[member] = own, true
	return own
}

func (h *hands) give(member string, p topicPartition) {
	own := h.own(member)
	at, _ := slices.BinarySearch(own[p.topic], p.partition)
	own[p.topic] = slices.Insert(own[p.topic], at, p.partition)
}

func (h *hands) take(member string, p topicPartition) {
	own := h.own(member)
	at, found := slices.BinarySearch(own[p.topic], p.partition)
	if !found {
		return
	}
	if own[p.topic] = slices.Delete(own[p.topic], at, at+1); len(own[p.topic]) == 0 {
		delete(own, p.topic)
	}
}

func (h *hands) takeTopic(member string, topic TopicID) { delete(h.own(member), topic) }

func subscribes(topics []TopicID, topic TopicID) bool {
	_, found := slices.BinarySearchFunc(topics, topic, CompareTopicIDs)
	return found
}

// compareMembers orders static members by instance before dynamic ones by id.
func compareMembers(a, b *Member) int {
	switch {
	case a.InstanceID != nil && b.InstanceID != nil:
		return bytes.Compare([]byte(*a.InstanceID), []byte(*b.InstanceID))
	case a.InstanceID != nil:
		return -1
	case b.InstanceID != nil:
		return 1
	}
	return cmp.Compare(a.ID, b.ID)
}
