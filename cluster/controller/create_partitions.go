package controller

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

func (m *Machine) createPartitions(img *metadata.Image, req *kmsg.CreatePartitionsRequest) (Decision, error) {
	twice := duplicates(req.Topics, func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic })
	if err := checkAdditionalSum(img, req, twice); err != nil {
		return Decision{}, err
	}
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	d := Decision{Response: resp}
	for i := range req.Topics {
		t := &req.Topics[i]
		dup, seen := twice[t.Topic]
		if seen && !dup {
			continue
		}
		var records []metadata.Record
		var err error
		if dup {
			twice[t.Topic] = false
			err = protocol.Errorf(kerr.InvalidRequest, "Duplicate topic name.")
		} else {
			records, err = m.addPartitions(img, t)
		}
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = t.Topic
		out.ErrorCode, out.ErrorMessage = codeAndText(err)
		if err == kerr.UnknownTopicOrPartition {
			out.ErrorMessage = nil // as Kafka
		}
		resp.Topics = append(resp.Topics, out)
		d.Records = append(d.Records, records...)
	}
	if req.ValidateOnly {
		d.Records = nil
	}
	return d, nil
}

// checkAdditionalSum bounds the request as a whole, as Kafka does.
func checkAdditionalSum(img *metadata.Image, req *kmsg.CreatePartitionsRequest, twice map[string]bool) error {
	sum := 0
	for _, t := range req.Topics {
		have, ok := img.Topic(t.Topic)
		if !ok || twice[t.Topic] {
			continue
		}
		sum += max(int(t.Count)-len(have.Partitions), 0)
		if sum > maxPartitionsPerRequest {
			return protocol.Errorf(kerr.PolicyViolation, "Excessively large number of additional partitions per request.")
		}
	}
	return nil
}

func (m *Machine) addPartitions(img *metadata.Image, t *kmsg.CreatePartitionsRequestTopic) ([]metadata.Record, error) {
	topic, ok := img.Topic(t.Topic)
	if !ok {
		return nil, kerr.UnknownTopicOrPartition
	}
	have := len(topic.Partitions)
	if int(t.Count) == have {
		return nil, protocol.Errorf(kerr.InvalidPartitions, "Topic already has %d partition(s).", have)
	}
	if int(t.Count) < have {
		return nil, protocol.Errorf(kerr.InvalidPartitions,
			"The topic %s currently has %d partition(s); %d would not be an increase.", t.Topic, have, t.Count)
	}
	additional := int(t.Count) - have
	factor := len(topic.Partitions[0].Replicas)
	placements, err := m.placeAdditional(img, t, have, additional, factor)
	if err != nil {
		return nil, err
	}
	records := make([]metadata.Record, len(placements))
	for i, p := range placements {
		records[i] = newPartition(topic.ID, int32(have+i), p)
	}
	return records, nil
}

func (m *Machine) placeAdditional(img *metadata.Image, t *kmsg.CreatePartitionsRequestTopic, have, additional, factor int) ([]placement, error) {
	// A null assignment leaves the choice to us; an empty one does not.
	if t.Assignment == nil {
		return m.place(img, additional, factor)
	}
	if len(t.Assignment) != additional {
		return nil, protocol.Errorf(kerr.InvalidReplicaAssignment,
			"Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", additional, len(t.Assignment))
	}
	placements := make([]placement, additional)
	for i, a := range t.Assignment {
		p, err := checkAssignment(img, int32(have+i), a.Replicas, factor)
		if err != nil {
			return nil, err
		}
		placements[i] = p
	}
	return placements, nil
}
