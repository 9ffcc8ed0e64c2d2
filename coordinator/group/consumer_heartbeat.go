package group

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// refusal is an error for the client and what it should know about it.
type refusal struct {
	code *kerr.Error
	why  string
}

func refuse(code *kerr.Error, format string, args ...any) *refusal {
	return &refusal{code: code, why: fmt.Sprintf(format, args...)}
}

// clientMemberIDs is the ConsumerGroupHeartbeat version whose clients make their
// own member ids.
const clientMemberIDs = 1

func (s *step) consumerHeartbeat(e Event, r *kmsg.ConsumerGroupHeartbeatRequest) {
	resp, err := s.consumerBeat(e, r)
	if err != nil {
		// Nothing is decided; a member that was heard of all the same keeps its
		// session as it was.
		s.out = Out{}
		resp = HeartbeatError(err.code, err.why)
	}
	s.answer(e.Call, resp)
}

// HeartbeatError is the response to a ConsumerGroupHeartbeat that failed.
func HeartbeatError(code *kerr.Error, why string) *kmsg.ConsumerGroupHeartbeatResponse {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.ErrorCode = code.Code
	if why != "" {
		resp.ErrorMessage = &why
	}
	return resp
}

func (s *step) consumerBeat(e Event, r *kmsg.ConsumerGroupHeartbeatRequest) (*kmsg.ConsumerGroupHeartbeatResponse, *refusal) {
	if err := checkHeartbeat(&s.cfg, e.Client, r); err != nil {
		return nil, err
	}
	if r.MemberEpoch == leaveEpoch || r.MemberEpoch == staticLeaveEpoch {
		return s.consumerLeave(r)
	}
	c, err := s.changeConsumer(r.Group, r.MemberEpoch == 0)
	if err != nil {
		return nil, err
	}
	if err := c.admit(r.MemberID, r.InstanceID); err != nil {
		return nil, err
	}
	id := r.MemberID
	if id == "" {
		id = s.newID()
	}
	m, err := c.memberOf(r, id)
	if err != nil {
		return nil, err
	}
	now := *m
	now.memberMetadata = m.heardFrom(e.Client, r)
	if err := c.checkRegex(m.regex, now.regex); err != nil {
		return nil, err
	}
	// The preference is compared with the one before the member was heard.
	preferred := c.g.assignorName(s.cfg.Consumer.Assignors[0])
	subscription := c.update(m, &now)
	if preferred != c.g.assignorName(s.cfg.Consumer.Assignors[0]) {
		c.bump = true
	}
	c.refreshEpoch()
	c.divide()
	after, err := c.reconcile(now.id, subscription, heldTopics(r.Topics))
	if err == nil && e.Unwritable && len(s.out.Records) > 0 {
		// The member is as it was, and alive; what there is to decide has time.
		s.out = Out{}
		s.expectConsumer(r.Group, m)
		return c.heartbeatAnswer(r, m, m), nil
	}
	if err == nil {
		err = c.settle()
	}
	if err != nil {
		return nil, err
	}
	s.expectConsumer(r.Group, after)
	return c.heartbeatAnswer(r, m, after), nil
}

