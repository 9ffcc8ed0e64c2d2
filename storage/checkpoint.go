package storage

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The checkpoint files of a data directory.
const (
	recoveryPointFile = "recovery-point-offset-checkpoint"
	highWatermarkFile = "replication-offset-checkpoint"
	logStartFile      = "log-start-offset-checkpoint"
	cleanedFile       = "cleaner-offset-checkpoint"
)

const checkpointVersion = 0

// OffsetCheckpoint is the content of a checkpoint file: an offset per partition.
type OffsetCheckpoint map[TopicPartition]int64

// Encode is the file: version, number of entries, and a line
// `topic partition offset` each.
func (c OffsetCheckpoint) Encode() []byte {
	tps := c.partitions()
	b := fmt.Appendf(nil, "%d\n%d\n", checkpointVersion, len(tps))
	for _, tp := range tps {
		b = append(b, tp.Topic...)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(tp.Partition), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, c[tp], 10)
		b = append(b, '\n')
	}
	return b
}

// partitions are the keys in order.
func (c OffsetCheckpoint) partitions() []TopicPartition {
	return slices.SortedFunc(maps.Keys(c), func(a, b TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

// ParseOffsetCheckpoint reads a checkpoint file.
func ParseOffsetCheckpoint(b []byte) (OffsetCheckpoint, error) {
	lines, err := checkpointLines(b)
	if err != nil {
		return nil, err
	}
	c := make(OffsetCheckpoint, len(lines))
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("%w: line %q", ErrCorrupt, line)
		}
		partition, err1 := strconv.ParseInt(f[1], 10, 32)
		offset, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 != nil || err2 != nil || partition < 0 || offset < 0 {
			return nil, fmt.Errorf("%w: line %q", ErrCorrupt, line)
		}
		c[TopicPartition{Topic: f[0], Partition: int32(partition)}] = offset
	}
	return c, nil
}

// checkpointLines checks the version and the number of lines, and returns the
// rest. An empty file is what Apache Kafka makes before it has something to write,
// and reads as no lines.
func checkpointLines(b []byte) ([]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	text, complete := bytes.CutSuffix(b, []byte("\n"))
	if !complete {
		return nil, fmt.Errorf("%w: the last line is cut", ErrCorrupt)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 2 {
		return nil, fmt.Errorf("%w: %d lines", ErrCorrupt, len(lines))
	}
	if version, err := strconv.Atoi(lines[0]); err != nil || version != checkpointVersion {
		return nil, fmt.Errorf("%w: version %q", ErrCorrupt, lines[0])
	}
	if n, err := strconv.Atoi(lines[1]); err != nil || n != len(lines)-2 {
		return nil, fmt.Errorf("%w: %q entries announced, %d found", ErrCorrupt, lines[1], len(lines)-2)
	}
	return lines[2:], nil
}
