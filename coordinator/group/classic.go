package group

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// State is where a group stands.
type State int8

// The states of a group; one that does not exist is Dead.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	// Assigning and Reconciling are states of consumer groups only: the members
	// are to be divided anew, or have not all taken their parts.
	Assigning
	Reconciling
	Dead
)

// String is Kafka's name of the state.
func (s State) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Assigning", "Reconciling", "Dead"}[s]
}

// protocolConsumer is the protocol type whose subscriptions the broker can read.
const protocolConsumer = "consumer"

// classic is a group in memory.
type classic struct {
	id               string
	state, previous  State
	stateTimestampMs int64
	generation       int32
	// protocolType is "" until the first member has joined.
	protocolType string
	protocol     *string
	leader       string
	// members is in the order of joining, which decides ties.
	members []*member
	// common are the protocols that all members know.
	common commonProtocols
	// pendingJoin are the ids given out that have not joined yet (KIP-394).
	pendingJoin map[string]struct{}
	// pendingSync are the members whose SyncGroup is still expected.
	pendingSync map[string]struct{}
	// syncGeneration is the generation for which the sync timer was set.
	syncGeneration int32
	// newMember, initialDelayMs and initialRemainingMs stretch the first
	// rebalance of an empty group while members keep arriving.
	newMember                          bool
	initialDelayMs, initialRemainingMs int32
	// topics is what the members subscribe to, nil when not known.
	topics map[string]struct{}
}

// member is one member of a classic group.
type member struct {
	id                                   string
	instanceID                           *string
	clientID, clientHost                 string
	rebalanceTimeoutMs, sessionTimeoutMs int32
	protocols                            []kmsg.JoinGroupRequestProtocol
	assignment                           []byte
	// join and sync are the calls that wait, 0 for none.
	join, sync uint64
	// isNew is set until the first JoinGroup was answered.
	isNew bool
}

func newClassic(id string) *classic {
	return &classic{id: id, pendingJoin: map[string]struct{}{}, pendingSync: map[string]struct{}{}}
}

// fromStored is a group as a coordinator finds it after loading.
func fromStored(id string, st *stored) *classic {
	g := newClassic(id)
	v := st.metadata
	if v == nil {
		g.stateTimestampMs = -1
		return g
	}
	g.generation, g.protocolType, g.protocol = v.Generation, v.ProtocolType, v.Protocol
	g.stateTimestampMs = v.CurrentStateTimestamp
	if v.Leader != nil {
		g.leader = *v.Leader
	}
	var protocol string
	if v.Protocol != nil {
		protocol = *v.Protocol
	}
	for i := range v.Members {
		sm := &v.Members[i]
		m := &member{
			id: sm.MemberID, instanceID: sm.InstanceID, clientID: sm.ClientID, clientHost: sm.ClientHost,
			rebalanceTimeoutMs: sm.RebalanceTimeoutMillis, sessionTimeoutMs: sm.SessionTimeoutMillis,
			protocols:  []kmsg.JoinGroupRequestProtocol{{Name: protocol, Metadata: sm.Subscription}},
			assignment: sm.Assignment,
		}
		g.members = append(g.members, m)
		g.common.add(m.protocols)
		g.state = Stable
	}
	g.topics = g.subscribedTopics()
	return g
}

