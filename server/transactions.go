package server

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/api"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/storage"
)

// openTransactions makes the transaction coordinator, which is empty until it is
// elected.
func (n *Node) openTransactions() {
	n.producerIDs = api.NewProducerIDs(n.driver, n.id, n.epoch.Load)
	n.transactions = txn.NewCoordinator(txn.Options{
		Config: n.live.Snapshot().TxnConfig(),
		Open: func(partition int32) (runtime.Log, error) {
			return n.replicas.CoordinatorLog(txn.Topic, partition)
		},
		Written: func(partition int32) bool { return n.replicas.Written(txn.Topic, partition) },
		KV:      roomyKV{n.db, n.store}, Clock: n.env.Clock, Log: n.env.Log, Metrics: n.env.Metrics,
		Partitions:   func() int32 { return n.partitionsOf(txn.Topic) },
		PartitionFor: group.PartitionFor,
		Level:        func() int16 { return api.FinalizedLevel(n.images.Current(), api.TransactionVersionFeature) },
		ProducerIDs:  n.producerIDs.Next, Markers: markers{n}, Work: n.reads.Go,
	})
}

// internalTopic is how a coordinator's topic is made: what its configuration asks
// for, and what Kafka sets.
func (n *Node) internalTopic(name string) api.InternalTopic {
	s := n.live.Snapshot()
	if name == txn.Topic {
		return api.InternalTopic{
			Partitions:        config.TransactionStateLogNumPartitions.Get(s),
			ReplicationFactor: config.TransactionStateLogReplicationFactor.Get(s),
			Configs: [][2]string{
				{"cleanup.policy", "compact"}, {"compression.type", "uncompressed"},
				{"min.insync.replicas", strconv.Itoa(int(config.TransactionStateLogMinIsr.Get(s)))},
				{"segment.bytes", strconv.Itoa(int(config.TransactionStateLogSegmentBytes.Get(s)))},
				{"unclean.leader.election.enable", "false"},
			},
		}
	}
	return api.InternalTopic{
		Partitions:        config.OffsetsTopicNumPartitions.Get(s),
		ReplicationFactor: config.OffsetsTopicReplicationFactor.Get(s),
		Configs: [][2]string{
			{"cleanup.policy", "compact"}, {"compression.type", "producer"},
			{"segment.bytes", strconv.Itoa(int(config.OffsetsTopicSegmentBytes.Get(s)))},
		},
	}
}

// markers writes the markers of this broker's transactions to its partitions.
type markers struct{ n *Node }

var _ txn.Markers = markers{}

// WriteMarker appends a marker; in a partition of offsets the group coordinator
// does.
func (m markers) WriteMarker(tp storage.TopicPartition, marker replica.Marker, done func(error)) {
	p, err := m.partition(tp)
	if err != nil {
		done(err)
		return
	}
	if tp.Topic == group.Topic {
		m.n.groups.CompleteTransaction(tp.Partition, marker, done)
		return
	}
	p.WriteMarker(marker, done)
}

// partition finds a partition. That there is none is for the metadata to say, and
// while this broker starts it has not heard of them yet.
func (m markers) partition(tp storage.TopicPartition) (*replica.Partition, error) {
	img := m.n.images.Current()
	if _, started := img.Broker(m.n.id); !started {
		return nil, protocol.Errorf(kerr.NotLeaderForPartition, "partition %v is not known yet", tp)
	}
	if p, ok := m.n.replicas.Partition(tp.Topic, tp.Partition); ok {
		return p, nil
	}
	if _, ok := img.Partition(tp.Topic, tp.Partition); ok {
		return nil, protocol.Errorf(kerr.NotLeaderForPartition, "partition %v is not here", tp)
	}
	return nil, protocol.Errorf(kerr.UnknownTopicOrPartition, "there is no partition %v any more", tp)
}