// checkHeartbeat looks at what a request says by itself.
func checkHeartbeat(cfg *Config, who Client, r *kmsg.ConsumerGroupHeartbeatRequest) *refusal {
	if r.Version >= clientMemberIDs || r.MemberEpoch > 0 || r.MemberEpoch == leaveEpoch {
		if blank(&r.MemberID) {
			return refuse(kerr.InvalidRequest, "MemberId can't be empty.")
		}
	}
	switch {
	case blank(&r.Group):
		return refuse(kerr.InvalidRequest, "GroupId can't be empty.")
	case r.InstanceID != nil && blank(r.InstanceID):
		return refuse(kerr.InvalidRequest, "InstanceId can't be empty.")
	case r.RackID != nil && blank(r.RackID):
		return refuse(kerr.InvalidRequest, "RackId can't be empty.")
	case r.MemberEpoch < staticLeaveEpoch:
		return refuse(kerr.InvalidRequest, "MemberEpoch is invalid.")
	case r.MemberEpoch == staticLeaveEpoch && r.InstanceID == nil:
		return refuse(kerr.InvalidRequest, "InstanceId can't be null.")
	}
	if r.MemberEpoch == 0 {
		switch {
		case r.RebalanceTimeoutMillis == -1:
			return refuse(kerr.InvalidRequest, "RebalanceTimeoutMs must be provided in first request.")
		case r.Topics == nil || len(r.Topics) > 0:
			return refuse(kerr.InvalidRequest, "TopicPartitions must be empty when (re-)joining.")
		case r.SubscribedTopicNames == nil && r.SubscribedTopicRegex == nil:
			return refuse(kerr.InvalidRequest, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
		}
	}
	if a := r.ServerAssignor; a != nil && !slices.Contains(cfg.Consumer.Assignors, *a) {
		return refuse(kerr.UnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: %s.", *a, strings.Join(cfg.Consumer.Assignors, ", "))
	}
	for _, text := range []*string{&r.Group, &r.MemberID, r.InstanceID, r.RackID, r.SubscribedTopicRegex, &who.ID} {
		if text != nil && tooLong(*text) {
			return refuse(kerr.InvalidRequest, "A string of %d bytes is too long.", len(*text))
		}
	}
	if slices.ContainsFunc(r.SubscribedTopicNames, tooLong) {
		return refuse(kerr.InvalidRequest, "The name of a topic is too long.")
	}
	return nil
}

// blank is Java's notion of a string with nothing in it.
func blank(s *string) bool {
	return strings.TrimFunc(*s, func(r rune) bool { return r <= ' ' }) == ""
}

// admit holds a joining member against group.consumer.max.size.
func (c *change) admit(memberID string, instanceID *string) *refusal {
	if c.g.static(instanceID) != nil || c.g.members[memberID] != nil || len(c.g.members) < c.cfg.Consumer.MaxSize {
		return nil
	}
	return refuse(kerr.GroupMaxSizeReached, "Group %s has %d members, which is the most it takes.", c.id, len(c.g.members))
}

// memberOf is the member that a heartbeat comes from: a new one, one that the
// group has, or one that takes the place of a static member that had left.
func (c *change) memberOf(r *kmsg.ConsumerGroupHeartbeatRequest, id string) (*consumerMember, *refusal) {
	joins := r.MemberEpoch == 0
	if r.InstanceID == nil {
		m := c.g.members[id]
		switch {
		case m == nil && joins:
			return newConsumerMember(id), nil
		case m == nil:
			return nil, c.unknown(id)
		}
		return m, m.mayBe(r)
	}
	old := c.g.static(r.InstanceID)
	switch {
	case old == nil && joins:
		if m := c.g.members[id]; m != nil {
			return m, nil
		}
		return newConsumerMember(id), nil
	case old == nil:
		return nil, refuse(kerr.UnknownMemberID, "No member of group %s has instance id %s.", c.id, *r.InstanceID)
	case joins:
		if old.classic == nil && old.epoch != staticLeaveEpoch {
			return nil, refuse(kerr.UnreleasedInstanceID, "Instance id %s belongs to member %s, which has not left.", *r.InstanceID, old.id)
		}
		return c.replace(old, id), nil
	case old.id != id:
		return nil, refuse(kerr.FencedInstanceID, "Instance id %s belongs to member %s now.", *r.InstanceID, old.id)
	}
	return old, old.mayBe(r)
}

func (c *change) unknown(memberID string) *refusal {
	return refuse(kerr.UnknownMemberID, "Group %s has no member %s.", c.id, memberID)
}

// mayBe holds the epoch of a heartbeat against the member's. One that has missed
// the last answer says its previous epoch, and nothing that it has not.
func (m *consumerMember) mayBe(r *kmsg.ConsumerGroupHeartbeatRequest) *refusal {
	switch {
	case r.MemberEpoch == 0, r.MemberEpoch == m.epoch:
		return nil
	case r.MemberEpoch < m.epoch && r.MemberEpoch == m.previousEpoch && r.Topics != nil && m.assigned.hasAll(heldTopics(r.Topics)):
		return nil
	}
	return refuse(kerr.FencedMemberEpoch, "Member %s is at epoch %d and not %d: it must give up its partitions and join again.", m.id, m.epoch, r.MemberEpoch)
}

// heardFrom is what a member is after a heartbeat, in which it leaves out what has
// not changed. It uses the new protocol from here on.
func (m *consumerMember) heardFrom(who Client, r *kmsg.ConsumerGroupHeartbeatRequest) memberMetadata {
	v := m.memberMetadata
	v.clientID, v.clientHost, v.classic = who.ID, who.Host, nil
	if r.InstanceID != nil {
		v.instanceID = r.InstanceID
	}
	if r.RackID != nil {
		v.rackID = r.RackID
	}
	if r.RebalanceTimeoutMillis != -1 {
		v.rebalanceTimeoutMs = r.RebalanceTimeoutMillis
	}
	if r.ServerAssignor != nil {
		v.assignor = r.ServerAssignor
	}
	if r.SubscribedTopicNames != nil {
		v.topics = sortedNames(r.SubscribedTopicNames)
	}
	if r.SubscribedTopicRegex != nil {
		v.regex = *r.SubscribedTopicRegex
	}
	return v
}

// heartbeatAnswer tells the member's partitions when they have changed or when the
// member has told everything about itself.
func (c *change) heartbeatAnswer(r *kmsg.ConsumerGroupHeartbeatRequest, before, after *consumerMember) *kmsg.ConsumerGroupHeartbeatResponse {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	id := after.id
	resp.MemberID, resp.MemberEpoch = &id, after.epoch
	resp.HeartbeatIntervalMillis = c.heartbeatIntervalMs(c.id)
	full := r.RebalanceTimeoutMillis != -1 && (r.SubscribedTopicNames != nil || r.SubscribedTopicRegex != nil) && r.Topics != nil
	if r.MemberEpoch != 0 && !full && before.assigned.equal(after.assigned) {
		return resp
	}
	a := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
	partitions := after.assigned.partitions()
	for _, topic := range partitions.TopicIDs() {
		t := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
		t.TopicID, t.Partitions = topic, partitions[topic]
		a.Topics = append(a.Topics, t)
	}
	resp.Assignment = &a
	return resp
}

// held is the partitions that a member says it has; nil when it says nothing.
type held map[assignor.TopicID][]int32

func heldTopics(topics []kmsg.ConsumerGroupHeartbeatRequestTopic) held {
	if topics == nil {
		return nil
	}
	h := held{}
	for i := range topics {
		h[topics[i].TopicID] = append(h[topics[i].TopicID], topics[i].Partitions...)
	}
	return h
}

// hasAll tells whether all that a member says it has is among its partitions.
func (o owned) hasAll(h held) bool {
	for topic, partitions := range h {
		for _, p := range partitions {
			if !o.has(topic, p) {
				return false
			}
		}
	}
	return true
}

// any tells whether a member may still have any of some partitions: it says so, or
// it says nothing.
func (h held) any(o owned) bool {
	if h == nil {
		return true
	}
	for topic, partitions := range h {
		for _, p := range partitions {
			if o.has(topic, p) {
				return true
			}
		}
	}
	return false
}
