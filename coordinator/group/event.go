package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/storage"
)

// Event is what the machine is asked to decide.
type Event struct {
	// Call addresses the answer; 0 when nobody waits for one.
	Call   uint64
	Client Client
	// Request is a *kmsg.JoinGroupRequest, SyncGroupRequest, HeartbeatRequest,
	// LeaveGroupRequest, OffsetCommitRequest, OffsetDeleteRequest or
	// ConsumerGroupHeartbeatRequest, or one of the requests of this package.
	Request any
	// World is the cluster at the time of the event.
	World World
	// Unwritable says that the log takes no appends now.
	Unwritable bool
}

// World is what consumer groups depend on beside their members.
type World struct {
	// Image is the cluster's metadata; nil is one without topics.
	Image *metadata.Image
	// TopicsAt is the image in which topics were made last.
	TopicsAt int64
	// AssignmentIntervalMs is the shortest time between two divisions of a group
	// that does not set its own.
	AssignmentIntervalMs int32
}

// nowhere is a cluster without topics.
var nowhere = metadata.New("")

// Answer is the response to a call.
type Answer struct {
	Call     uint64
	Response any
}

// Client is who sent a request.
type Client struct {
	// ID is the client id, Host the address as Kafka shows it, "/127.0.0.1".
	ID, Host string
	// Hasty says that the request takes more memory than may wait for other members.
	Hasty bool
}

// FetchOffsets asks for the committed offsets of one group, whose topics have
// both names and, where known, ids; nil Topics are all. The response is a
// *kmsg.OffsetFetchResponseGroup.
type FetchOffsets struct {
	Group *kmsg.OffsetFetchRequestGroup
	// RequireStable makes an open transaction's offset an error.
	RequireStable bool
}

// CommitPending commits offsets in a transaction. The topics have both names and
// ids; the response is a *kmsg.TxnOffsetCommitResponse.
type CommitPending struct {
	Request *kmsg.TxnOffsetCommitRequest
	// Guard is that of the transaction's verification.
	Guard storage.VerificationGuard
}

// DescribeGroup asks for one group; the response is a
// *kmsg.DescribeGroupsResponseGroup.
type DescribeGroup struct {
	Group   string
	Version int16
}

// ListGroups asks for the groups of one partition; the response is a
// []kmsg.ListGroupsResponseGroup. A nil filter lets all through.
type ListGroups struct {
	States, Types Filter
}

// DescribeConsumerGroup asks for one group of the consumer protocol; the response
// is a *kmsg.ConsumerGroupDescribeResponseGroup.
type DescribeConsumerGroup struct {
	Group string
}

// DeleteGroup asks to delete one group; the response is a
// *kmsg.DeleteGroupsResponseGroup.
type DeleteGroup struct {
	Group string
}

// TopicsDeleted says that topics are gone, and their offsets with them.
type TopicsDeleted struct {
	Topics []DeletedTopic
}

// DeletedTopic is a topic that is gone.
type DeletedTopic struct {
	Name string
	ID   [16]byte
}

// Loaded is the first event after the log was replayed.
type Loaded struct{}

// TimerFired says that a timer's time has come.
type TimerFired struct {
	Key string
}

// MayWrite tells whether an event can lead to records, so that it is refused at
// once while the log takes none.
func MayWrite(e Event) bool {
	switch r := e.Request.(type) {
	case *kmsg.HeartbeatRequest, FetchOffsets, DescribeGroup, DescribeConsumerGroup, ListGroups, Loaded, TopicsDeleted:
		return false
	case *kmsg.ConsumerGroupHeartbeatRequest:
		// One that says nothing new keeps its member alive, whatever the log takes.
		return r.MemberEpoch <= 0 || r.SubscribedTopicNames != nil || r.SubscribedTopicRegex != nil || r.Topics != nil
	}
	return true
}

// unwritable marks an event that is decided although the log takes no appends.
func unwritable(e Event) Event {
	e.Unwritable = true
	return e
}
