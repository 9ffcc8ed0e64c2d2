package metadata

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// TopicID is a topic's 16-byte id; the zero id means none.
type TopicID = [16]byte

// Kafka's numbers of the config resource types.
const (
	ResourceTopic         int8 = 2
	ResourceBroker        int8 = 4
	ResourceBrokerLogger  int8 = 8
	ResourceClientMetrics int8 = 16
	ResourceGroup         int8 = 32
)

// Image is the cluster's metadata after one batch of the metadata log. It and
// everything reachable from it never changes: readers share it without a lock,
// and must not change a slice or map that they get from it.
type Image struct {
	// Offset is the metadata log's index of the last applied batch, -1 at
	// first.
	Offset int64
	// ClusterID is Kafka's 22-character id.
	ClusterID string
	// ControllerID is the active controller's node id, -1 when unknown. It is
	// no record: who publishes the image sets it by WithController.
	ControllerID int32

	brokers      map[int32]*Broker
	topicsByName shards[string, *Topic]
	topicsByID   shards[TopicID, *Topic]
	// unified lists the topics whose names have a '.' or '_', by the name with
	// each '.' turned into '_'.
	unified  shards[string, []string]
	removed  shards[TopicID, RemovedTopic]
	configs  shards[ConfigResource, map[string]string]
	quotas   shards[QuotaEntity, map[string]float64]
	scram    shards[ScramKey, *ScramCredential]
	features map[string]int16
	// nextProducerID is the first id that no block has handed out.
	nextProducerID int64
	partitionCount int

	sortOnce sync.Once
	sorted   []*Topic
}

// Broker is one registered broker.
type Broker struct {
	ID int32
	// Epoch is the metadata log's index of the registration.
	Epoch int64
	// IncarnationID differs at every start of the process.
	IncarnationID [16]byte
	Rack          string
	Fenced        bool
	InShutdown    bool
	Endpoints     []Endpoint
}

// Endpoint is one advertised listener of a broker.
type Endpoint struct {
	Listener string
	Host     string
	Port     int32
	// SecurityProtocol is Kafka's number: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT,
	// 3 SASL_SSL.
	SecurityProtocol int16
}

// Topic is one topic; Partitions is indexed by partition number.
type Topic struct {
	Name       string
	ID         TopicID
	Internal   bool
	Partitions []*Partition
}

// Partition is one partition's assignment and leadership.
type Partition struct {
	Index            int32
	Replicas         []int32
	ISR              []int32
	ELR              []int32
	LastKnownELR     []int32
	AddingReplicas   []int32
	RemovingReplicas []int32
	// Leader is -1 when there is none.
	Leader         int32
	LeaderEpoch    int32
	PartitionEpoch int32
}

// RemovedTopic is a deleted topic whose folders some broker may still hold.
type RemovedTopic struct {
	Name string
	ID   TopicID
	// Offset is the metadata log's index of the deletion.
	Offset int64
	// Holders are the brokers that had replicas and have not started since.
	Holders []int32
}

// ConfigResource names what a dynamic config is set on.
type ConfigResource struct {
	// Type is Kafka's number: 2 topic, 4 broker, 8 broker logger, 16 client
	// metrics, 32 group.
	Type int8
	// Name is the topic, the group or the broker id in decimal; "" with type
	// broker is the default of all brokers.
	Name string
}

// TopicResource is the resource of a topic's configs.
func TopicResource(topic string) ConfigResource {
	return ConfigResource{Type: ResourceTopic, Name: topic}
}

// BrokerResource is the resource of one broker's own configs.
func BrokerResource(id int32) ConfigResource {
	return ConfigResource{Type: ResourceBroker, Name: strconv.Itoa(int(id))}
}

// GroupResource is the resource of a group's configs.
func GroupResource(group string) ConfigResource {
	return ConfigResource{Type: ResourceGroup, Name: group}
}

// New is the image of a cluster without any record.
func New(clusterID string) *Image {
	return &Image{Offset: -1, ClusterID: clusterID, ControllerID: -1}
}

// WithController is the image with another active controller.
func (img *Image) WithController(id int32) *Image {
	out := img.copy()
	out.ControllerID = id
	return out
}

func (img *Image) copy() *Image {
	return &Image{
		Offset: img.Offset, ClusterID: img.ClusterID, ControllerID: img.ControllerID,
		brokers: img.brokers, topicsByName: img.topicsByName, topicsByID: img.topicsByID,
		unified: img.unified, removed: img.removed, configs: img.configs, features: img.features,
		quotas: img.quotas, scram: img.scram,
		nextProducerID: img.nextProducerID, partitionCount: img.partitionCount,
	}
}

