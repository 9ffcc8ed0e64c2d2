package metadata

// Delta is what one step changed. The first delta a publisher sees goes from an
// empty image to the whole of the loaded one.
type Delta struct {
	// Topics are the topics that were made, deleted or had a partition changed,
	// deleted ones first, then sorted by name. A topic that was deleted and
	// made again under its name stands here twice, with two ids.
	Topics []TopicChange
	// Configs are the resources whose configs changed, sorted. A deleted
	// topic's configs go without being named.
	Configs []ConfigResource
	// Brokers are the brokers that were registered, changed or removed, sorted.
	Brokers []int32
	// Features says that a finalized feature level changed.
	Features bool
}

// TopicChange is a topic before and after.
type TopicChange struct {
	// Old is nil for a topic that was made.
	Old *Topic
	// New is nil for a topic that was deleted.
	New *Topic
}

// ID is the id of the topic that changed.
func (c TopicChange) ID() TopicID {
	if c.New != nil {
		return c.New.ID
	}
	return c.Old.ID
}

// Name is the name of the topic that changed.
func (c TopicChange) Name() string {
	if c.New != nil {
		return c.New.Name
	}
	return c.Old.Name
}

// Created says that the topic was made.
func (c TopicChange) Created() bool { return c.Old == nil }

// Deleted says that the topic was deleted.
func (c TopicChange) Deleted() bool { return c.New == nil }

// Partitions goes over the partitions that were made or changed, with nil as the
// old state of one that was made. A deleted topic yields none.
func (c TopicChange) Partitions(yield func(old, now *Partition) bool) {
	if c.New == nil {
		return
	}
	for i, now := range c.New.Partitions {
		var old *Partition
		if c.Old != nil && i < len(c.Old.Partitions) {
			old = c.Old.Partitions[i]
		}
		if old != now && !yield(old, now) {
			return
		}
	}
}

// Publisher is told of every new image, in a fixed order, from one goroutine. An
// answer to a request that changed metadata goes out only after all publishers
// ran.
type Publisher interface {
	OnMetadata(d *Delta, img *Image)
}

// Whole is the delta from an empty image to img.
func Whole(img *Image) *Delta {
	d := &Delta{Configs: img.ConfigResources(), Features: len(img.features) > 0}
	for t := range img.Topics() {
		d.Topics = append(d.Topics, TopicChange{New: t})
	}
	for _, b := range img.Brokers() {
		d.Brokers = append(d.Brokers, b.ID)
	}
	return d
}
