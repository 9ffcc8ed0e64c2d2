package metadata

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// maxRemovedTopics bounds how many deleted topics are remembered: half a
// megabyte. Beyond twice that, the oldest are forgotten, and a broker that was
// away for so many deletions keeps their folders and names them.
const maxRemovedTopics = 10_000

// Apply is the image after records, as one batch at the next offset. It is for
// tests and tools: records that do not fit break an invariant.
func (img *Image) Apply(records ...Record) *Image {
	next, _, err := img.Next(img.Offset+1, records)
	invariant.That(err == nil, "apply metadata records: %v", err)
	return next
}

// Next is the image after one batch of the log, and what the batch changed. It
// is pure: img stays as it is, and the same batch leads to the same image on
// every node. An error means that the log does not fit the image.
func (img *Image) Next(offset int64, records []Record) (*Image, *Delta, error) {
	e := newEdit(img, offset)
	if err := e.batch(offset, records); err != nil {
		return nil, nil, err
	}
	next, delta := e.finish()
	return next, delta, nil
}

// Replay leads from one image over many batches to another without making the
// images in between. Its result is that of Next for each batch.
type Replay struct{ e *edit }

// Replay starts at img.
func (img *Image) Replay() *Replay { return &Replay{newEdit(img, img.Offset)} }

// Apply takes the next batch. After an error the Replay is of no use.
func (r *Replay) Apply(offset int64, records []Record) error { return r.e.batch(offset, records) }

// Image ends the replay.
func (r *Replay) Image() *Image {
	img, _ := r.e.finish()
	return img
}

// edit is a batch half applied: copies of what changed, the rest shared.
type edit struct {
	out *Image
	// touched holds the state before the batch of each topic that changed, nil
	// for a new one.
	touched map[TopicID]*Topic

	byName  shardEdit[string, *Topic]
	byID    shardEdit[TopicID, *Topic]
	unified shardEdit[string, []string]
	removed shardEdit[TopicID, RemovedTopic]
	configs shardEdit[ConfigResource, map[string]string]
	quotas  shardEdit[QuotaEntity, map[string]float64]
	scram   shardEdit[ScramKey, *ScramCredential]

	ownedConfigs map[ConfigResource]map[string]string
	brokers      map[int32]bool
	features     bool
}

func newEdit(img *Image, offset int64) *edit {
	out := img.copy()
	out.Offset = offset
	return &edit{
		out: out, touched: map[TopicID]*Topic{},
		byName:       shardEdit[string, *Topic]{now: img.topicsByName},
		byID:         shardEdit[TopicID, *Topic]{now: img.topicsByID},
		unified:      shardEdit[string, []string]{now: img.unified},
		removed:      shardEdit[TopicID, RemovedTopic]{now: img.removed},
		configs:      shardEdit[ConfigResource, map[string]string]{now: img.configs},
		quotas:       shardEdit[QuotaEntity, map[string]float64]{now: img.quotas},
		scram:        shardEdit[ScramKey, *ScramCredential]{now: img.scram},
		ownedConfigs: map[ConfigResource]map[string]string{},
		brokers:      map[int32]bool{},
	}
}

func (e *edit) batch(offset int64, records []Record) error {
	e.out.Offset = offset
	for i, rec := range records {
		if err := e.apply(rec); err != nil {
			return fmt.Errorf("metadata batch %d, record %d: %w", offset, i, err)
		}
	}
	e.trimRemoved()
	return nil
}

func (e *edit) apply(rec Record) error {
	switch rec := rec.(type) {
	case *RegisterBrokerRecord:
		e.registerBroker(rec)
	case *UnregisterBrokerRecord:
		return e.changeBroker(rec.BrokerID, func(*Broker) bool { return false })
	case *BrokerChangeRecord:
		return e.changeBroker(rec.BrokerID, func(b *Broker) bool {
			b.Fenced = *cmp.Or(rec.Fenced, &b.Fenced)
			b.InShutdown = *cmp.Or(rec.InShutdown, &b.InShutdown)
			return true
		})
	case *TopicRecord:
		return e.addTopic(rec)
	case *PartitionRecord:
		return e.addPartition(rec)
	case *PartitionChangeRecord:
		return e.changePartition(rec)
	case *RemoveTopicRecord:
		return e.removeTopic(rec)
	case *ConfigRecord:
		e.setConfig(rec)
	case *ProducerIDsRecord:
		if rec.Next < e.out.nextProducerID {
			return fmt.Errorf("producer ids go back from %d to %d", e.out.nextProducerID, rec.Next)
		}
		e.out.nextProducerID = rec.Next
	case *FeatureLevelRecord:
		e.setFeature(rec)
	case *ClientQuotaRecord:
		e.setQuota(rec)
	case *ScramCredentialRecord:
		e.setScram(rec)
	case *NoOpRecord:
	default:
		return fmt.Errorf("record type %T is not known", rec)
	}
	return nil
}