func (g *classic) member(id string) *member {
	for _, m := range g.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

func (g *classic) static(instanceID string) *member {
	for _, m := range g.members {
		if m.instanceID != nil && *m.instanceID == instanceID {
			return m
		}
	}
	return nil
}

func (g *classic) isLeader(m *member) bool { return g.leader == m.id }

func (g *classic) transition(to State, nowMs int64) {
	g.previous, g.state, g.stateTimestampMs = g.state, to, nowMs
}

// add takes a member in. The first one decides the protocol type.
func (g *classic) add(m *member, protocolType string) {
	delete(g.pendingJoin, m.id)
	if len(g.members) == 0 {
		g.leader, g.protocolType = m.id, protocolType
	}
	g.members = append(g.members, m)
	g.common.add(m.protocols)
}

// drop removes a member without answering its calls.
func (g *classic) drop(id string) {
	if m := g.member(id); m != nil {
		g.members = slices.DeleteFunc(g.members, func(o *member) bool { return o == m })
		g.common.remove(m.protocols)
	}
	delete(g.pendingJoin, id)
	delete(g.pendingSync, id)
	if g.leader == id {
		g.leader = ""
		if len(g.members) > 0 {
			g.leader = g.members[0].id
		}
	}
}

func (g *classic) awaitingJoin() (n int) {
	for _, m := range g.members {
		if m.join != 0 {
			n++
		}
	}
	return n
}

func (g *classic) allJoined() bool {
	return len(g.pendingJoin) == 0 && g.awaitingJoin() == len(g.members)
}

// electLeader makes a member that rejoined the leader, the old one if it did. It
// reports false when nobody rejoined.
func (g *classic) electLeader() bool {
	if l := g.member(g.leader); l != nil && l.join != 0 {
		return true
	}
	for _, m := range g.members {
		if m.join != 0 {
			g.leader = m.id
			return true
		}
	}
	return false
}

// rebalanceTimeoutMs is the longest of its members'.
func (g *classic) rebalanceTimeoutMs() (ms int32) {
	for _, m := range g.members {
		ms = max(ms, m.rebalanceTimeoutMs)
	}
	return ms
}

// supports tells whether a joining member has the group's protocol type and a
// protocol that every member knows.
func (g *classic) supports(protocolType string, protocols []kmsg.JoinGroupRequestProtocol) bool {
	if g.state == Empty {
		return protocolType != "" && len(protocols) > 0
	}
	if g.protocolType != protocolType {
		return false
	}
	return g.common.hasOne(protocols)
}

// selectProtocol is the protocol with the most first votes among those that all
// members know; the earliest vote decides a tie.
func (g *classic) selectProtocol() string {
	votes := map[string]int{}
	for _, m := range g.members {
		votes[m.vote(&g.common)]++
	}
	var best string
	for _, m := range g.members {
		if name := m.vote(&g.common); best == "" || votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// vote is the first of the member's protocols that all know.
func (m *member) vote(common *commonProtocols) string {
	for i := range m.protocols {
		if common.has(m.protocols[i].Name) {
			return m.protocols[i].Name
		}
	}
	return ""
}

func (m *member) metadata(protocol string) ([]byte, bool) {
	for i := range m.protocols {
		if m.protocols[i].Name == protocol {
			return m.protocols[i].Metadata, true
		}
	}
	return nil, false
}

// matches tells whether a member sends the protocols it already has.
func (m *member) matches(protocols []kmsg.JoinGroupRequestProtocol) bool {
	return equalProtocols(m.protocols, protocols)
}

func equalProtocols(a, b []kmsg.JoinGroupRequestProtocol) bool {
	return slices.EqualFunc(a, b, func(a, b kmsg.JoinGroupRequestProtocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// metadataRecord is the group as it goes into the log.
func (g *classic) metadataRecord() Record {
	v := kmsg.NewGroupMetadataValue()
	v.Version = groupValueVersion
	v.ProtocolType, v.Generation, v.Protocol = g.protocolType, g.generation, g.protocol
	v.CurrentStateTimestamp = g.stateTimestampMs
	if g.leader != "" {
		leader := g.leader
		v.Leader = &leader
	}
	var protocol string
	if g.protocol != nil {
		protocol = *g.protocol
	}
	for _, m := range g.members {
		sm := kmsg.NewGroupMetadataValueMember()
		sm.MemberID, sm.InstanceID, sm.ClientID, sm.ClientHost = m.id, m.instanceID, m.clientID, m.clientHost
		sm.RebalanceTimeoutMillis, sm.SessionTimeoutMillis = m.rebalanceTimeoutMs, m.sessionTimeoutMs
		sm.Subscription, _ = m.metadata(protocol)
		sm.Assignment = m.assignment
		v.Members = append(v.Members, sm)
	}
	return Record{Group: g.id, Metadata: &v}
}
