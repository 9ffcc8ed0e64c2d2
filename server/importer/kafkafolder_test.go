package importer

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// kafkaFolder writes a data folder as Apache Kafka does.
type kafkaFolder struct {
	t    testing.TB
	fs   *vfs.Mem
	dir  string
	node int32
	// metadata are the records of the metadata log, ends the logs' ends.
	metadata [][]byte
	ends     storage.OffsetCheckpoint
	starts   storage.OffsetCheckpoint
}

const testCluster = "Y29tcGF0LXRlc3RzLTAwMQ"

func newKafkaFolder(t testing.TB, fs *vfs.Mem, dir string) *kafkaFolder {
	k := &kafkaFolder{t: t, fs: fs, dir: dir, node: 1, ends: storage.OffsetCheckpoint{}, starts: storage.OffsetCheckpoint{}}
	k.feature("metadata.version", 25)
	return k
}

func (k *kafkaFolder) put(name string, b []byte) {
	k.t.Helper()
	name = filepath.Join(k.dir, name)
	if err := vfs.MkdirAllSync(k.fs, filepath.Dir(name), 0o755); err != nil {
		k.t.Fatal(err)
	}
	f, err := k.fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		k.t.Fatal(err)
	}
	for _, err := range []error{f.Sync(), f.Close(), k.fs.SyncDir(filepath.Dir(name))} {
		if err != nil {
			k.t.Fatal(err)
		}
	}
}

// stop writes what a broker leaves when it ends, cleanly or not.
func (k *kafkaFolder) stop(clean bool) {
	k.put("meta.properties", []byte(fmt.Sprintf("#\nnode.id=%d\nversion=1\ncluster.id=%s\ndirectory.id=airqk-e3gWjRWJDYVo4rAw\n", k.node, testCluster)))
	k.put(".lock", nil)
	k.put("log-start-offset-checkpoint", k.starts.Encode())
	k.put("__cluster_metadata-0/"+segment.FileName(0, segment.LogSuffix), k.log(0, k.metadata...))
	if clean {
		k.put(".kafka_cleanshutdown", []byte(`{"version":0,"brokerEpoch":9}`))
		k.put("recovery-point-offset-checkpoint", k.ends.Encode())
	}
}

// log is one batch of values after each other.
func (k *kafkaFolder) log(base int64, values ...[]byte) []byte {
	var out []byte
	for i, v := range values {
		b := batch.NewBuilder(batch.BuilderOptions{BaseOffset: base + int64(i), LeaderEpoch: 1})
		b.Add(1000, nil, v)
		out = append(out, b.Build()...)
	}
	return out
}

// rec begins a metadata record.
func rec(kind, version uint64) []byte {
	b := binary.AppendUvarint(nil, frameVersion)
	b = binary.AppendUvarint(b, kind)
	return binary.AppendUvarint(b, version)
}

func str(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s)+1)), s...)
}

