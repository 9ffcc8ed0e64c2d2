package metadata

// TopicID is a topic's 16-byte id; the zero id means none.
type TopicID = [16]byte

// Image is the cluster's metadata after one record of the metadata log. It and
// everything reachable from it never changes: readers share it without a lock.
type Image struct {
	// Offset is the metadata log's offset of the last applied record, -1 at
	// first.
	Offset int64
	// ClusterID is Kafka's 22-character id.
	ClusterID string
	// ControllerID is the active controller's node id, -1 when unknown.
	ControllerID int32

	brokers      map[int32]*Broker
	topicsByName map[string]*Topic
	topicsByID   map[TopicID]*Topic
	configs      map[ConfigResource]map[string]string
	features     map[string]int16
	// nextProducerID is the first id that no block has handed out.
	nextProducerID int64
}

// Broker is one registered broker.
type Broker struct {
	ID    int32
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

// ConfigResource names what a dynamic config is set on.
type ConfigResource struct {
	// Type is Kafka's number: 2 topic, 4 broker, 8 broker logger, 16 client
	// metrics, 32 group.
	Type int8
	// Name is the topic, the group or the broker id in decimal; "" with type
	// broker is the default of all brokers.
	Name string
}