func (e *edit) registerBroker(rec *RegisterBrokerRecord) {
	old, had := e.out.brokers[rec.BrokerID]
	if !had || old.IncarnationID != rec.IncarnationID {
		e.forgetRemoved(rec.BrokerID)
	}
	e.putBroker(&Broker{
		ID: rec.BrokerID, Epoch: e.out.Offset, IncarnationID: rec.IncarnationID,
		Rack: rec.Rack, Fenced: rec.Fenced, Endpoints: slices.Clone(rec.Endpoints),
	})
}

// forgetRemoved drops a broker from the holders of deleted topics: a broker
// registers after it has set aside the folders of topics that are gone.
func (e *edit) forgetRemoved(broker int32) {
	for id, topic := range e.removed.now.all {
		i := slices.Index(topic.Holders, broker)
		if i < 0 {
			continue
		}
		topic.Holders = slices.Delete(slices.Clone(topic.Holders), i, i+1)
		if len(topic.Holders) == 0 {
			e.removed.remove(id)
		} else {
			e.removed.set(id, topic)
		}
	}
}

func (e *edit) changeBroker(id int32, change func(*Broker) (keep bool)) error {
	old, ok := e.out.brokers[id]
	if !ok {
		return fmt.Errorf("broker %d is not registered", id)
	}
	b := *old
	if change(&b) {
		e.putBroker(&b)
		return nil
	}
	e.ownBrokers(id)
	delete(e.out.brokers, id)
	return nil
}

func (e *edit) putBroker(b *Broker) {
	e.ownBrokers(b.ID)
	e.out.brokers[b.ID] = b
}

func (e *edit) ownBrokers(changed int32) {
	if len(e.brokers) == 0 {
		all := make(map[int32]*Broker, len(e.out.brokers)+1)
		maps.Copy(all, e.out.brokers)
		e.out.brokers = all
	}
	e.brokers[changed] = true
}

func (e *edit) addTopic(rec *TopicRecord) error {
	if _, dup := e.byName.now.get(rec.Name); dup {
		return fmt.Errorf("topic %q exists already", rec.Name)
	}
	if _, dup := e.byID.now.get(rec.ID); dup || rec.ID == (TopicID{}) {
		return fmt.Errorf("topic %q: id %x is taken or zero", rec.Name, rec.ID)
	}
	t := &Topic{Name: rec.Name, ID: rec.ID, Internal: rec.Internal}
	if _, seen := e.touched[t.ID]; !seen {
		e.touched[t.ID] = nil
	}
	e.byName.set(t.Name, t)
	e.byID.set(t.ID, t)
	if canCollide(t.Name) {
		names, _ := e.unified.now.get(unify(t.Name))
		names = append(slices.Clone(names), t.Name)
		slices.Sort(names)
		e.unified.set(unify(t.Name), names)
	}
	return nil
}

// ownTopic is the topic's copy of this batch, made on first touch.
func (e *edit) ownTopic(id TopicID) (*Topic, error) {
	t, ok := e.byID.now.get(id)
	if !ok {
		return nil, fmt.Errorf("topic %x is not known", id)
	}
	if _, mine := e.touched[id]; mine {
		return t, nil
	}
	e.touched[id] = t
	mine := *t
	mine.Partitions = slices.Clone(t.Partitions)
	e.byName.set(mine.Name, &mine)
	e.byID.set(id, &mine)
	return &mine, nil
}

func (e *edit) addPartition(rec *PartitionRecord) error {
	t, err := e.ownTopic(rec.TopicID)
	if err != nil {
		return err
	}
	if int(rec.Index) != len(t.Partitions) {
		return fmt.Errorf("topic %q: partition %d follows %d partitions", t.Name, rec.Index, len(t.Partitions))
	}
	p := rec.Partition
	t.Partitions = append(t.Partitions, &p)
	e.out.partitionCount++
	return nil
}

