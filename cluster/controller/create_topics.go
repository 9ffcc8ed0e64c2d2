package controller

import (
	"encoding/binary"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

const (
	// maxPartitionsPerRequest is Kafka's bound on what one request may make.
	maxPartitionsPerRequest = 10_000
	// metadataTopic is the name of Kafka's own metadata log.
	metadataTopic = "__cluster_metadata"
)

func (m *Machine) createTopics(img *metadata.Image, req *kmsg.CreateTopicsRequest) (Decision, error) {
	twice := duplicates(req.Topics, func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic })
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	if err := m.checkPartitionSum(req, twice); err != nil {
		return Decision{}, err
	}
	d := Decision{Response: resp}
	var refused []kmsg.CreateTopicsResponseTopic
	for i := range req.Topics {
		t := &req.Topics[i]
		switch dup, seen := twice[t.Topic]; {
		case dup:
			// Reported once, after the others.
			refused = append(refused, failedTopic(t.Topic, protocol.Errorf(kerr.InvalidRequest, "Duplicate topic name.")))
			twice[t.Topic] = false
		case seen:
		case t.Topic == metadataTopic:
			refused = append(refused, failedTopic(t.Topic,
				protocol.Errorf(kerr.InvalidRequest, "Creation of internal topic %s is prohibited.", metadataTopic)))
		default:
			made, records, err := m.createTopic(img, t)
			if err != nil {
				made = failedTopic(t.Topic, err)
			}
			resp.Topics = append(resp.Topics, made)
			d.Records = append(d.Records, records...)
		}
	}
	resp.Topics = append(resp.Topics, refused...)
	if req.ValidateOnly {
		d.Records = nil
	}
	return d, nil
}

// checkPartitionSum bounds the request as a whole, as Kafka does.
func (m *Machine) checkPartitionSum(req *kmsg.CreateTopicsRequest, twice map[string]bool) error {
	sum := 0
	for _, t := range req.Topics {
		switch {
		case twice[t.Topic]:
		case len(t.ReplicaAssignment) > 0:
			sum += len(t.ReplicaAssignment)
		case t.NumPartitions == -1:
			sum += int(m.cfg.NumPartitions)
		case t.NumPartitions > 0:
			sum += int(t.NumPartitions)
		}
		if sum > maxPartitionsPerRequest {
			return protocol.Errorf(kerr.PolicyViolation, "Excessively large number of partitions per request.")
		}
	}
	return nil
}

func failedTopic(name string, err error) kmsg.CreateTopicsResponseTopic {
	t := kmsg.NewCreateTopicsResponseTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	t.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	t.ErrorCode, t.ErrorMessage = codeAndText(err)
	return t
}

func (m *Machine) createTopic(img *metadata.Image, t *kmsg.CreateTopicsRequestTopic) (kmsg.CreateTopicsResponseTopic, []metadata.Record, error) {
	var none kmsg.CreateTopicsResponseTopic
	if err := checkNewName(img, t.Topic); err != nil {
		return none, nil, err
	}
	configs, err := m.newTopicConfigs(t)
	if err != nil {
		return none, nil, err
	}
	placements, err := m.placeTopic(img, t)
	if err != nil {
		return none, nil, err
	}
	id := m.newTopicID(img)
	records := []metadata.Record{&metadata.TopicRecord{Name: t.Topic, ID: id, Internal: protocol.IsInternalTopic(t.Topic)}}
	for _, name := range sortedKeys(configs) {
		records = append(records, &metadata.ConfigRecord{
			Resource: metadata.TopicResource(t.Topic), Name: name, Value: new(configs[name]),
		})
	}
	for i, p := range placements {
		records = append(records, newPartition(id, int32(i), p))
	}

	made := kmsg.NewCreateTopicsResponseTopic()
	made.Topic, made.TopicID = t.Topic, id
	made.NumPartitions, made.ReplicationFactor = int32(len(placements)), int16(len(placements[0].replicas))
	made.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	for _, c := range m.cfg.DescribeTopic(configs) {
		e := kmsg.NewCreateTopicsResponseTopicConfig()
		e.Name, e.Value, e.ReadOnly, e.Source, e.IsSensitive = c.Name, c.Value, c.ReadOnly, c.Source, c.Sensitive
		made.Configs = append(made.Configs, e)
	}
	return made, records, nil
}

// checkNewName refuses bad, taken and colliding names. Names that collide within
// one request are let through, as in Kafka.
func checkNewName(img *metadata.Image, name string) error {
	if _, taken := img.Topic(name); taken {
		return protocol.Errorf(kerr.TopicAlreadyExists, "Topic '%s' already exists.", name)
	}
	if err := protocol.CheckTopicName(name); err != nil {
		return err
	}
	if others := img.Collisions(name); len(others) > 0 {
		return protocol.Errorf(kerr.InvalidTopicException, "Topic '%s' collides with existing topic: %s", name, others[0])
	}
	return nil
}

func (m *Machine) newTopicConfigs(t *kmsg.CreateTopicsRequestTopic) (map[string]string, error) {
	configs := make(map[string]string, len(t.Configs))
	var null []string
	for _, c := range t.Configs {
		if c.Value == nil {
			null = append(null, c.Name)
			continue
		}
		if err := checkValueSize(*c.Value); err != nil {
			return nil, err
		}
		configs[c.Name] = *c.Value
	}
	if len(null) > 0 {
		return nil, protocol.Errorf(kerr.InvalidConfig, "Null value not supported for topic configs: %s", strings.Join(null, ","))
	}
	return configs, invalidConfig(m.cfg.Checker.CheckTopicConfigs(configs))
}

// newTopicID is a random (version 4) id that is not taken. As in Kafka its text
// does not begin with '-', which tools would take for an option.
func (m *Machine) newTopicID(img *metadata.Image) (id metadata.TopicID) {
	const dash = 62 // of base64's alphabet for URLs
	for {
		binary.BigEndian.PutUint64(id[:8], m.rand.Uint64())
		binary.BigEndian.PutUint64(id[8:], m.rand.Uint64())
		id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
		_, taken := img.TopicByID(id)
		_, was := img.RemovedTopic(id)
		if !taken && !was && id[0]>>2 != dash {
			return id
		}
	}
}

func newPartition(topic metadata.TopicID, index int32, p placement) *metadata.PartitionRecord {
	return &metadata.PartitionRecord{TopicID: topic, Partition: metadata.Partition{
		Index: index, Replicas: p.replicas, ISR: p.isr, Leader: p.isr[0],
	}}
}
