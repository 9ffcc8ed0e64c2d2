package metadata

import "hash/maphash"

// shardCount keeps a change cheap: it copies one shard of the entries and the
// array of shards, not the whole map. With 10,000 topics a shard holds 40.
const shardCount = 256

// shards is a map that never changes; with and without return a changed copy
// that shares all but one shard with the original.
type shards[K comparable, V any] struct {
	parts *[shardCount]map[K]V
	size  int
}

var shardSeed = maphash.MakeSeed()

func shardOf[K comparable](key K) int {
	return int(maphash.Comparable(shardSeed, key) % shardCount)
}

func (s shards[K, V]) get(key K) (V, bool) {
	if s.parts == nil {
		var none V
		return none, false
	}
	v, ok := s.parts[shardOf(key)][key]
	return v, ok
}

func (s shards[K, V]) all(yield func(K, V) bool) {
	if s.parts == nil {
		return
	}
	for _, part := range s.parts {
		for k, v := range part {
			if !yield(k, v) {
				return
			}
		}
	}
}

// shardEdit collects changes to a shards; each touched shard is copied once,
// and nothing is copied when nothing changes.
type shardEdit[K comparable, V any] struct {
	now    shards[K, V]
	copied map[int]bool
}

func (e *shardEdit[K, V]) own(i int) map[K]V {
	if e.copied == nil {
		e.copied = map[int]bool{}
		parts := new([shardCount]map[K]V)
		if e.now.parts != nil {
			*parts = *e.now.parts
		}
		e.now.parts = parts
	}
	if !e.copied[i] {
		e.copied[i] = true
		part := make(map[K]V, len(e.now.parts[i])+1)
		for k, v := range e.now.parts[i] {
			part[k] = v
		}
		e.now.parts[i] = part
	}
	return e.now.parts[i]
}

func (e *shardEdit[K, V]) set(key K, value V) {
	part := e.own(shardOf(key))
	if _, had := part[key]; !had {
		e.now.size++
	}
	part[key] = value
}

func (e *shardEdit[K, V]) remove(key K) {
	if _, had := e.now.get(key); !had {
		return
	}
	delete(e.own(shardOf(key)), key)
	e.now.size--
}
