package replica

import (
	"log/slog"
	"sync"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/storage"
)

// Options are what a Manager works with.
type Options struct {
	NodeID int32
	Store  Store
	Clock  clock.Clock
	Log    *slog.Logger
	// Pool runs the waits of AppendThen.
	Pool *park.Pool
	// TopicConfig says what a topic's configuration in an image means.
	TopicConfig func(img *metadata.Image, topic string) TopicConfig
}

// Hooks tell others what changed, after the partitions know it, from the
// metadata's publisher. Each may be nil.
type Hooks struct {
	// Elected and Resigned tell that this broker begins or ends to lead a
	// partition of an internal topic, or leads it at a new epoch.
	Elected, Resigned func(topic string, partition, leaderEpoch int32)
	// TopicsDeleted tells of topics that are gone.
	TopicsDeleted func(topics []*metadata.Topic)
}

// Manager holds the partitions of one broker. OnMetadata is called from one
// goroutine; everything else is safe for concurrent use.
type Manager struct {
	o     Options
	hooks Hooks
	// started says that the first image was seen.
	started bool

	mu     sync.RWMutex
	topics map[string]*topicPartitions
}

// topicPartitions is indexed by partition number, nil where this broker holds no
// replica. It is replaced, never changed.
type topicPartitions struct {
	id    storage.TopicID
	parts []*Partition
}

var _ metadata.Publisher = (*Manager)(nil)

// NewManager has no partitions until OnMetadata names some.
func NewManager(o Options, hooks Hooks) *Manager {
	return &Manager{o: o, hooks: hooks, topics: map[string]*topicPartitions{}}
}

// Partition finds a partition that this broker holds.
func (m *Manager) Partition(topic string, partition int32) (*Partition, bool) {
	m.mu.RLock()
	t := m.topics[topic]
	m.mu.RUnlock()
	if t == nil || partition < 0 || int(partition) >= len(t.parts) || t.parts[partition] == nil {
		return nil, false
	}
	return t.parts[partition], true
}

// All lists the partitions that this broker holds.
func (m *Manager) All() []*Partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []*Partition
	for _, t := range m.topics {
		for _, p := range t.parts {
			if p != nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// LogChanged is to be called by the storage when a log goes offline or is back:
// whoever waits for it looks again, and its ends are read anew.
func (m *Manager) LogChanged(tp storage.TopicPartition) {
	if p, ok := m.Partition(tp.Topic, tp.Partition); ok {
		p.fail()
	}
}

func (m *Manager) set(topic string, t *topicPartitions) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t == nil {
		delete(m.topics, topic)
		return
	}
	m.topics[topic] = t
}

func (m *Manager) topic(name string) *topicPartitions {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.topics[name]
}
