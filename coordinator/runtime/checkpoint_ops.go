package runtime

import (
	"encoding/binary"

	"github.com/barnabas-mq/barnabas/internal/kv"
)

// newestOps are the changes of one flush, the newest of each key.
type newestOps struct {
	ops []kv.Op
	at  map[string]int
}

func (n *newestOps) add(op kv.Op) {
	if i, ok := n.at[string(op.Key)]; ok {
		n.ops[i] = op
		return
	}
	n.at[string(op.Key)] = len(n.ops)
	n.ops = append(n.ops, op)
}

// apply adds what a span changes, by the rules of Transactional.
func (c *checkpoint) apply(ops *newestOps, s *span) {
	switch {
	case s.ends:
		c.applyMarker(ops, s.producer, s.commit)
	default:
		for _, e := range s.entries {
			if s.producer != noProducer && e.value != nil {
				c.applyOpen(ops, s.producer, e)
				continue
			}
			c.applyRecord(ops, e)
		}
	}
}

// applyRecord makes a record count.
func (c *checkpoint) applyRecord(ops *newestOps, e entry) {
	if e.value == nil {
		ops.add(kv.Op{Key: c.key(recordKey, e.key), Delete: true})
		for _, id := range c.open.producers(string(e.key)) {
			c.closeOpen(ops, id, string(e.key))
		}
		return
	}
	c.open.supersede(string(e.key), e.offset)
	ops.add(kv.Op{Key: c.key(recordKey, e.key), Value: offsetAndValue(e.offset, e.value)})
}

// applyOpen keeps a record until its transaction ends.
func (c *checkpoint) applyOpen(ops *newestOps, producerID int64, e entry) {
	c.open.put(producerID, string(e.key), &pendingRecord{offset: e.offset, value: e.value})
	ops.add(kv.Op{Key: c.key(openKey, pendingKey(producerID, e.key)), Value: offsetAndValue(e.offset, e.value)})
}

// applyMarker ends a transaction.
func (c *checkpoint) applyMarker(ops *newestOps, producerID int64, commit bool) {
	for _, key := range c.open.keys(producerID) {
		r := c.open.byProducer[producerID][key]
		c.closeOpen(ops, producerID, key)
		if commit && !r.superseded {
			c.applyRecord(ops, entry{offset: r.offset, key: []byte(key), value: r.value})
		}
	}
}

func (c *checkpoint) closeOpen(ops *newestOps, producerID int64, key string) {
	c.open.remove(producerID, key)
	ops.add(kv.Op{Key: c.key(openKey, pendingKey(producerID, []byte(key))), Delete: true})
}

func offsetAndValue(offset int64, value []byte) []byte {
	v := make([]byte, offsetBytes, offsetBytes+len(value))
	binary.BigEndian.PutUint64(v, uint64(offset))
	return append(v, value...)
}
