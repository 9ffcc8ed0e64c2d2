package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// Kafka's numbers of the kinds of an election (KIP-460).
const (
	electPreferred = 0
	electUnclean   = 1
)

// What Kafka says of partitions that keep their leader, or have none.
var (
	errNotNeeded    = protocol.Errorf(kerr.ElectionNotNeeded, "Leader election not needed for topic partition.")
	errNotPreferred = protocol.Errorf(kerr.PreferredLeaderNotAvailable, "The preferred leader was not available.")
	errNotEligible  = protocol.Errorf(kerr.EligibleLeadersNotAvailable, "Eligible topic partition leaders are not available.")
)

// electLeaders elects leaders where there is another one to elect. Without a list
// of topics it goes over all, and leaves out the partitions that need none.
func (m *Machine) electLeaders(img *metadata.Image, req *kmsg.ElectLeadersRequest) Decision {
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	d := Decision{Response: resp}
	all := req.Topics == nil
	topics := req.Topics
	known := req.ElectionType == electPreferred || req.ElectionType == electUnclean
	if !known {
		resp.ErrorCode = kerr.InvalidRequest.Code
	} else if all {
		topics = everyPartition(img)
	}
	decided := map[*metadata.Partition]bool{}
	for _, t := range topics {
		out := kmsg.NewElectLeadersResponseTopic()
		out.Topic = t.Topic
		for _, index := range t.Partitions {
			p, rec, err := electIn(img, t.Topic, index, req.ElectionType)
			if err == errNotNeeded && all {
				continue
			}
			if rec != nil && !decided[p] {
				decided[p] = true
				d.Records = append(d.Records, rec)
			}
			row := kmsg.NewElectLeadersResponseTopicPartition()
			row.Partition = index
			row.ErrorCode, row.ErrorMessage = codeAndText(err)
			out.Partitions = append(out.Partitions, row)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return d
}

func everyPartition(img *metadata.Image) []kmsg.ElectLeadersRequestTopic {
	topics := make([]kmsg.ElectLeadersRequestTopic, 0, img.TopicCount())
	for t := range img.Topics() {
		topic := kmsg.ElectLeadersRequestTopic{Topic: t.Name, Partitions: make([]int32, len(t.Partitions))}
		for i := range topic.Partitions {
			topic.Partitions[i] = int32(i)
		}
		topics = append(topics, topic)
	}
	return topics
}

// electIn decides one partition; without an error rec makes the new leader.
func electIn(img *metadata.Image, topic string, index int32, kind int8) (*metadata.Partition, metadata.Record, error) {
	if kind != electPreferred && kind != electUnclean {
		return nil, nil, protocol.Errorf(kerr.InvalidRequest, "Unknown election type %d", kind)
	}
	t, ok := img.Topic(topic)
	if !ok {
		return nil, nil, protocol.Errorf(kerr.UnknownTopicOrPartition, "No such topic as %s", topic)
	}
	p, ok := t.Partition(index)
	if !ok {
		return nil, nil, protocol.Errorf(kerr.UnknownTopicOrPartition, "No such partition as %s-%d", topic, index)
	}
	change := &metadata.PartitionChangeRecord{TopicID: t.ID, Index: index}
	if kind == electPreferred {
		preferred := int32(-1)
		if len(p.Replicas) > 0 {
			preferred = p.Replicas[0]
		}
		switch {
		case p.Leader == preferred && p.Leader >= 0:
			return p, nil, errNotNeeded
		case !live(img, preferred) || !slices.Contains(p.ISR, preferred):
			return p, nil, errNotPreferred
		}
		change.Leader = &preferred
		return p, change, nil
	}
	if p.Leader >= 0 {
		return p, nil, errNotNeeded
	}
	// Whoever is in sync leads without a loss; else the first that lives does, and
	// what the others had more is lost: that is what was asked for.
	for _, id := range p.Replicas {
		if live(img, id) && slices.Contains(p.ISR, id) {
			change.Leader = &id
			return p, change, nil
		}
	}
	for _, id := range p.Replicas {
		if live(img, id) {
			change.Leader, change.ISR = &id, []int32{id}
			return p, change, nil
		}
	}
	return p, nil, errNotEligible
}

func live(img *metadata.Image, id int32) bool {
	b, ok := img.Broker(id)
	return ok && b.Live()
}
