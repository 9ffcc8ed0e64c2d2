package importer

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/protocol/wire"
	"github.com/barnabas-mq/barnabas/storage"
)

// The kinds of metadata records that count here, by Kafka's numbers.
const (
	recordTopic            = 2
	recordPartition        = 3
	recordConfig           = 4
	recordPartitionChange  = 5
	recordRemoveTopic      = 9
	recordFeatureLevel     = 12
	recordProducerIDs      = 15
	recordBeginTransaction = 23
	recordEndTransaction   = 24
	recordAbort            = 25
)

// newestVersion is the newest version known of each kind. Others are passed over,
// whatever their version.
var newestVersion = map[uint64]uint64{
	recordTopic: 0, recordPartition: 2, recordConfig: 0, recordPartitionChange: 2, recordRemoveTopic: 0, recordFeatureLevel: 0,
	recordProducerIDs: 0, recordBeginTransaction: 0, recordEndTransaction: 0, recordAbort: 0,
}

// frameVersion stands before each metadata record.
const frameVersion = 1

// The resources of configurations that count here, by Kafka's numbers.
const (
	resourceTopic  = 2
	resourceBroker = 4
)

// catalog is what Kafka's metadata log says of topics.
type catalog struct {
	topics  map[storage.TopicID]*catalogTopic
	configs map[catalogResource]map[string]string
	// features are the finalized levels, metadata.version among them.
	features map[string]int16
	// nextProducerID is the first producer id that is not given out.
	nextProducerID int64

	// held are the records of a metadata transaction that is open, which count at
	// its end.
	held   [][]byte
	isHeld bool
}

type catalogResource struct {
	kind int8
	name string
}

type catalogTopic struct {
	name       string
	id         storage.TopicID
	partitions map[int32]*catalogPartition
}

type catalogPartition struct {
	replicas, isr       []int32
	leader, leaderEpoch int32
}

func newCatalog() *catalog {
	return &catalog{
		topics: map[storage.TopicID]*catalogTopic{}, configs: map[catalogResource]map[string]string{}, features: map[string]int16{},
	}
}

// apply takes the next record of the metadata log.
func (c *catalog) apply(value []byte) error {
	r := wire.NewReader(value)
	frame, kind, version := r.Uvarint(), r.Uvarint(), r.Uvarint()
	if r.Err() != nil {
		return r.Err()
	}
	if frame != frameVersion {
		return fmt.Errorf("frame version %d is not known", frame)
	}
	newest, counts := newestVersion[kind]
	switch {
	case !counts:
		return nil
	case version > newest:
		return fmt.Errorf("record kind %d has version %d, and only versions up to %d are known: it was written by a newer Kafka", kind, version, newest)
	}
	switch kind {
	case recordBeginTransaction:
		c.held, c.isHeld = nil, true
		return nil
	case recordAbort:
		c.held, c.isHeld = nil, false
		return nil
	case recordEndTransaction:
		held := c.held
		c.held, c.isHeld = nil, false
		for _, v := range held {
			if err := c.apply(v); err != nil {
				return err
			}
		}
		return nil
	}
	if c.isHeld {
		c.held = append(c.held, append([]byte(nil), value...))
		return nil
	}
	if err := c.applyRecord(r, kind, version); err != nil {
		return fmt.Errorf("record kind %d: %w", kind, err)
	}
	return nil
}

func (c *catalog) applyRecord(r *wire.Reader, kind, version uint64) error {
	switch kind {
	case recordTopic:
		t := &catalogTopic{name: r.String(), id: r.ID(), partitions: map[int32]*catalogPartition{}}
		c.topics[t.id] = t
	case recordRemoveTopic:
		c.removeTopic(r.ID())
	case recordPartition:
		return c.addPartition(r, version)
	case recordPartitionChange:
		return c.changePartition(r)
	case recordConfig:
		c.setConfig(catalogResource{kind: r.Int8(), name: r.String()}, r.String(), r.OptString())
	case recordFeatureLevel:
		name := r.String()
		c.features[name] = r.Int16()
	case recordProducerIDs:
		_, _ = r.Int32(), r.Int64()
		c.nextProducerID = r.Int64()
	}
	return r.Err()
}

func (c *catalog) removeTopic(id storage.TopicID) {
	if t := c.topics[id]; t != nil {
		delete(c.configs, catalogResource{kind: resourceTopic, name: t.name})
		delete(c.topics, id)
	}
}

func (c *catalog) setConfig(resource catalogResource, name string, value *string) {
	if value == nil {
		delete(c.configs[resource], name)
		return
	}
	if c.configs[resource] == nil {
		c.configs[resource] = map[string]string{}
	}
	c.configs[resource][name] = *value
}

func (c *catalog) addPartition(r *wire.Reader, version uint64) error {
	index, id := r.Int32(), r.ID()
	p := &catalogPartition{replicas: r.Int32s(), isr: r.Int32s()}
	_, _ = r.Int32s(), r.Int32s() // removing and adding replicas
	p.leader, p.leaderEpoch = r.Int32(), r.Int32()
	_ = r.Int32() // partition epoch
	if version >= 1 {
		for range max(r.Count(len(storage.TopicID{})), 0) {
			r.ID()
		}
	}
	r.Tags(nil)
	t := c.topics[id]
	if r.Err() == nil && t == nil {
		return fmt.Errorf("a partition of topic %s, which is not there", storage.FormatID(id))
	}
	if r.Err() == nil {
		t.partitions[index] = p
	}
	return r.Err()
}

// changePartition reads only what counts of the change: leader and replicas.
func (c *catalog) changePartition(r *wire.Reader) error {
	const (
		tagISR      = 0
		tagLeader   = 1
		tagReplicas = 2
		noChange    = -2
	)
	index, id := r.Int32(), r.ID()
	t := c.topics[id]
	if r.Err() != nil {
		return r.Err()
	}
	var p *catalogPartition
	if t != nil {
		p = t.partitions[index]
	}
	if p == nil {
		return fmt.Errorf("a change of partition %d of topic %s, which is not there", index, storage.FormatID(id))
	}
	r.Tags(func(tag uint64, field *wire.Reader) {
		switch tag {
		case tagISR:
			p.isr = field.Int32s()
		case tagReplicas:
			p.replicas = field.Int32s()
		case tagLeader:
			if leader := field.Int32(); leader != noChange {
				p.leader = leader
				p.leaderEpoch++
			}
		}
	})
	return r.Err()
}
