package runtime

import (
	"encoding/binary"
	"maps"
	"slices"
)

// pending are the records of open transactions that a checkpoint has, by
// producer. The store has them too; in memory they are at hand when the marker
// comes.
type pending struct {
	byProducer map[int64]map[string]*pendingRecord
	// byKey says which producers have something pending for a record's key.
	byKey map[string]map[int64]struct{}
}

type pendingRecord struct {
	offset int64
	value  []byte
	// superseded says that something newer counts for the key already.
	superseded bool
}

func newPending() pending {
	return pending{byProducer: map[int64]map[string]*pendingRecord{}, byKey: map[string]map[int64]struct{}{}}
}

func (p *pending) put(producerID int64, key string, r *pendingRecord) {
	if p.byProducer[producerID] == nil {
		p.byProducer[producerID] = map[string]*pendingRecord{}
	}
	p.byProducer[producerID][key] = r
	if p.byKey[key] == nil {
		p.byKey[key] = map[int64]struct{}{}
	}
	p.byKey[key][producerID] = struct{}{}
}

func (p *pending) remove(producerID int64, key string) {
	delete(p.byProducer[producerID], key)
	if len(p.byProducer[producerID]) == 0 {
		delete(p.byProducer, producerID)
	}
	delete(p.byKey[key], producerID)
	if len(p.byKey[key]) == 0 {
		delete(p.byKey, key)
	}
}

// producers are those with something pending for a key, in order.
func (p *pending) producers(key string) []int64 {
	return slices.Sorted(maps.Keys(p.byKey[key]))
}

// keys are what a producer has pending, in order.
func (p *pending) keys(producerID int64) []string {
	return slices.Sorted(maps.Keys(p.byProducer[producerID]))
}

// supersede marks what is older than a record that counts from now on.
func (p *pending) supersede(key string, offset int64) {
	for id := range p.byKey[key] {
		if r := p.byProducer[id][key]; r.offset < offset {
			r.superseded = true
		}
	}
}

// pendingKey is where the store has a pending record, below its prefix.
func pendingKey(producerID int64, key []byte) []byte {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(key)), uint64(producerID))
	return append(k, key...)
}
