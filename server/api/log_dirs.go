package api

import (
	"cmp"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/storage"
)

// LogDir describes the data folder.
type LogDir interface {
	// Dir is its absolute path.
	Dir() string
	// Usage is the space of the file system that it is on.
	Usage() (freeBytes, totalBytes uint64, err error)
	// Sizes are the sizes of all partitions in it.
	Sizes() map[storage.TopicPartition]int64
	// Compaction is how far the compaction of a partition is; ok is false when it
	// is not compacted.
	Compaction(tp storage.TopicPartition) (state storage.CompactionState, ok bool)
}

// describeLogDirs serves DescribeLogDirs v0 to v5 (KIP-113, 827): one folder. A
// null list of topics asks for all.
func (h *Handlers) describeLogDirs(c *Call, req *kmsg.DescribeLogDirsRequest, resp *kmsg.DescribeLogDirsResponse) {
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir = h.LogDir.Dir()
	dir.UsableBytes, dir.TotalBytes = -1, -1 // unknown, as in Kafka
	if free, total, err := h.LogDir.Usage(); err == nil {
		dir.UsableBytes, dir.TotalBytes = int64(min(free, math.MaxInt64)), int64(min(total, math.MaxInt64))
	} else {
		h.Log.Warn("the space of the data folder is not known", "error", err)
	}
	defer h.enterAnswer(h.Image().PartitionCount() * logDirRowBytes)()
	compaction := asksForCompaction(req.UnknownTags)
	var topic *kmsg.DescribeLogDirsResponseDirTopic
	for _, s := range wantedSizes(req.Topics, h.LogDir.Sizes()) {
		if topic == nil || topic.Topic != s.tp.Topic {
			t := kmsg.NewDescribeLogDirsResponseDirTopic()
			t.Topic = s.tp.Topic
			dir.Topics = append(dir.Topics, t)
			topic = &dir.Topics[len(dir.Topics)-1]
		}
		row := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		row.Partition, row.Size = s.tp.Partition, s.sizeBytes
		if p, ok := h.Partitions.Partition(s.tp.Topic, s.tp.Partition); ok {
			row.OffsetLag = p.OffsetLag()
		}
		if compaction {
			if answer, ok := compactionOf(h.LogDir, s.tp); ok {
				row.UnknownTags.Set(CompactionTag, answer)
			}
		}
		topic.Partitions = append(topic.Partitions, row)
	}
	resp.Dirs = append(resp.Dirs, dir)
	c.Reply()
}

// logDirRowBytes is about what a partition takes in the answer and on the way to it.
const logDirRowBytes = 400

// alterReplicaLogDirs serves AlterReplicaLogDirs v0-2 (KIP-113). There is one
// folder, in which every replica is already.
func (h *Handlers) alterReplicaLogDirs(c *Call, req *kmsg.AlterReplicaLogDirsRequest, resp *kmsg.AlterReplicaLogDirsResponse) {
	defer c.Reply()
	at := map[string]int{}
	row := map[storage.TopicPartition]int{}
	for _, dir := range req.Dirs {
		for _, t := range dir.Topics {
			if _, seen := at[t.Topic]; !seen {
				at[t.Topic] = len(resp.Topics)
				topic := kmsg.NewAlterReplicaLogDirsResponseTopic()
				topic.Topic = t.Topic
				resp.Topics = append(resp.Topics, topic)
			}
			topic := &resp.Topics[at[t.Topic]]
			for _, index := range t.Partitions {
				tp := storage.TopicPartition{Topic: t.Topic, Partition: index}
				if _, again := row[tp]; !again {
					row[tp] = len(topic.Partitions)
					p := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
					p.Partition = index
					topic.Partitions = append(topic.Partitions, p)
				}
				// Of a partition that comes twice, the last folder counts.
				topic.Partitions[row[tp]].ErrorCode = h.moveInto(dir.Dir, tp)
			}
		}
	}
}

// moveInto is the code of moving a replica to a folder.
func (h *Handlers) moveInto(dir string, tp storage.TopicPartition) int16 {
	if dir != h.LogDir.Dir() {
		return kerr.LogDirNotFound.Code
	}
	if _, ok := h.Partitions.Partition(tp.Topic, tp.Partition); !ok {
		return kerr.UnknownTopicOrPartition.Code
	}
	return 0
}

type partitionSize struct {
	tp        storage.TopicPartition
	sizeBytes int64
}

// wantedSizes are the partitions asked for, by topic and number.
func wantedSizes(topics []kmsg.DescribeLogDirsRequestTopic, sizes map[storage.TopicPartition]int64) []partitionSize {
	var wanted []partitionSize
	add := func(tp storage.TopicPartition) {
		if size, ok := sizes[tp]; ok {
			wanted = append(wanted, partitionSize{tp, size})
		}
	}
	if topics == nil {
		for tp := range sizes {
			add(tp)
		}
	}
	for i := range topics {
		for _, p := range topics[i].Partitions {
			add(storage.TopicPartition{Topic: topics[i].Topic, Partition: p})
		}
	}
	slices.SortFunc(wanted, func(a, b partitionSize) int {
		return cmp.Or(cmp.Compare(a.tp.Topic, b.tp.Topic), cmp.Compare(a.tp.Partition, b.tp.Partition))
	})
	return slices.Compact(wanted)
}