func (e *edit) changePartition(rec *PartitionChangeRecord) error {
	t, err := e.ownTopic(rec.TopicID)
	if err != nil {
		return err
	}
	old, ok := t.Partition(rec.Index)
	if !ok {
		return fmt.Errorf("topic %q has no partition %d", t.Name, rec.Index)
	}
	p := *old
	p.PartitionEpoch++
	if rec.Leader != nil {
		p.Leader = *rec.Leader
		p.LeaderEpoch++
	}
	for _, f := range []struct {
		to   *[]int32
		from []int32
	}{
		{&p.Replicas, rec.Replicas}, {&p.ISR, rec.ISR}, {&p.ELR, rec.ELR}, {&p.LastKnownELR, rec.LastKnownELR},
		{&p.AddingReplicas, rec.AddingReplicas}, {&p.RemovingReplicas, rec.RemovingReplicas},
	} {
		if f.from != nil {
			*f.to = f.from
		}
	}
	t.Partitions[rec.Index] = &p
	return nil
}

func (e *edit) removeTopic(rec *RemoveTopicRecord) error {
	t, err := e.ownTopic(rec.ID)
	if err != nil {
		return err
	}
	e.byName.remove(t.Name)
	e.byID.remove(t.ID)
	e.forgetName(t.Name)
	e.configs.remove(TopicResource(t.Name))
	delete(e.ownedConfigs, TopicResource(t.Name))
	e.out.partitionCount -= len(t.Partitions)

	var holders []int32
	for _, p := range t.Partitions {
		holders = append(holders, p.Replicas...)
	}
	slices.Sort(holders)
	e.removed.set(t.ID, RemovedTopic{
		Name: t.Name, ID: t.ID, Offset: e.out.Offset, Holders: slices.Compact(holders),
	})
	return nil
}

func (e *edit) forgetName(name string) {
	names, _ := e.unified.now.get(unify(name))
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
	if len(names) == 0 {
		e.unified.remove(unify(name))
	} else {
		e.unified.set(unify(name), names)
	}
}

func (e *edit) setConfig(rec *ConfigRecord) {
	config, mine := e.ownedConfigs[rec.Resource]
	if !mine {
		old, _ := e.configs.now.get(rec.Resource)
		config = make(map[string]string, len(old)+1)
		maps.Copy(config, old)
		e.ownedConfigs[rec.Resource] = config
	}
	if rec.Value == nil {
		delete(config, rec.Name)
	} else {
		config[rec.Name] = *rec.Value
	}
	if len(config) == 0 {
		e.configs.remove(rec.Resource)
	} else {
		e.configs.set(rec.Resource, config)
	}
}

func (e *edit) setFeature(rec *FeatureLevelRecord) {
	if !e.features {
		e.features = true
		all := make(map[string]int16, len(e.out.features)+1)
		maps.Copy(all, e.out.features)
		e.out.features = all
	}
	e.out.features[rec.Name] = rec.Level
}

func (e *edit) finish() (*Image, *Delta) {
	img := e.out
	img.topicsByName, img.topicsByID = e.byName.now, e.byID.now
	img.unified, img.removed, img.configs = e.unified.now, e.removed.now, e.configs.now
	img.quotas, img.scram = e.quotas.now, e.scram.now

	d := &Delta{Features: e.features, Brokers: slices.Sorted(maps.Keys(e.brokers))}
	for id, old := range e.touched {
		now, _ := img.TopicByID(id)
		if old != nil || now != nil {
			d.Topics = append(d.Topics, TopicChange{Old: old, New: now})
		}
	}
	slices.SortFunc(d.Topics, func(a, b TopicChange) int {
		if a.Deleted() != b.Deleted() {
			if a.Deleted() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name(), b.Name())
	})
	d.Configs = slices.SortedFunc(maps.Keys(e.ownedConfigs), compareResources)
	return img, d
}

// trimRemoved forgets the oldest deleted topics once there are twice as many as
// the bound, so that the sort is paid once in maxRemovedTopics deletions.
func (e *edit) trimRemoved() {
	if e.removed.now.size <= 2*maxRemovedTopics {
		return
	}
	all := make([]RemovedTopic, 0, e.removed.now.size)
	for _, t := range e.removed.now.all {
		all = append(all, t)
	}
	slices.SortFunc(all, compareRemoved)
	for _, t := range all[:len(all)-maxRemovedTopics] {
		e.removed.remove(t.ID)
	}
}

func compareRemoved(a, b RemovedTopic) int {
	return cmp.Or(cmp.Compare(a.Offset, b.Offset), slices.Compare(a.ID[:], b.ID[:]))
}
