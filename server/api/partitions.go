package api

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/protocol"
)

// Partitions finds the partitions that this broker holds.
type Partitions interface {
	Partition(topic string, partition int32) (*replica.Partition, bool)
}

// adminClientID is the client id under which Kafka lets its own tools write to
// internal topics.
const adminClientID = "__admin_client"

// partition finds the partition that a request names, or says why it is not
// here.
func (h *Handlers) partition(img *metadata.Image, topic string, partition int32) (*replica.Partition, error) {
	if p, ok := h.Partitions.Partition(topic, partition); ok {
		return p, nil
	}
	if img != nil {
		if at, ok := img.Partition(topic, partition); ok {
			return nil, protocol.Errorf(kerr.NotLeaderForPartition, "partition %s-%d is led by broker %d", topic, partition, at.Leader)
		}
	}
	return nil, protocol.Errorf(kerr.UnknownTopicOrPartition, "there is no partition %s-%d", topic, partition)
}

// partitionByID is partition for the requests that name topics by id (KIP-516).
// The name is empty when the id is not known.
func (h *Handlers) partitionByID(img *metadata.Image, id metadata.TopicID, partition int32) (name string, p *replica.Partition, err error) {
	t, ok := img.TopicByID(id)
	if !ok {
		return "", nil, protocol.Errorf(kerr.UnknownTopicID, "there is no topic with this id")
	}
	p, err = h.partition(img, t.Name, partition)
	if err == nil && p.TopicID() != id {
		return t.Name, nil, protocol.Errorf(kerr.InconsistentTopicID, "partition %s-%d belongs to another topic id", t.Name, partition)
	}
	return t.Name, p, err
}

// guard runs what a request does outside Serve: a panic costs its connection,
// not the broker.
func (h *Handlers) guard(c *Call, f func()) {
	defer func() {
		if p := recover(); p != nil {
			h.Log.Error("panic in a request", slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
			c.Hangup("internal error")
		}
	}()
	f()
}

// leaderOf is where the metadata says that a partition is led.
func leaderOf(img *metadata.Image, topic string, id metadata.TopicID, partition int32) (*metadata.Partition, bool) {
	if t, ok := img.TopicByID(id); ok {
		return t.Partition(partition)
	}
	return img.Partition(topic, partition)
}

// node is one broker's address in a response (KIP-951).
type node struct {
	id   int32
	host string
	port int32
	rack *string
}

// addNode adds a broker's address once, when its client can reach it.
func (h *Handlers) addNode(nodes []node, c *Call, img *metadata.Image, id int32) []node {
	for i := range nodes {
		if nodes[i].id == id {
			return nodes
		}
	}
	b, ok := img.Broker(id)
	if !ok || b.Fenced {
		return nodes
	}
	host, port, ok := h.endpoint(c, b)
	if !ok {
		return nodes
	}
	return append(nodes, node{id: id, host: host, port: port, rack: rackOf(b)})
}
