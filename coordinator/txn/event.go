package txn

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/storage"
)

// Event is what the machine is asked to decide.
type Event struct {
	// Call addresses the answer; 0 when nobody waits for one.
	Call uint64
	// Level is the cluster's transaction version at the moment.
	Level int16
	// Request is one of the requests or replies of this package.
	Request any
}

// Answer is the response to a call, or an effect where Call is 0.
type Answer struct {
	Call     uint64
	Response any
}

// Producer is who asks for something in a transaction.
type Producer struct {
	TransactionalID string
	ID              int64
	Epoch           int16
}

// InitProducer asks for the producer id and epoch of a transactional id
// (KIP-98, KIP-360). The response is a Produced, or a NeedProducerID.
type InitProducer struct {
	TransactionalID string
	TimeoutMs       int32
	// ID and Epoch are those that the producer has; -1 for one that begins.
	ID    int64
	Epoch int16
	// NewID is a producer id that nobody has, -1 for none at hand.
	NewID int64
}

// AddPartitions makes partitions part of the producer's transaction, which begins
// with the first. The response is an Outcome.
type AddPartitions struct {
	Producer
	Partitions []storage.TopicPartition
	// ClientVersion is the transaction version that the producer follows.
	ClientVersion int16
	// Patient waits a little for an earlier transaction that is about to be
	// complete.
	Patient bool
}

// VerifyPartitions asks whether partitions are part of the producer's transaction
// (KIP-890). The response is a Verified.
type VerifyPartitions struct {
	Producer
	Partitions []storage.TopicPartition
}

// EndTxn commits or aborts. The response is a Produced, or a NeedProducerID.
type EndTxn struct {
	Producer
	Commit        bool
	ClientVersion int16
	// NewID is a producer id that nobody has, -1 for none at hand.
	NewID int64
}

// DescribeTxn asks for one transactional id; the response is a Described.
type DescribeTxn struct {
	TransactionalID string
}

// ListTxns asks for the transactional ids of one partition; the response is a
// []Listed. Empty filters let all through.
type ListTxns struct {
	States      map[State]struct{}
	ProducerIDs map[int64]struct{}
	// OlderThanMs is how long a transaction must be under way, -1 for any.
	OlderThanMs int64
	// Pattern is what the whole transactional id must match, nil for any.
	Pattern *regexp.Regexp
}

// Loaded is the first event after the log was replayed.
type Loaded struct{}

// TimerFired says that a timer's time has come.
type TimerFired struct {
	Key string
}

// Outcome is a response that says only whether it went well.
type Outcome struct {
	Err *kerr.Error
}

// Produced is the producer id and epoch to go on with, or an error.
type Produced struct {
	ID    int64
	Epoch int16
	Err   *kerr.Error
}

func producedError(err *kerr.Error) Produced {
	return Produced{ID: noProducerID, Epoch: noEpoch, Err: err}
}

// NeedProducerID asks to put the request again, with a NewID.
type NeedProducerID struct{}

// Verified has an error for all partitions, or those that are not part of the
// transaction.
type Verified struct {
	Err     *kerr.Error
	Missing []storage.TopicPartition
}

// Described is one transactional id, nil when there is none.
type Described struct {
	Transaction *Transaction
}

// Listed is one transactional id in a list.
type Listed struct {
	TransactionalID string
	ProducerID      int64
	State           State
}

// WriteMarkers is the effect that ends a transaction in its partitions. The reply
// is a MarkersWritten with a result for each of them.
type WriteMarkers struct {
	Producer
	Commit bool
	// ClientVersion is the transaction version that the markers are of.
	ClientVersion int16
	Partitions    []storage.TopicPartition
	// Failures counts the attempts before this one.
	Failures int
}

// MarkersWritten replies to WriteMarkers. Results are in the order of its
// partitions.
type MarkersWritten struct {
	Asked   WriteMarkers
	Results []error
}

// FetchProducerID is the effect that gets a producer id which nobody has, for the
// abort of a transaction whose epochs are used up. The reply is a ProducerIDFetched.
type FetchProducerID struct {
	TransactionalID string
}

// ProducerIDFetched replies to FetchProducerID.
type ProducerIDFetched struct {
	TransactionalID string
	ID              int64
	Err             error
}

// MayWrite tells whether an event can lead to records, so that it is refused at
// once while the log takes none.
func MayWrite(e Event) bool {
	switch r := e.Request.(type) {
	case VerifyPartitions, DescribeTxn, ListTxns, Loaded:
		return false
	case TimerFired:
		return !isWaitTimer(r.Key)
	}
	return true
}
