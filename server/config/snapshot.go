package config

import (
	"math"
	"sync"
)

// Snapshot is the configuration of one broker at one moment. It never changes;
// Live swaps in the next one whole.
type Snapshot struct {
	static *Static
	// broker and cluster are what is set on this broker and on all brokers.
	broker, cluster map[string]string

	// raw holds each broker's key as set, resolved with its fallbacks filled
	// in; both by Decl.id, nil for null.
	raw, resolved []any

	topics topicCache
}

// NewSnapshot puts what is set while the broker runs over what it was started
// with: on this broker first, then on all brokers. A value that its key does not
// take counts as not set; the controller refuses such values.
func NewSnapshot(static *Static, broker, cluster map[string]string) *Snapshot {
	s := &Snapshot{static: static, broker: broker, cluster: cluster}
	s.raw = make([]any, len(brokerKeys.list))
	s.resolved = make([]any, len(brokerKeys.list))
	for _, d := range brokerKeys.list {
		s.raw[d.id] = s.lookup(d)
	}
	for _, d := range brokerKeys.list {
		s.resolved[d.id] = s.resolve(d)
	}
	s.topics.plain = s.topic(nil)
	return s
}

// lookup finds the value that counts for one key alone.
func (s *Snapshot) lookup(d *Decl) any {
	for _, set := range []map[string]string{s.broker, s.cluster} {
		if text, ok := set[d.Name]; ok && d.Scope != ReadOnly {
			if v, err := d.Parse(text); err == nil {
				return v
			}
		}
	}
	if set, ok := s.static.values[d.Name]; ok {
		return set
	}
	return d.Default
}

// resolve fills a null from the keys that stand in for it.
func (s *Snapshot) resolve(d *Decl) any {
	if v := s.raw[d.id]; v != nil {
		return v
	}
	for _, f := range d.Fallback {
		var n int64
		switch v := s.raw[brokerKeys.byName[f.Name].id].(type) {
		case int32:
			n = int64(v)
		case int64:
			n = v
		default:
			continue
		}
		n = scale(n, f.Times)
		if d.Type == TypeInt {
			return int32(min(n, math.MaxInt32))
		}
		return n
	}
	return nil
}

// scale multiplies without overflow; everything below zero means no limit.
func scale(n, times int64) int64 {
	switch {
	case n < 0:
		return -1
	case n > math.MaxInt64/times:
		return math.MaxInt64
	}
	return n * times
}

// Get is the key's value; the zero value when it is null.
func (k *Key[T]) Get(s *Snapshot) T {
	v, _ := k.Lookup(s)
	return v
}

// Lookup is the key's value; false when it is null.
func (k *Key[T]) Lookup(s *Snapshot) (T, bool) {
	v, ok := s.resolved[k.decl.id].(T)
	return v, ok
}

// forTopic is the value for a topic on which overrides are set.
func (k *Key[T]) forTopic(s *Snapshot, overrides map[string]string) T {
	if text, ok := overrides[k.topic.Name]; ok {
		if v, err := k.topic.Parse(text); err == nil {
			return v.(T)
		}
	}
	if k.decl != nil {
		if v, ok := k.Lookup(s); ok {
			return v
		}
		var zero T
		return zero
	}
	v, _ := k.topic.Default.(T)
	return v
}

// topicCache remembers the topics' parsed configurations.
type topicCache struct {
	plain *TopicConfig

	mu     sync.Mutex
	byName map[string]cachedTopic
}

// maxCachedTopics bounds the cache; a full one starts again from empty.
const maxCachedTopics = 1 << 16

type cachedTopic struct {
	overrides map[string]string
	config    *TopicConfig
}

// DataDir is the data folder: log.dirs, or log.dir where that is not set.
func (s *Snapshot) DataDir() string {
	if folders, ok := LogDirs.Lookup(s); ok && len(folders) > 0 {
		return folders[0]
	}
	return LogDir.Get(s)[0]
}
