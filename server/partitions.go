package server

import (
	"context"
	"fmt"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/server/clientmetrics"
	"github.com/barnabas-mq/barnabas/server/config"
)

const (
	// waitWorkers run requests whose wait is over; they wait for no disk but the
	// page cache.
	waitWorkers = 16
	// readWorkers run what the transaction coordinator does that may have to wait for
	// the disk.
	readWorkers = 16
)

// openPartitions makes what serves partitions and groups. Both are empty until
// they hear of an image.
func (n *Node) openPartitions() error {
	n.waits, n.reads = park.NewPool(n.env.Clock, waitWorkers), park.NewPool(n.env.Clock, readWorkers)
	n.replicas = replica.NewManager(replica.Options{
		NodeID: n.id, Store: replica.StoreOf(n.store), Clock: n.env.Clock, Log: n.env.Log,
		Pool: n.waits, TopicConfig: n.topicConfig,
	}, replica.Hooks{Elected: n.elected, Resigned: n.resigned, TopicsDeleted: n.topicsDeleted})
	n.groups = group.NewCoordinator(group.Options{
		Config: n.live.Snapshot().GroupConfig(),
		Open: func(partition int32) (runtime.Log, error) {
			return n.replicas.CoordinatorLog(group.Topic, partition)
		},
		Written: func(partition int32) bool { return n.replicas.Written(group.Topic, partition) },
		KV:      roomyKV{n.db, n.store}, Clock: n.env.Clock, Log: n.env.Log, Metrics: n.env.Metrics, NewID: n.newMemberID,
		Partitions: func() int32 { return n.partitionsOf(group.Topic) }, World: n.world,
	})
	n.openTransactions()
	n.clientStats = clientmetrics.New(clientmetrics.Options{
		Clock: n.env.Clock, Log: n.env.Log, Metrics: n.env.Metrics, NewID: n.env.newID,
		MaxBytes: int(config.TelemetryMaxBytes.Get(n.live.Snapshot())),
	})
	n.onClose("coordinators and waits", func(context.Context) error {
		n.transactions.Close()
		n.groups.Close()
		n.waits.Drain()
		n.reads.Drain()
		n.waits.WaitIdle()
		n.reads.WaitIdle()
		return nil
	})
	return nil
}

// openRest opens, beside the serving, the logs that nobody has asked for yet, so
// that retention knows them and the recovery after a crash goes on.
func (n *Node) openRest() error {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		n.replicas.OpenAll(stop)
	}()
	n.onClose("opening of logs", func(context.Context) error {
		close(stop)
		<-done
		return nil
	})
	return nil
}

// topicConfig is what a topic's configuration in img means to its partitions.
func (n *Node) topicConfig(img *metadata.Image, topic string) replica.TopicConfig {
	t := n.live.Topic(img, topic)
	return replica.TopicConfig{Log: t.Log, Batch: t.Batch, MinInSyncReplicas: int(t.MinInsyncReplicas)}
}

func (n *Node) elected(topic string, partition, leaderEpoch int32) {
	switch topic {
	case group.Topic:
		n.groups.OnElected(partition, leaderEpoch)
	case txn.Topic:
		n.transactions.OnElected(partition, leaderEpoch)
	}
}

func (n *Node) resigned(topic string, partition, leaderEpoch int32) {
	switch topic {
	case group.Topic:
		n.groups.OnResigned(partition, leaderEpoch)
	case txn.Topic:
		n.transactions.OnResigned(partition, leaderEpoch)
	}
}

func (n *Node) topicsDeleted(topics []*metadata.Topic) {
	deleted := make([]group.DeletedTopic, len(topics))
	for i, t := range topics {
		deleted[i] = group.DeletedTopic{Name: t.Name, ID: t.ID}
		if t.Name == txn.Topic {
			n.transactions.OnTopicDeleted()
		}
	}
	n.groups.OnTopicsDeleted(deleted)
}

// world is what consumer groups depend on beside their members.
func (n *Node) world() group.World {
	return group.World{
		Image:                n.images.Current(),
		AssignmentIntervalMs: config.GroupConsumerAssignmentIntervalMs.Get(n.live.Snapshot()),
	}
}

// partitionsOf is how many partitions an internal topic has, 0 while there is
// none.
func (n *Node) partitionsOf(topic string) int32 {
	t, ok := n.images.Current().Topic(topic)
	if !ok {
		return 0
	}
	return int32(len(t.Partitions))
}

// newMemberID is the random part of a group member's id.
func (n *Node) newMemberID() string {
	id := n.env.newID()
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
