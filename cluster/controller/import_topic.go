package controller

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// ImportedTopic is a topic whose partitions' logs are in their place already.
type ImportedTopic struct {
	Name    string
	ID      metadata.TopicID
	Configs map[string]string
	// Broker has all partitions; LeaderEpochs are those they begin with.
	Broker       int32
	LeaderEpochs []int32
	// NextProducerID is a producer id that is newer than any in the logs: no new
	// producer may be taken for one of them.
	NextProducerID int64
}

// ImportTopic adds a topic that another cluster has made. done runs once, as that
// of Handle.
func (d *Driver) ImportTopic(t ImportedTopic, done func(error)) {
	decide := func(m *Machine, img *metadata.Image) (Decision, error) { return m.importTopic(img, &t) }
	if err := d.enqueue(call{decide: decide, done: func(_ kmsg.Response, err error) { done(err) }}); err != nil {
		done(err)
	}
}

func (m *Machine) importTopic(img *metadata.Image, t *ImportedTopic) (Decision, error) {
	if err := checkNewName(img, t.Name); err != nil {
		return Decision{}, err
	}
	if other, taken := img.TopicByID(t.ID); taken {
		return Decision{}, protocol.Errorf(kerr.TopicAlreadyExists, "Topic '%s' has the id of '%s'.", t.Name, other.Name)
	}
	if err := invalidConfig(m.cfg.Checker.CheckTopicConfigs(t.Configs)); err != nil {
		return Decision{}, err
	}
	records := []metadata.Record{&metadata.TopicRecord{Name: t.Name, ID: t.ID, Internal: protocol.IsInternalTopic(t.Name)}}
	for _, name := range sortedKeys(t.Configs) {
		records = append(records, &metadata.ConfigRecord{Resource: metadata.TopicResource(t.Name), Name: name, Value: new(t.Configs[name])})
	}
	for i, epoch := range t.LeaderEpochs {
		p := newPartition(t.ID, int32(i), placement{replicas: []int32{t.Broker}, isr: []int32{t.Broker}})
		p.LeaderEpoch = epoch
		records = append(records, p)
	}
	if t.NextProducerID > img.NextProducerID() {
		r := &metadata.ProducerIDsRecord{BrokerID: t.Broker, Next: t.NextProducerID}
		if b, ok := img.Broker(t.Broker); ok {
			r.BrokerEpoch = b.Epoch
		}
		records = append(records, r)
	}
	return Decision{Records: records}, nil
}