// Topic finds a topic by name.
func (img *Image) Topic(name string) (*Topic, bool) { return img.topicsByName.get(name) }

// TopicByID finds a topic by id.
func (img *Image) TopicByID(id TopicID) (*Topic, bool) { return img.topicsByID.get(id) }

// Collisions lists the topics whose metrics could not be told from those of a
// topic with that name: Kafka's metrics write a '.' as '_'. The name itself is
// listed if it exists.
func (img *Image) Collisions(name string) []string {
	names, _ := img.unified.get(unify(name))
	return names
}

func unify(name string) string { return strings.ReplaceAll(name, ".", "_") }

func canCollide(name string) bool { return strings.ContainsAny(name, "._") }

// TopicCount is the number of topics.
func (img *Image) TopicCount() int { return img.topicsByID.size }

// PartitionCount is the number of partitions of all topics.
func (img *Image) PartitionCount() int { return img.partitionCount }

// Topics goes over all topics, sorted by name.
func (img *Image) Topics() iter.Seq[*Topic] { return slices.Values(img.sortedTopics()) }

// TopicsAfter goes over the topics whose name is name or sorts after it.
func (img *Image) TopicsAfter(name string) iter.Seq[*Topic] {
	topics := img.sortedTopics()
	i, _ := slices.BinarySearchFunc(topics, name, func(t *Topic, name string) int {
		return cmp.Compare(t.Name, name)
	})
	return slices.Values(topics[i:])
}

// sortedTopics sorts once per image, on first use.
func (img *Image) sortedTopics() []*Topic {
	img.sortOnce.Do(func() {
		img.sorted = make([]*Topic, 0, img.topicsByName.size)
		for _, t := range img.topicsByName.all {
			img.sorted = append(img.sorted, t)
		}
		slices.SortFunc(img.sorted, func(a, b *Topic) int { return cmp.Compare(a.Name, b.Name) })
	})
	return img.sorted
}

// Partition finds a partition by its topic's name.
func (img *Image) Partition(topic string, index int32) (*Partition, bool) {
	t, ok := img.Topic(topic)
	if !ok {
		return nil, false
	}
	return t.Partition(index)
}

// Partition finds a partition by number.
func (t *Topic) Partition(index int32) (*Partition, bool) {
	if index < 0 || int(index) >= len(t.Partitions) {
		return nil, false
	}
	return t.Partitions[index], true
}

// RemovedTopic finds a deleted topic whose folders may still be on some disk.
func (img *Image) RemovedTopic(id TopicID) (RemovedTopic, bool) { return img.removed.get(id) }

// Broker finds a broker by id.
func (img *Image) Broker(id int32) (*Broker, bool) {
	b, ok := img.brokers[id]
	return b, ok
}

// Brokers lists all registered brokers sorted by id; the caller owns the slice.
func (img *Image) Brokers() []*Broker {
	ids := slices.Sorted(maps.Keys(img.brokers))
	out := make([]*Broker, len(ids))
	for i, id := range ids {
		out[i] = img.brokers[id]
	}
	return out
}

// LiveBrokers lists the brokers that may hold new replicas: neither fenced nor
// shutting down. Sorted by id; the caller owns the slice.
func (img *Image) LiveBrokers() []*Broker {
	return slices.DeleteFunc(img.Brokers(), func(b *Broker) bool { return !b.Live() })
}

// Live says that the broker is neither fenced nor shutting down.
func (b *Broker) Live() bool { return !b.Fenced && !b.InShutdown }

// Endpoint finds an advertised listener by name.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Listener == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}

// TopicConfig is what is set on a topic by name of the key; nil when nothing is.
func (img *Image) TopicConfig(topic string) map[string]string {
	return img.Config(TopicResource(topic))
}

// Config is what is set on a resource; nil when nothing is.
func (img *Image) Config(r ConfigResource) map[string]string {
	c, _ := img.configs.get(r)
	return c
}

// ConfigResources lists the resources on which something is set, sorted by type
// and name; the caller owns the slice.
func (img *Image) ConfigResources() []ConfigResource {
	out := make([]ConfigResource, 0, img.configs.size)
	for r := range img.configs.all {
		out = append(out, r)
	}
	slices.SortFunc(out, compareResources)
	return out
}

func compareResources(a, b ConfigResource) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
}

// Features are the finalized feature levels by name, with 0 for a feature that was
// switched off; the caller owns the map.
func (img *Image) Features() map[string]int16 { return maps.Clone(img.features) }

// Feature is one finalized feature level, 0 when it is not set.
func (img *Image) Feature(name string) int16 { return img.features[name] }

// NextProducerID is the first producer id that no block has handed out.
func (img *Image) NextProducerID() int64 { return img.nextProducerID }