func i32(b []byte, v ...int32) []byte {
	for _, v := range v {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func i32s(b []byte, v ...int32) []byte {
	return i32(binary.AppendUvarint(b, uint64(len(v)+1)), v...)
}

const noTags = 0

func (k *kafkaFolder) feature(name string, level uint16) {
	b := binary.BigEndian.AppendUint16(str(rec(recordFeatureLevel, 0), name), level)
	k.metadata = append(k.metadata, append(b, noTags))
}

// topic makes a topic with partitions on this node.
func (k *kafkaFolder) topic(name string, id storage.TopicID, partitions int32, configs ...string) {
	k.metadata = append(k.metadata, append(append(str(rec(recordTopic, 0), name), id[:]...), noTags))
	for p := range partitions {
		k.metadata = append(k.metadata, partitionRecord(id, p, 1, k.node))
		k.put(fmt.Sprintf("%s-%d/partition.metadata", name, p), storage.EncodePartitionMetadata(id))
	}
	for i := 0; i < len(configs); i += 2 {
		k.config(name, configs[i], &configs[i+1])
	}
}

func partitionRecord(id storage.TopicID, index int32, version uint64, nodes ...int32) []byte {
	b := append(i32(rec(recordPartition, version), index), id[:]...)
	b = i32s(i32s(i32s(i32s(b, nodes...), nodes...)), []int32{}...)
	b = i32(b, nodes[0], 7, 3) // leader, its epoch, partition epoch
	if version >= 1 {
		b = append(binary.AppendUvarint(b, 2), make([]byte, 16)...) // one directory
	}
	return append(b, noTags)
}

func (k *kafkaFolder) config(topic, name string, value *string) {
	b := str(str(append(rec(recordConfig, 0), resourceTopic), topic), name)
	if value == nil {
		b = append(b, 0)
	} else {
		b = str(b, *value)
	}
	k.metadata = append(k.metadata, append(b, noTags))
}

// segment writes a partition's segment.
func (k *kafkaFolder) segment(topic string, partition int32, base int64, b []byte) {
	k.put(fmt.Sprintf("%s-%d/%s", topic, partition, segment.FileName(base, segment.LogSuffix)), b)
}

// batches are n batches of three records each; with a producer they are his,
// with txn in a transaction.
func batches(base int64, n int, producer int64, txn bool) []byte {
	var out []byte
	for i := range n {
		o := batch.BuilderOptions{BaseOffset: base + int64(3*i), LeaderEpoch: 5, Codec: batch.Codec(i % 3), Transactional: txn}
		if producer >= 0 {
			o.Producer = &batch.ProducerStamp{ID: producer, Epoch: 2, BaseSequence: int32(3 * i)}
		}
		b := batch.NewBuilder(o)
		for j := range 3 {
			offset := base + int64(3*i+j)
			b.Add(1_700_000_000_000+offset, []byte(fmt.Sprint("k", offset%4)), []byte(strings.Repeat(fmt.Sprint("value ", offset, " "), 20)), batch.Header{Key: "h"})
		}
		out = append(out, b.Build()...)
	}
	return out
}

func markerAt(offset, producer int64, commit bool) []byte {
	v := batch.NewMarker(batch.MarkerOptions{Marker: batch.Marker{Commit: commit, CoordinatorEpoch: 4}, ProducerID: producer, ProducerEpoch: 2, TimestampMs: 1_700_000_000_000})
	v.SetBaseOffset(offset)
	v.SetPartitionLeaderEpoch(5)
	return v
}

// offsets writes committed offsets to the only partition of their topic.
type offsetsWriter struct {
	log  []byte
	next int64
}

func (w *offsetsWriter) commit(groupID, topic string, id storage.TopicID, partition int32, offset, producer int64) {
	v := kmsg.NewOffsetCommitValue()
	v.Version, v.Offset, v.LeaderEpoch, v.Metadata, v.CommitTimestamp, v.TopicID = 4, offset, 3, "m", 1_700_000_000_000, id
	key, value := group.Codec{}.Encode(group.Record{IsOffset: true, Group: groupID, Topic: topic, Partition: partition, Offset: &v})
	o := batch.BuilderOptions{BaseOffset: w.next}
	if producer >= 0 {
		o.Transactional, o.Producer = true, &batch.ProducerStamp{ID: producer, Epoch: 2}
	}
	b := batch.NewBuilder(o)
	b.Add(0, key, value)
	w.log = append(w.log, b.Build()...)
	w.next++
}

func (w *offsetsWriter) members(groupID string, generation int32) {
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Generation, v.CurrentStateTimestamp = 3, "consumer", generation, 1_699_000_000_000
	key, value := group.Codec{}.Encode(group.Record{Group: groupID, Metadata: &v})
	b := batch.NewBuilder(batch.BuilderOptions{BaseOffset: w.next})
	b.Add(0, key, value)
	w.log = append(w.log, b.Build()...)
	w.next++
}

func (w *offsetsWriter) mark(producer int64, commit bool) {
	w.log = append(w.log, markerAt(w.next, producer, commit)...)
	w.next++
}

// tree is every file below a folder with its content.
func tree(t testing.TB, fs vfs.FS, dir string) string {
	t.Helper()
	var out []string
	var walk func(string)
	walk = func(at string) {
		entries, err := fs.ReadDir(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := filepath.Join(at, e.Name())
			if e.IsDir() {
				walk(name)
				continue
			}
			b, err := (&Source{fs: fs}).readFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s %x", name, b))
		}
	}
	walk(dir)
	slices.Sort(out)
	return strings.Join(out, "\n")
}
