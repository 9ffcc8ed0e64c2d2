package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

// A checkpoint is, under one prefix per partition: the key "m" with what it
// stands for, for each record key "r" + key with the record's offset and value,
// and for each record of an open transaction "p" + producer id + key with the
// same. Tombstones are absent. Version 1 knew nothing of transactions.
const (
	metaKey     = 'm'
	recordKey   = 'r'
	openKey     = 'p'
	metaVersion = 2
	metaBytes   = 1 + 16 + 8 + 4
	offsetBytes = 8
)

// A checkpoint is stored flushEvery after something was committed, and at once
// when there are flushBytes: a busy group commits the same offsets again and
// again, and only the newest are worth storing.
const (
	flushEvery = time.Second
	flushBytes = 1 << 20
)

var errDamaged = errors.New("the checkpoint is damaged")

// entry is one record as the log has it.
type entry struct {
	offset     int64
	key, value []byte
}

// span is what one append left for the checkpoint: records, or the marker that
// ends a transaction.
type span struct {
	end     int64
	epoch   int32
	entries []entry
	// producer is whose transaction it is about, noProducer for plain records.
	producer     int64
	ends, commit bool
}

// checkpoint stores one partition's records below the high watermark.
type checkpoint struct {
	kv      KV
	prefix  []byte
	topicID [16]byte
	log     *slog.Logger
	name    string
	// spans is what was replayed and not stored yet, spanBytes its size.
	spans     []span
	spanBytes int
	// open are the records of open transactions that are stored.
	open pending
	// writes and failures are counted; both may be nil.
	writes, failures *telemetry.Counter
}

// meta says up to where the log is in the checkpoint.
type meta struct {
	topicID [16]byte
	// offset is the next record to replay, epoch the leader epoch of the last
	// one that was.
	offset int64
	epoch  int32
}

func checkpointPrefix(prefix string, partition int32) []byte {
	return binary.BigEndian.AppendUint32([]byte(prefix), uint32(partition))
}

func newCheckpoint(store KV, prefix []byte, topicID [16]byte, log *slog.Logger, name string) *checkpoint {
	return &checkpoint{kv: store, prefix: prefix, topicID: topicID, log: log, name: name, open: newPending()}
}

func (c *checkpoint) key(kind byte, key []byte) []byte {
	k := make([]byte, 0, len(c.prefix)+1+len(key))
	return append(append(append(k, c.prefix...), kind), key...)
}

// fits tells whether the log still has the checkpoint's last record: it may have
// lost its tail, been truncated to another leader's, or belong to a topic that
// was created again. And the checkpoint may be an old one, because the store has lost
// its end: what compaction has removed since, tombstones and markers, is not heard of.
func (m meta) fits(log Log) error {
	switch epoch, end := log.EndOffsetForEpoch(m.epoch); {
	case m.topicID != log.TopicID():
		return fmt.Errorf("it is of topic %x, the log of %x", m.topicID, log.TopicID())
	case m.offset < log.LogStartOffset() || m.offset > log.LogEndOffset():
		return fmt.Errorf("it goes up to %d, the log from %d to %d", m.offset, log.LogStartOffset(), log.LogEndOffset())
	case m.offset < log.CompactedTo():
		return fmt.Errorf("it goes up to %d, the log is compacted up to %d", m.offset, log.CompactedTo())
	case epoch != m.epoch || m.offset > end:
		return fmt.Errorf("it goes up to %d in leader epoch %d, the log's epoch %d ends at %d", m.offset, m.epoch, epoch, end)
	}
	return nil
}

func (c *checkpoint) meta() (m meta, ok bool, err error) {
	if c.kv == nil {
		return m, false, nil
	}
	b, ok, err := c.kv.Get(c.key(metaKey, nil))
	if err != nil || !ok {
		return m, false, err
	}
	if len(b) != metaBytes || b[0] != metaVersion {
		return m, false, errDamaged
	}
	copy(m.topicID[:], b[1:])
	m.offset = int64(binary.BigEndian.Uint64(b[17:]))
	m.epoch = int32(binary.BigEndian.Uint32(b[25:]))
	return m, true, nil
}

// scan calls fn with every record until it returns false.
func (c *checkpoint) scan(fn func(entry) bool) error {
	return c.scanKind(recordKey, fn)
}

