package group

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// typeConsumer is how the kind of group appears in ListGroups.
const typeConsumer = "consumer"

// The kinds of members in ConsumerGroupDescribe.
const (
	memberTypeClassic  = 0
	memberTypeConsumer = 1
)

func (s *step) describeConsumer(id string) *kmsg.ConsumerGroupDescribeResponseGroup {
	resp := kmsg.NewConsumerGroupDescribeResponseGroup()
	resp.Group = id
	g := s.consumer(id)
	if g == nil {
		msg := fmt.Sprintf("Group %s not found.", id)
		switch {
		case id == "":
			resp.ErrorCode = kerr.InvalidGroupID.Code
			return &resp
		case s.view(id) != nil:
			msg = fmt.Sprintf("Group %s is not a consumer group.", id)
		}
		resp.ErrorCode, resp.ErrorMessage = kerr.GroupIDNotFound.Code, &msg
		return &resp
	}
	resp.State, resp.Epoch, resp.AssignmentEpoch = g.state().String(), g.epoch, g.targetEpoch
	resp.AssignorName = g.assignorName(s.cfg.Consumer.Assignors[0])
	for _, memberID := range g.memberIDs() {
		m := g.members[memberID]
		rm := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		rm.MemberID, rm.InstanceID, rm.RackID, rm.MemberEpoch = m.id, m.instanceID, m.rackID, m.epoch
		rm.ClientID, rm.ClientHost = m.clientID, m.clientHost
		regex := m.regex
		rm.SubscribedTopics, rm.SubscribedTopicRegex = m.topics, &regex
		both := m.assigned.partitions()
		for topic, partitions := range m.revoking.partitions() {
			both[topic] = append(both[topic], partitions...)
		}
		rm.Assignment = described(s.world.Image, both)
		rm.TargetAssignment = described(s.world.Image, g.target[memberID])
		rm.MemberType = memberTypeConsumer
		if m.classic != nil {
			rm.MemberType = memberTypeClassic
		}
		resp.Members = append(resp.Members, rm)
	}
	return &resp
}

// described names the topics of an assignment; those that are gone are left out.
func described(img *metadata.Image, a assignor.Assignment) kmsg.Assignment {
	out := kmsg.NewAssignment()
	for _, id := range a.TopicIDs() {
		if t, ok := img.TopicByID(id); ok {
			tp := kmsg.NewAssignmentTopicPartition()
			tp.TopicID, tp.Topic, tp.Partitions = id, t.Name, a[id]
			out.TopicPartitions = append(out.TopicPartitions, tp)
		}
	}
	return out
}

// forgetConsumer writes the tombstones of a consumer group without members.
func (s *step) forgetConsumer(id string, g *consumerGroup) {
	for _, tombstone := range g.tombstones() {
		s.record(Record{Group: id, Consumer: tombstone})
	}
	delete(s.soft.consumers, id)
}
