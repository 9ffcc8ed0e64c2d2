package controller

import (
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// ConfigChecker knows the keys of every kind of resource. An error that carries
// no Kafka code becomes INVALID_CONFIG.
type ConfigChecker interface {
	// CheckTopicConfigs checks everything that would be set on a topic.
	CheckTopicConfigs(all map[string]string) error
	// CheckBroker checks one key of one broker, or of all with broker "".
	CheckBroker(broker, name, value string) error
	// CheckGroup checks everything that would be set on a group.
	CheckGroup(all map[string]string) error
	CheckClientMetrics(name, value string) error
	// IsList says whether values can be appended to a key and taken from it.
	IsList(resourceType int8, name string) bool
	// Default is what a key that is not set stands at.
	Default(resourceType int8, name string) string
}

// ConfigEntry is one effective config of a topic, as CreateTopics echoes it.
type ConfigEntry struct {
	Name string
	// Value is nil for what is never shown.
	Value     *string
	ReadOnly  bool
	Sensitive bool
	// Source is Kafka's number.
	Source int8
}

// Config is what decisions depend on besides the image.
type Config struct {
	// NumPartitions and ReplicationFactor are what -1 stands for.
	NumPartitions     int32
	ReplicationFactor int16
	// TopicDeletionDisabled is delete.topic.enable=false.
	TopicDeletionDisabled bool
	// NodeID is the controller's own, for what it says.
	NodeID int32
	// Features are the levels that this version serves. A broker's registration
	// finalizes the highest of each that nobody has finalized yet.
	Features []FeatureRange
	Checker  ConfigChecker
	// DescribeTopic lists a topic's effective configs sorted by name.
	DescribeTopic func(overrides map[string]string) []ConfigEntry
}

// Machine decides requests. It changes nothing: a decision's records, applied to
// the image, are the only way in which metadata changes.
type Machine struct {
	cfg Config
	// rand chooses ids and places before anything is proposed.
	rand *rand.Rand
}

// NewMachine decides with cfg; rng is used only by Handle.
func NewMachine(cfg Config, rng *rand.Rand) *Machine { return &Machine{cfg: cfg, rand: rng} }

// Decision is what becomes of one request.
type Decision struct {
	// Records are one atomic batch.
	Records  []metadata.Record
	Response kmsg.Response
	// Finish, if set, fills in what only the image after the commit knows.
	Finish func(img *metadata.Image)
}

// maxRecordsPerRequest bounds what a client's request may lead to: what
// maxPartitionsPerRequest partitions need, and as many topics and configs.
const maxRecordsPerRequest = 2 * maxPartitionsPerRequest

// Handle decides req on the image img. An error refuses the request as a whole.
func (m *Machine) Handle(img *metadata.Image, req kmsg.Request) (Decision, error) {
	// A broker's partitions are as many as they are.
	switch req := req.(type) {
	case *kmsg.BrokerRegistrationRequest:
		return m.registerBroker(img, req), nil
	case *kmsg.UnregisterBrokerRequest:
		return m.unregisterBroker(img, req), nil
	}
	d, err := m.decide(img, req)
	if err == nil && len(d.Records) > maxRecordsPerRequest {
		return Decision{}, protocol.Errorf(kerr.PolicyViolation, "Unable to perform excessively large batch operation.")
	}
	return d, err
}

func (m *Machine) decide(img *metadata.Image, req kmsg.Request) (Decision, error) {
	switch req := req.(type) {
	case *kmsg.CreateTopicsRequest:
		return m.createTopics(img, req)
	case *kmsg.DeleteTopicsRequest:
		return m.deleteTopics(img, req)
	case *kmsg.CreatePartitionsRequest:
		return m.createPartitions(img, req)
	case *kmsg.IncrementalAlterConfigsRequest:
		return m.incrementalAlterConfigs(img, req), nil
	case *kmsg.AlterConfigsRequest:
		return m.alterConfigs(img, req), nil
	case *kmsg.AllocateProducerIDsRequest:
		return m.allocateProducerIDs(img, req), nil
	}
	return m.decideRare(img, req)
}

func (m *Machine) decideRare(img *metadata.Image, req kmsg.Request) (Decision, error) {
	switch req := req.(type) {
	case *kmsg.AlterClientQuotasRequest:
		return m.alterClientQuotas(img, req), nil
	case *kmsg.AlterUserSCRAMCredentialsRequest:
		return m.alterScram(img, req), nil
	case *kmsg.UpdateFeaturesRequest:
		return m.updateFeatures(img, req), nil
	case *kmsg.ElectLeadersRequest:
		return m.electLeaders(img, req), nil
	case *kmsg.AlterPartitionAssignmentsRequest:
		return m.alterAssignments(img, req), nil
	case *kmsg.ListPartitionReassignmentsRequest:
		return m.listReassignments(img, req), nil
	}
	return Decision{}, protocol.Errorf(kerr.InvalidRequest, "the controller does not decide %s", kmsg.NameForKey(req.Key()))
}

// codeAndText are an error's fields in a response. An error that is Kafka's own,
// without a text of ours, is described by Kafka's.
func codeAndText(err error) (int16, *string) {
	if err == nil {
		return 0, nil
	}
	if k, ok := err.(*kerr.Error); ok {
		return k.Code, &k.Description
	}
	return protocol.Code(err), protocol.Message(err)
}

// duplicates are the keys that come more than once.
func duplicates[T any, K comparable](list []T, key func(*T) K) map[K]bool {
	seen, twice := make(map[K]bool, len(list)), map[K]bool{}
	for i := range list {
		k := key(&list[i])
		if seen[k] {
			twice[k] = true
		}
		seen[k] = true
	}
	return twice
}
