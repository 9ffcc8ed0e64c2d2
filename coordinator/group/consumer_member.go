package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol/wire"
)

// memberState is how far a member is with what it was given.
type memberState int8

// Kafka's numbers of the states.
const (
	// stateStable: it has what the division for its epoch gives it.
	stateStable memberState = iota
	// stateUnrevoked: it must give partitions back before it gets its next epoch.
	stateUnrevoked
	// stateUnreleased: it waits for partitions that others have not given back.
	stateUnreleased
	// stateUnknown: a later version of Kafka wrote it; the member must join anew.
	stateUnknown memberState = 127
)

// staticLeaveEpoch is the epoch of a static member that has gone and will come
// back; leaveEpoch that of a member that leaves.
const (
	leaveEpoch       = -1
	staticLeaveEpoch = -2
)

// consumerMember is one member of a consumer group, as two records of the log have
// it: what it said of itself and what it has.
type consumerMember struct {
	id string
	memberMetadata
	currentValue
}

// memberMetadata is what a member said of itself.
type memberMetadata struct {
	instanceID, rackID   *string
	clientID, clientHost string
	// topics are sorted, each once; regex is "" for none.
	topics             []string
	regex              string
	rebalanceTimeoutMs int32
	assignor           *string
	// classic is set for a member that uses the classic protocol.
	classic *classicMetadata
}

// classicMetadata is what a member that uses the classic protocol said when it
// joined.
type classicMetadata struct {
	sessionTimeoutMs int32
	protocols        []kmsg.JoinGroupRequestProtocol
}

func newConsumerMember(id string) *consumerMember {
	return &consumerMember{
		id:             id,
		memberMetadata: memberMetadata{rebalanceTimeoutMs: -1},
		currentValue:   currentValue{previousEpoch: -1},
	}
}

func (m *consumerMember) reconciledTo(epoch int32) bool {
	return m.state == stateStable && m.epoch == epoch
}

// metadataRecord and currentRecord are the member's two records.
func (m *consumerMember) metadataRecord() *ConsumerRecord {
	v := m.memberMetadata
	return &ConsumerRecord{kind: kindMember, name: m.id, value: &v}
}

func (m *consumerMember) currentRecord() *ConsumerRecord {
	v := m.currentValue
	return &ConsumerRecord{kind: kindCurrent, name: m.id, value: &v}
}

func (v *memberMetadata) equal(o *memberMetadata) bool {
	return equalOpt(v.instanceID, o.instanceID) && equalOpt(v.rackID, o.rackID) && equalOpt(v.assignor, o.assignor) &&
		v.clientID == o.clientID && v.clientHost == o.clientHost && v.regex == o.regex &&
		v.rebalanceTimeoutMs == o.rebalanceTimeoutMs && slices.Equal(v.topics, o.topics) && v.classic.equal(o.classic)
}

func equalOpt(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func (c *classicMetadata) equal(o *classicMetadata) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.sessionTimeoutMs == o.sessionTimeoutMs && equalProtocols(c.protocols, o.protocols)
}

func (v *currentValue) equal(o *currentValue) bool {
	return v.epoch == o.epoch && v.previousEpoch == o.previousEpoch && v.state == o.state &&
		v.assigned.equal(o.assigned) && v.revoking.equal(o.revoking)
}

// ofJoin is the classic part of a member that sends a JoinGroup.
func ofJoin(r *kmsg.JoinGroupRequest) *classicMetadata {
	return &classicMetadata{sessionTimeoutMs: r.SessionTimeoutMillis, protocols: r.Protocols}
}

// protocol is the one that a classic member of a consumer group is told: its
// first.
func (c *classicMetadata) protocol() kmsg.JoinGroupRequestProtocol {
	if len(c.protocols) == 0 {
		return kmsg.JoinGroupRequestProtocol{}
	}
	return c.protocols[0]
}

func (v *memberMetadata) append(w *wire.Writer) {
	w.OptString(v.instanceID)
	w.OptString(v.rackID)
	w.String(v.clientID)
	w.String(v.clientHost)
	w.Strings(v.topics)
	w.String(v.regex)
	w.Int32(v.rebalanceTimeoutMs)
	w.OptString(v.assignor)
	var field wire.Writer
	if v.classic == nil {
		field.Uvarint(0)
	} else {
		field.Uvarint(1)
		field.Int32(v.classic.sessionTimeoutMs)
		field.Count(len(v.classic.protocols))
		for i := range v.classic.protocols {
			field.String(v.classic.protocols[i].Name)
			field.Bytes(v.classic.protocols[i].Metadata)
			field.NoTags()
		}
		field.NoTags()
	}
	w.Tag(field.Buf)
}

func (v *memberMetadata) sizeBytes() int {
	n := 64 + len(v.clientID) + len(v.clientHost) + len(v.regex)
	for _, s := range []*string{v.instanceID, v.rackID, v.assignor} {
		if s != nil {
			n += len(*s)
		}
	}
	for _, t := range v.topics {
		n += 4 + len(t)
	}
	if v.classic != nil {
		for i := range v.classic.protocols {
			n += 8 + len(v.classic.protocols[i].Name) + len(v.classic.protocols[i].Metadata)
		}
	}
	return n
}

func readMember(r *wire.Reader) *memberMetadata {
	v := &memberMetadata{
		instanceID: r.OptString(), rackID: r.OptString(), clientID: r.String(), clientHost: r.String(),
		topics: sortedNames(r.Strings()), regex: r.String(), rebalanceTimeoutMs: r.Int32(), assignor: r.OptString(),
	}
	r.Tags(func(tag uint64, field *wire.Reader) {
		if tag == 0 && field.Uvarint() != 0 {
			v.classic = readClassic(field)
		}
	})
	return v
}

func readClassic(r *wire.Reader) *classicMetadata {
	c := &classicMetadata{sessionTimeoutMs: r.Int32()}
	for range r.Count(3) {
		p := kmsg.JoinGroupRequestProtocol{Name: r.String(), Metadata: r.Bytes()}
		r.Tags(nil)
		if r.Err() != nil {
			break
		}
		c.protocols = append(c.protocols, p)
	}
	r.Tags(nil)
	return c
}

// sortedNames is a list of topics in order and each once; nil for none.
func sortedNames(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
