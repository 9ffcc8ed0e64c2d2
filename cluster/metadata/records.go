package metadata

// Record is one fact of the metadata log. Every choice (ids, placement, time,
// randomness) was made before it was proposed, so that applying it is pure.
//
// A record is written with its type and its version; a new field is a new
// version, written only once the finalized metadata.version allows it.
type Record interface {
	kind() recordKind
	encode(w *writer)
	decode(r *reader, version uint64)
}

// recordKind is the number of a record type on disk.
type recordKind uint64

const (
	kindRegisterBroker recordKind = iota + 1
	kindUnregisterBroker
	kindBrokerChange
	kindTopic
	kindPartition
	kindPartitionChange
	kindRemoveTopic
	kindConfig
	kindProducerIDs
	kindFeatureLevel
	kindNoOp
	kindClientQuota
	kindScramCredential
)

// RegisterBrokerRecord adds a broker or replaces its registration. Its epoch is
// the log index of the batch.
type RegisterBrokerRecord struct {
	BrokerID      int32
	IncarnationID [16]byte
	Rack          string
	Fenced        bool
	Endpoints     []Endpoint
}

// UnregisterBrokerRecord removes a broker.
type UnregisterBrokerRecord struct{ BrokerID int32 }

// BrokerChangeRecord changes a broker's fencing; nil leaves a state as it is.
type BrokerChangeRecord struct {
	BrokerID   int32
	Fenced     *bool
	InShutdown *bool
}

// TopicRecord adds a topic without partitions.
type TopicRecord struct {
	Name     string
	ID       TopicID
	Internal bool
}

// PartitionRecord adds the next partition of a topic.
type PartitionRecord struct {
	TopicID TopicID
	Partition
}

// PartitionChangeRecord changes a partition; nil leaves a field as it is. The
// partition epoch always rises, the leader epoch when Leader is given, even if
// it names the same broker again.
type PartitionChangeRecord struct {
	TopicID TopicID
	Index   int32

	Leader           *int32
	Replicas         []int32
	ISR              []int32
	ELR              []int32
	LastKnownELR     []int32
	AddingReplicas   []int32
	RemovingReplicas []int32
}

// RemoveTopicRecord deletes a topic with its partitions and configs.
type RemoveTopicRecord struct{ ID TopicID }

// ConfigRecord sets a config, or removes it with a nil Value.
type ConfigRecord struct {
	Resource ConfigResource
	Name     string
	Value    *string
}

// ProducerIDsRecord says that all producer ids below Next are handed out.
type ProducerIDsRecord struct {
	BrokerID    int32
	BrokerEpoch int64
	Next        int64
}

// FeatureLevelRecord finalizes a feature. Level 0 switches it off, which is not the
// same as no record: a feature that was never finalized is, by the next broker
// that registers.
type FeatureLevelRecord struct {
	Name  string
	Level int16
}

// ClientQuotaRecord sets one quota of an entity, or removes it with a nil Value.
type ClientQuotaRecord struct {
	Entity QuotaEntity
	Key    string
	Value  *float64
}

// ScramCredentialRecord sets a user's credential of one mechanism, or removes it
// when Credential is nil.
type ScramCredentialRecord struct {
	User       string
	Mechanism  int8
	Credential *ScramCredential
}

// NoOpRecord changes nothing.
type NoOpRecord struct{}

// newRecord is an empty record of a kind, with the newest version known.
func newRecord(kind recordKind) (rec Record, version uint64) {
	switch kind {
	case kindRegisterBroker:
		return &RegisterBrokerRecord{}, 0
	case kindUnregisterBroker:
		return &UnregisterBrokerRecord{}, 0
	case kindBrokerChange:
		return &BrokerChangeRecord{}, 0
	case kindTopic:
		return &TopicRecord{}, 0
	case kindPartition:
		return &PartitionRecord{}, 0
	case kindPartitionChange:
		return &PartitionChangeRecord{}, 0
	case kindRemoveTopic:
		return &RemoveTopicRecord{}, 0
	case kindConfig:
		return &ConfigRecord{}, 0
	case kindProducerIDs:
		return &ProducerIDsRecord{}, 0
	case kindFeatureLevel:
		return &FeatureLevelRecord{}, 0
	case kindNoOp:
		return &NoOpRecord{}, 0
	case kindClientQuota:
		return &ClientQuotaRecord{}, 0
	case kindScramCredential:
		return &ScramCredentialRecord{}, 0
	}
	return nil, 0
}

func (*RegisterBrokerRecord) kind() recordKind   { return kindRegisterBroker }
func (*UnregisterBrokerRecord) kind() recordKind { return kindUnregisterBroker }
func (*BrokerChangeRecord) kind() recordKind     { return kindBrokerChange }
func (*TopicRecord) kind() recordKind            { return kindTopic }
func (*PartitionRecord) kind() recordKind        { return kindPartition }
func (*PartitionChangeRecord) kind() recordKind  { return kindPartitionChange }
func (*RemoveTopicRecord) kind() recordKind      { return kindRemoveTopic }
func (*ConfigRecord) kind() recordKind           { return kindConfig }
func (*ProducerIDsRecord) kind() recordKind      { return kindProducerIDs }
func (*FeatureLevelRecord) kind() recordKind     { return kindFeatureLevel }
func (*NoOpRecord) kind() recordKind             { return kindNoOp }
func (*ClientQuotaRecord) kind() recordKind      { return kindClientQuota }
func (*ScramCredentialRecord) kind() recordKind  { return kindScramCredential }