// scanOpen calls fn with every record of an open transaction, and keeps them at
// hand.
func (c *checkpoint) scanOpen(fn func(producerID int64, e entry) bool) error {
	var bad error
	err := c.scanKind(openKey, func(e entry) bool {
		if len(e.key) < 8 {
			bad = errDamaged
			return false
		}
		id := int64(binary.BigEndian.Uint64(e.key))
		e.key = e.key[8:]
		var newer bool
		if newer, bad = c.hasNewer(e); bad != nil {
			return false
		}
		c.open.put(id, string(e.key), &pendingRecord{offset: e.offset, value: slices.Clone(e.value), superseded: newer})
		return fn(id, e)
	})
	return errors.Join(err, bad)
}

// hasNewer tells whether the record that counts for a key is newer than e.
func (c *checkpoint) hasNewer(e entry) (bool, error) {
	v, ok, err := c.kv.Get(c.key(recordKey, e.key))
	if err != nil || !ok {
		return false, err
	}
	if len(v) < offsetBytes {
		return false, errDamaged
	}
	return int64(binary.BigEndian.Uint64(v)) > e.offset, nil
}

func (c *checkpoint) scanKind(kind byte, fn func(entry) bool) error {
	prefix := c.key(kind, nil)
	var bad error
	err := c.kv.Scan(prefix, func(key, value []byte) bool {
		if len(value) < offsetBytes {
			bad = errDamaged
			return false
		}
		return fn(entry{offset: int64(binary.BigEndian.Uint64(value)), key: key[len(prefix):], value: value[offsetBytes:]})
	})
	return errors.Join(err, bad)
}

// add notes what was appended or read.
func (c *checkpoint) add(s span) {
	if c.kv == nil {
		return
	}
	c.spans = append(c.spans, s)
	c.spanBytes += s.sizeBytes()
}

func (s *span) sizeBytes() (n int) {
	for _, e := range s.entries {
		n += len(e.key) + len(e.value)
	}
	return n
}

// flush stores what lies below the high watermark, the newest of each key only
// and without waiting for the disk: what a crash loses is replayed from the log.
func (c *checkpoint) flush(highWatermark int64) {
	n := 0
	ops := newestOps{at: map[string]int{}}
	for n < len(c.spans) && c.spans[n].end <= highWatermark {
		c.spanBytes -= c.spans[n].sizeBytes()
		c.apply(&ops, &c.spans[n])
		n++
	}
	if n == 0 {
		return
	}
	last := c.spans[n-1]
	if c.spans = c.spans[n:]; len(c.spans) == 0 {
		c.spans = nil
	}
	if err := c.kv.Apply(append(ops.ops, c.metaOp(last)), false); err != nil {
		c.abandon(err)
		return
	}
	c.writes.Inc()
}

// metaOp says that the checkpoint has everything up to a span.
func (c *checkpoint) metaOp(last span) kv.Op {
	m := make([]byte, 0, metaBytes)
	m = append(m, metaVersion)
	m = append(m, c.topicID[:]...)
	m = binary.BigEndian.AppendUint64(m, uint64(last.end))
	m = binary.BigEndian.AppendUint32(m, uint32(last.epoch))
	return kv.Op{Key: c.key(metaKey, nil), Value: m}
}

// abandon stops keeping the checkpoint: from here on it would have a hole. What
// is stored stays good, it is only older.
func (c *checkpoint) abandon(err error) {
	c.log.Error("checkpoint is kept no longer, the next load replays more of the log", "partition", c.name, "err", err)
	c.failures.Inc()
	c.kv, c.spans = nil, nil
}

// drop removes the checkpoint, before the log is replayed whole.
func (c *checkpoint) drop() {
	c.open = newPending()
	if err := dropCheckpoint(c.kv, c.prefix); err != nil {
		c.abandon(err)
	}
}

func dropCheckpoint(store KV, prefix []byte) error {
	if store == nil {
		return nil
	}
	op := kv.Op{Key: prefix, End: kv.PrefixEnd(prefix), Delete: true}
	if err := store.Apply([]kv.Op{op}, false); err != nil {
		return fmt.Errorf("drop a checkpoint: %w", err)
	}
	return nil
}
