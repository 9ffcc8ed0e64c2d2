package group

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// simClient is one consumer: what it believes.
type simClient struct {
	name     string
	instance *string
	// classic clients use JoinGroup, SyncGroup and Heartbeat.
	classic bool
	topics  []string
	regex   string

	memberID string
	epoch    int32
	owned    map[ownedPartition]bool
	// told says that the client must tell everything with its next heartbeat.
	told bool
	// synced says that a classic client is between rebalances.
	synced bool
	gone   bool
	// calls are a classic client's waiting requests.
	join, sync uint64
}

// turn lets a client do what is due; with lost it does not hear the answer.
func (c *simClient) turn(w *groupWorld, lost bool) {
	if c.classic {
		c.classicTurn(w)
		return
	}
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.MemberEpoch, r.InstanceID = 1, simGroup, c.memberID, c.epoch, c.instance
	if c.epoch == 0 {
		r.RebalanceTimeoutMillis, r.Topics = 10_000, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	} else {
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		for topic, partitions := range byTopic(c.owned) {
			r.Topics = append(r.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: topic, Partitions: partitions})
		}
	}
	if c.epoch == 0 || c.told {
		r.SubscribedTopicNames, r.SubscribedTopicRegex = append([]string{}, c.topics...), &c.regex
	}
	resp, _ := w.call(c, r).(*kmsg.ConsumerGroupHeartbeatResponse)
	if lost {
		return
	}
	switch kerr.ErrorForCode(resp.ErrorCode) {
	case nil:
		c.told = false
		c.epoch = resp.MemberEpoch
		if resp.Assignment != nil {
			c.take(resp.Assignment)
		}
	case kerr.FencedMemberEpoch, kerr.UnknownMemberID, kerr.GroupIDNotFound:
		c.epoch = 0
		clear(c.owned)
	case kerr.FencedInstanceID:
		c.gone = true
	case kerr.UnreleasedInstanceID:
	default:
		w.t.Fatalf("%s: %v %v", c.name, kerr.ErrorForCode(resp.ErrorCode), deref(resp.ErrorMessage))
	}
}

// take gives back at once what is not assigned any more, and consumes the rest.
func (c *simClient) take(a *kmsg.ConsumerGroupHeartbeatResponseAssignment) {
	clear(c.owned)
	for _, topic := range a.Topics {
		for _, p := range topic.Partitions {
			c.owned[ownedPartition{topic.TopicID, p}] = true
		}
	}
}

func byTopic(owned map[ownedPartition]bool) assignor.Assignment {
	a := assignor.Assignment{}
	for at := range owned {
		a[at.topic] = append(a[at.topic], at.partition)
	}
	for topic := range a {
		slices.Sort(a[topic])
	}
	return a
}

// classicTurn joins, syncs or beats, as a consumer with the cooperative protocol
// does: it keeps what it has while it joins.
func (c *simClient) classicTurn(w *groupWorld) {
	switch {
	case c.join != 0 && w.answers[c.join] == nil, c.sync != 0 && w.answers[c.sync] == nil:
		return // it waits
	case c.join != 0:
		c.joined(w, w.answers[c.join].(*kmsg.JoinGroupResponse))
	case c.sync != 0:
		c.assigned(w, w.answers[c.sync].(*kmsg.SyncGroupResponse))
	case !c.synced:
		r := kmsg.NewPtrJoinGroupRequest()
		r.Version, r.Group, r.MemberID, r.InstanceID, r.ProtocolType = 9, simGroup, c.memberID, c.instance, "consumer"
		r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 10_000, 20_000
		var owned []kmsg.ConsumerMemberMetadataOwnedPartition
		for topic, partitions := range byTopic(c.owned) {
			if t, ok := w.h.world.Image.TopicByID(topic); ok {
				owned = append(owned, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: t.Name, Partitions: partitions})
			}
		}
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription(strings.Join(c.topics, "+"), owned...)}}
		c.join = w.h.call(c.name, r)
		w.check()
	default:
		r := kmsg.NewPtrHeartbeatRequest()
		r.Version, r.Group, r.MemberID, r.InstanceID, r.Generation = 4, simGroup, c.memberID, c.instance, c.epoch
		c.failed(w.call(c, r).(*kmsg.HeartbeatResponse).ErrorCode)
	}
}

func (c *simClient) joined(w *groupWorld, resp *kmsg.JoinGroupResponse) {
	c.join = 0
	if resp.ErrorCode != 0 {
		if resp.ErrorCode == kerr.MemberIDRequired.Code {
			c.memberID = resp.MemberID
			return
		}
		c.failed(resp.ErrorCode)
		return
	}
	c.memberID, c.epoch = resp.MemberID, resp.Generation
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.Group, r.MemberID, r.InstanceID, r.Generation = 5, simGroup, c.memberID, c.instance, c.epoch
	r.ProtocolType, r.Protocol = resp.ProtocolType, resp.Protocol
	// A leader gives everything to the first member, in a classic group.
	if resp.LeaderID == c.memberID {
		a := kmsg.NewConsumerMemberAssignment()
		if t, ok := w.h.world.Image.Topic("a"); ok {
			at := kmsg.NewConsumerMemberAssignmentTopic()
			at.Topic = "a"
			for p := range t.Partitions {
				at.Partitions = append(at.Partitions, int32(p))
			}
			a.Topics = append(a.Topics, at)
		}
		for i, m := range resp.Members {
			if i > 0 {
				a.Topics = nil
			}
			r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.MemberID, MemberAssignment: a.AppendTo(nil)})
		}
	}
	c.sync = w.h.call(c.name, r)
	w.check()
}

func (c *simClient) assigned(w *groupWorld, resp *kmsg.SyncGroupResponse) {
	c.sync = 0
	if resp.ErrorCode != 0 {
		c.failed(resp.ErrorCode)
		return
	}
	c.synced = true
	clear(c.owned)
	var a kmsg.ConsumerMemberAssignment
	if err := a.ReadFrom(resp.MemberAssignment); err != nil {
		w.t.Fatalf("%s: assignment %q: %v", c.name, resp.MemberAssignment, err)
	}
	for _, topic := range a.Topics {
		t, _ := w.h.world.Image.Topic(topic.Topic)
		for _, p := range topic.Partitions {
			c.owned[ownedPartition{t.ID, p}] = true
		}
	}
}

// failed goes back to joining.
func (c *simClient) failed(code int16) {
	switch kerr.ErrorForCode(code) {
	case nil:
		return
	case kerr.UnknownMemberID:
		c.memberID = ""
		clear(c.owned)
	case kerr.IllegalGeneration:
		clear(c.owned)
	case kerr.FencedInstanceID:
		c.gone = true
	}
	c.synced = false
}
