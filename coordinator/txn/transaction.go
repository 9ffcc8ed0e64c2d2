package txn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/barnabas-mq/barnabas/storage"
)

const (
	noProducerID = -1
	noEpoch      = -1
	// maxEpoch is one that no producer ever uses: it is left for the fence and the
	// marker that end the last transaction of a producer id. An epoch from
	// lastUsableEpoch on is exhausted.
	maxEpoch        = math.MaxInt16
	lastUsableEpoch = maxEpoch - 1
)

// epochBumpVersion is the transaction version from which every end of a
// transaction raises the epoch (KIP-890).
const epochBumpVersion = 2

// Transaction is one transactional id as its newest record has it. It is never
// changed, only replaced.
type Transaction struct {
	ProducerID int64
	// PrevProducerID is the producer id before the newest record, by which a repeat
	// of the request that changed it is known.
	PrevProducerID int64
	// NextProducerID takes over when the transaction in Prepare is complete, because
	// the epochs of ProducerID are used up; -1 for none.
	NextProducerID int64
	Epoch          int16
	// lastEpoch is the epoch before the last bump, -1 for none or not known. No
	// record keeps it: it is for a repeat of InitProducerId, which after a restart is
	// fenced, as in Kafka.
	lastEpoch  int16
	TimeoutMs  int32
	State      State
	Partitions []storage.TopicPartition // sorted
	StartMs    int64
	UpdateMs   int64
	// ClientVersion is the transaction version of whoever made the newest record.
	ClientVersion int16
}

// String is the transaction as its record has it, for people.
func (t *Transaction) String() string {
	s := fmt.Sprintf("%s producer: %d/%d previous: %d", t.State, t.ProducerID, t.Epoch, t.PrevProducerID)
	if t.NextProducerID != noProducerID {
		s += fmt.Sprintf(" next: %d", t.NextProducerID)
	}
	return s + fmt.Sprintf(" timeoutMs: %d clientVersion: %d startMs: %d updateMs: %d partitions: %v",
		t.TimeoutMs, t.ClientVersion, t.StartMs, t.UpdateMs, t.Partitions)
}

// exhausted says that the producer id has no epoch left to give out.
func (t *Transaction) exhausted() bool { return t.Epoch >= lastUsableEpoch }

// to is the transaction after a step at nowMs.
func (t *Transaction) to(s State, nowMs int64) *Transaction {
	next := *t
	next.State, next.PrevProducerID, next.UpdateMs = s, t.ProducerID, nowMs
	return &next
}

// initialized is an id that a producer takes over, with the epoch that it gets and
// the one that it had.
func (t *Transaction) initialized(epoch, lastEpoch int16, timeoutMs int32, nowMs int64) *Transaction {
	next := t.to(Empty, nowMs)
	next.Epoch, next.lastEpoch = epoch, lastEpoch
	next.TimeoutMs, next.StartMs, next.Partitions = timeoutMs, -1, nil
	return next
}

// rotated is initialized with a new producer id.
func (t *Transaction) rotated(producerID int64, lastEpoch int16, timeoutMs int32, nowMs int64) *Transaction {
	next := t.initialized(0, lastEpoch, timeoutMs, nowMs)
	next.ProducerID = producerID
	return next
}

// added has more partitions, and is a new transaction where none was ongoing.
func (t *Transaction) added(partitions []storage.TopicPartition, clientVersion int16, nowMs int64) *Transaction {
	next := t.to(Ongoing, nowMs)
	if t.State != Ongoing {
		next.StartMs = nowMs
	}
	next.Partitions, next.ClientVersion = union(t.Partitions, partitions), clientVersion
	return next
}

// prepared is a transaction whose verdict is decided at a client's word. Under
// epochBumpVersion it has the epoch that its markers carry and its client goes on
// with, or nextProducerID.
func (t *Transaction) prepared(commit bool, clientVersion int16, nextProducerID, nowMs int64) *Transaction {
	state := PrepareAbort
	if commit {
		state = PrepareCommit
	}
	next := t.to(state, nowMs)
	if t.State != Ongoing {
		next.StartMs = nowMs // an abort of nothing has to begin sometime
	}
	next.NextProducerID, next.ClientVersion = nextProducerID, clientVersion
	if clientVersion >= epochBumpVersion {
		next.Epoch, next.lastEpoch = bumped(t.Epoch), t.Epoch
	}
	return next
}

// fenced is a transaction that is aborted without its client, whose epoch is of no
// use any more. level is the cluster's transaction version.
func (t *Transaction) fenced(level int16, nextProducerID, nowMs int64) *Transaction {
	if level >= epochBumpVersion {
		return t.prepared(false, level, nextProducerID, nowMs)
	}
	next := t.prepared(false, 0, noProducerID, nowMs)
	next.Epoch, next.lastEpoch = bumped(t.Epoch), noEpoch
	return next
}

// bumped is the next epoch. The last one stays: an id that got there by mistake
// must still be able to abort.
func bumped(epoch int16) int16 {
	if epoch == maxEpoch {
		return epoch
	}
	return epoch + 1
}

// complete is a prepared transaction whose partitions have their markers.
func (t *Transaction) complete(nowMs int64) *Transaction {
	state := CompleteAbort
	if t.State == PrepareCommit {
		state = CompleteCommit
	}
	next := t.to(state, nowMs)
	next.ProducerID, next.Epoch = t.successor()
	next.NextProducerID, next.Partitions = noProducerID, nil
	return next
}

// successor is the producer id and epoch that are in force after a prepared
// transaction.
func (t *Transaction) successor() (producerID int64, epoch int16) {
	if t.ClientVersion >= epochBumpVersion && t.NextProducerID != noProducerID {
		return t.NextProducerID, 0
	}
	return t.ProducerID, t.Epoch
}

// has tells whether all partitions are part of the transaction.
func (t *Transaction) has(partitions []storage.TopicPartition) bool {
	for _, tp := range partitions {
		if _, ok := slices.BinarySearchFunc(t.Partitions, tp, comparePartitions); !ok {
			return false
		}
	}
	return true
}

func comparePartitions(a, b storage.TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// union is both lists as one that is sorted and has nothing twice.
func union(a, b []storage.TopicPartition) []storage.TopicPartition {
	all := append(slices.Clone(a), b...)
	slices.SortFunc(all, comparePartitions)
	return slices.Compact(all)
}
