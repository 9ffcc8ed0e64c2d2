package replica

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/storage"
)

// openers bounds the logs that one metadata change opens at the same time.
const openers = 8

// OnMetadata makes the partitions what the image says: it opens the logs of new
// topics, so that who created one finds it served, gives partitions their role,
// and deletes what is gone. The logs of the first image are opened when they are
// used.
func (m *Manager) OnMetadata(d *metadata.Delta, img *metadata.Image) {
	var fresh []*Partition
	var roles []func()
	var deleted []*metadata.Topic
	for _, c := range d.Topics {
		if c.Deleted() {
			m.deleteTopic(c.Old)
			deleted = append(deleted, c.Old)
			continue
		}
		parts, changes := m.changeTopic(c, img)
		fresh, roles = append(fresh, parts...), append(roles, changes...)
	}
	m.reconfigure(d, img)
	if m.started {
		m.openAll(fresh, nil)
	}
	m.started = true
	if m.hooks.TopicsDeleted != nil && len(deleted) > 0 {
		m.hooks.TopicsDeleted(deleted)
	}
	for _, tell := range roles {
		tell()
	}
}

// changeTopic takes a topic's new and changed partitions. fresh are those that
// this broker did not have before, roles tells the hooks.
func (m *Manager) changeTopic(c metadata.TopicChange, img *metadata.Image) (fresh []*Partition, roles []func()) {
	t := c.New
	have := m.topic(t.Name)
	next := &topicPartitions{id: t.ID, parts: make([]*Partition, len(t.Partitions))}
	if have != nil && have.id == t.ID {
		copy(next.parts, have.parts)
	}
	var cfg *TopicConfig
	for _, now := range c.Partitions {
		p := next.parts[now.Index]
		if !slices.Contains(now.Replicas, m.o.NodeID) {
			next.parts[now.Index] = nil
			m.drop(p)
			continue
		}
		if p == nil {
			if cfg == nil {
				made := m.o.TopicConfig(img, t.Name)
				cfg = &made
			}
			p = newPartition(m, storage.TopicPartition{Topic: t.Name, Partition: now.Index}, t, cfg)
			next.parts[now.Index] = p
			fresh = append(fresh, p)
		}
		led, leads := p.setState(now)
		roles = append(roles, m.tell(p, now.LeaderEpoch, led, leads)...)
	}
	m.set(t.Name, next)
	return fresh, roles
}

// tell is the call of a hook that a change of an internal partition asks for.
func (m *Manager) tell(p *Partition, epoch int32, led, leads bool) []func() {
	hook := m.hooks.Elected
	if !leads {
		hook = m.hooks.Resigned
	}
	if !p.internal || hook == nil || !led && !leads {
		return nil
	}
	return []func(){func() { hook(p.tp.Topic, p.tp.Partition, epoch) }}
}

func (m *Manager) deleteTopic(t *metadata.Topic) {
	have := m.topic(t.Name)
	if have == nil || have.id != t.ID {
		return
	}
	m.set(t.Name, nil)
	for _, p := range have.parts {
		m.drop(p)
	}
}

// drop ends a partition that this broker holds no more; its files go later.
func (m *Manager) drop(p *Partition) {
	if p == nil {
		return
	}
	_, epoch := p.Leader()
	p.delete()
	if p.internal && m.hooks.Resigned != nil {
		m.hooks.Resigned(p.tp.Topic, p.tp.Partition, epoch)
	}
	// Who opens the log just now would leave it open, whoever comes later does not.
	p.turn <- struct{}{}
	<-p.turn
	if err := m.o.Store.Delete(p.tp); err != nil {
		m.o.Log.Error("the files of a deleted partition could not be set aside", slog.String("partition", p.tp.String()), slog.Any("error", err))
	}
}

// OpenAll opens the logs that nobody has used yet, so that retention knows them
// and recovery after a crash goes on in the background. It returns early when
// stop is closed.
func (m *Manager) OpenAll(stop <-chan struct{}) {
	parts := m.All()
	slices.SortFunc(parts, func(a, b *Partition) int {
		return cmp.Or(cmp.Compare(a.tp.Topic, b.tp.Topic), cmp.Compare(a.tp.Partition, b.tp.Partition))
	})
	m.openAll(parts, stop)
}

// openAll opens partitions' logs. One that can't be opened answers with the error
// until it can.
func (m *Manager) openAll(parts []*Partition, stop <-chan struct{}) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, openers)
	for _, p := range parts {
		select {
		case <-stop:
			return
		case slots <- struct{}{}:
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := p.ensure(); err != nil {
				m.o.Log.Error("a partition's log could not be opened", slog.String("partition", p.tp.String()), slog.Any("error", err))
			}
		})
	}
}

// reconfigure gives changed topics their configuration; a change of a broker's
// defaults concerns all.
func (m *Manager) reconfigure(d *metadata.Delta, img *metadata.Image) {
	if !m.started {
		return // every partition was made with this image's configuration
	}
	all := false
	for _, r := range d.Configs {
		switch r.Type {
		case metadata.ResourceTopic:
			m.configureTopic(img, r.Name, m.topic(r.Name))
		case metadata.ResourceBroker:
			all = true
		}
	}
	if !all {
		return
	}
	for t := range img.Topics() {
		m.configureTopic(img, t.Name, m.topic(t.Name))
	}
}

func (m *Manager) configureTopic(img *metadata.Image, name string, t *topicPartitions) {
	if t == nil {
		return
	}
	cfg := m.o.TopicConfig(img, name)
	for _, p := range t.parts {
		if p != nil {
			p.configure(&cfg)
		}
	}
}
