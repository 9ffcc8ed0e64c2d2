package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// str is a pointer to a string, which many optional fields want.
func str(s string) *string { return &s }

// topic makes a topic of its own for a case and returns its name once it can be written to.
func (s *side) topic(c *Case, partitions int32, configs ...string) string {
	name := s.name(c, "t")
	s.makeTopic(name, partitions, configs...)
	return name
}

func (s *side) makeTopic(name string, partitions int32, configs ...string) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 10000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	for i := 0; i+1 < len(configs); i += 2 {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: str(configs[i+1])})
	}
	req.Topics = append(req.Topics, t)
	resp := must[*kmsg.CreateTopicsResponse](s, req)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		panic(caseFault{fmt.Errorf("%s: create %s: error %d %v", s.kind, name, code, resp.Topics[0].ErrorMessage)})
	}
	s.remember(name, resp.Topics[0].TopicID)
	for p := range partitions {
		s.whenServed(name, p)
	}
}

func (s *side) remember(topic string, id [16]byte) { s.topicIDs[id], s.ids[topic] = topic, id }

// whenServed polls until the partition's leader answers; Kafka's does so a moment after the topic is made.
func (s *side) whenServed(topic string, partition int32) {
	for range 500 {
		resp := must[*kmsg.ListOffsetsResponse](s, listOffsets(7, topic, partition, -1))
		if resp.Topics[0].Partitions[0].ErrorCode == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	panic(caseFault{fmt.Errorf("%s: %s-%d is not served", s.kind, topic, partition)})
}

func listOffsets(version int16, topic string, partition int32, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID, req.TimeoutMillis = version, -1, 1000
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, timestamp, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// produce writes a batch and returns its base offset.
func (s *side) produce(topic string, partition int32, records []byte) int64 {
	resp := must[*kmsg.ProduceResponse](s, produceRequest(9, topic, partition, records))
	p := resp.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		panic(caseFault{fmt.Errorf("%s: produce to %s: error %d", s.kind, topic, p.ErrorCode)})
	}
	return p.BaseOffset
}

func produceRequest(version int16, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, -1, 10000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	t.Partitions = append(t.Partitions, kmsg.ProduceRequestTopicPartition{Partition: partition, Records: records})
	req.Topics = append(req.Topics, t)
	return req
}

// three is the batch that most cases read back: three records a second apart.
func (s *side) three(topic string) {
	s.produce(topic, 0, batch{records: plainRecords(3)}.bytes())
}

// coordinator waits until a key's coordinator serves, which makes the internal topic on the first use.
func (s *side) coordinator(kind int8, key string) {
	if s.without[kind] {
		panic(caseFault{fmt.Errorf("%s: no coordinator for %s", s.kind, key)})
	}
	for range 1000 {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version, req.CoordinatorType, req.CoordinatorKey = 3, kind, key
		resp := must[*kmsg.FindCoordinatorResponse](s, req)
		if resp.ErrorCode == 0 && s.coordinates(kind, key) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.without[kind] = true // one wait is enough
	panic(caseFault{fmt.Errorf("%s: no coordinator for %s", s.kind, key)})
}

func (s *side) coordinates(kind int8, key string) bool {
	if kind == 1 {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{key}
		code := must[*kmsg.DescribeTransactionsResponse](s, req).TransactionStates[0].ErrorCode
		return code != errCoordinatorLoading && code != errNotCoordinator && code != errCoordinatorNotAvailable
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = 7, key
	return must[*kmsg.OffsetFetchResponse](s, req).ErrorCode == 0
}

const (
	errCoordinatorLoading      = 14
	errCoordinatorNotAvailable = 15
	errNotCoordinator          = 16
	errRebalanceInProgress     = 27
	errMemberIDRequired        = 79
)

// group is a name of a case's own whose coordinator serves.
func (s *side) group(c *Case) string {
	name := s.name(c, "g")
	s.coordinator(0, name)
	return name
}

// member is one joined member of a classic group.
type member struct {
	group, id  string
	generation int32
}

// join makes a stable classic group of one member that subscribes to a topic.
func (s *side) join(group, topic string, instance *string) member {
	join := joinRequest(group, topic, instance)
	join.Version = 5
	resp := must[*kmsg.JoinGroupResponse](s, join)
	if resp.ErrorCode == errMemberIDRequired {
		join.MemberID = resp.MemberID
		resp = must[*kmsg.JoinGroupResponse](s, join)
	}
	if resp.ErrorCode != 0 {
		panic(caseFault{fmt.Errorf("%s: join %s: error %d", s.kind, group, resp.ErrorCode)})
	}
	m := member{group, resp.MemberID, resp.Generation}
	sync := syncRequest(m)
	sync.Version, sync.InstanceID = 3, instance
	if code := must[*kmsg.SyncGroupResponse](s, sync).ErrorCode; code != 0 {
		panic(caseFault{fmt.Errorf("%s: sync %s: error %d", s.kind, group, code)})
	}
	return m
}

func joinRequest(group, topic string, instance *string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = group, 30000, 30000
	req.ProtocolType, req.InstanceID = "consumer", instance
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = []string{topic}
	req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: "range", Metadata: meta.AppendTo(nil)})
	return req
}

func syncRequest(m member) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	req.ProtocolType, req.Protocol = str("consumer"), str("range")
	assignment := kmsg.NewConsumerMemberAssignment()
	req.GroupAssignment = append(req.GroupAssignment,
		kmsg.SyncGroupRequestGroupAssignment{MemberID: m.id, MemberAssignment: assignment.AppendTo(nil)})
	return req
}

// commit commits one offset without a member.
func (s *side) commit(group, topic string, offset int64) {
	req := commitRequest(group, topic, 0, offset)
	req.Version = 8
	if code := must[*kmsg.OffsetCommitResponse](s, req).Topics[0].Partitions[0].ErrorCode; code != 0 {
		panic(caseFault{fmt.Errorf("%s: commit for %s: error %d", s.kind, group, code)})
	}
}

func commitRequest(group, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.Metadata = partition, offset, str("a note")
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}
