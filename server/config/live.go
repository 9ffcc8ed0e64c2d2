package config

import (
	"strconv"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// Live holds the newest Snapshot. The metadata publisher swaps it; anyone reads
// it, without a lock.
type Live struct {
	static  *Static
	nodeID  int32
	current atomic.Pointer[Snapshot]
}

// NewLive starts with what the broker was started with.
func NewLive(static *Static) *Live {
	l := &Live{static: static}
	s := static.Snapshot()
	l.nodeID = NodeID.Get(s)
	l.current.Store(s)
	return l
}

// Snapshot is the newest one; read it once for each piece of work.
func (l *Live) Snapshot() *Snapshot { return l.current.Load() }

// Static is what the broker was started with.
func (l *Live) Static() *Static { return l.static }

// OnMetadata takes over what was set on this broker and on all brokers; it
// implements metadata.Publisher.
func (l *Live) OnMetadata(d *metadata.Delta, img *metadata.Image) {
	for _, r := range d.Configs {
		if r.Type == metadata.ResourceBroker && (r.Name == "" || r.Name == l.name()) {
			l.current.Store(l.SnapshotOf(img))
			return
		}
	}
}

// SnapshotOf is the configuration as img has it.
func (l *Live) SnapshotOf(img *metadata.Image) *Snapshot {
	own := img.Config(metadata.BrokerResource(l.nodeID))
	all := img.Config(metadata.ConfigResource{Type: metadata.ResourceBroker})
	return NewSnapshot(l.static, own, all)
}

func (l *Live) name() string { return strconv.Itoa(int(l.nodeID)) }

// Topic is the newest configuration of a topic; img says what is set on it.
func (l *Live) Topic(img *metadata.Image, name string) *TopicConfig {
	return l.Snapshot().Topic(name, img.TopicConfig(name))
}
