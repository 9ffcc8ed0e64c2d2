package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/storage"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// pick chooses the copy of a partition that is taken: the leader's, or one that
// was in sync with it.
func (s *Source) pick(t *catalogTopic, index int32) (*copyOf, error) {
	tp := storage.TopicPartition{Topic: t.name, Partition: index}
	p := t.partitions[index]
	copies := s.copies(tp, t.id)
	if len(copies) == 0 {
		if len(p.replicas) == 0 {
			return nil, fmt.Errorf("partition %d is in none of the folders", index)
		}
		return nil, fmt.Errorf("partition %d is in none of the folders: it is on broker %s, whose folders are given with --from as well", index, idList(p.replicas))
	}
	for _, c := range copies {
		if c.in.nodeID == p.leader {
			return c, nil
		}
	}
	for _, c := range copies {
		if len(p.isr) == 0 || slices.Contains(p.isr, c.in.nodeID) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("partition %d of broker %d is not in sync: give the folders of broker %s with --from", index, copies[0].in.nodeID, idList(p.isr))
}

func idList(ids []int32) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteString(" or ")
		}
		fmt.Fprint(&b, id)
	}
	return b.String()
}

// partitionFiles is what a partition's folder holds.
type partitionFiles struct {
	// bases are the base offsets of the segments, rising.
	bases []int64
	sizes map[int64]int64
	// side are the files beside the .log files, by base offset.
	side      map[int64][]string
	snapshots []int64
	hasEpochs bool
	sizeBytes int64
}

// list reads a partition's folder.
func (s *Source) list(c *copyOf) (*partitionFiles, error) {
	entries, err := s.fs.ReadDir(c.path)
	if err != nil {
		return nil, err
	}
	f := &partitionFiles{sizes: map[int64]int64{}, side: map[int64][]string{}}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), segment.SwapSuffix) {
			return nil, errors.New("it was being compacted when the broker stopped: start Apache Kafka once more and stop it cleanly")
		}
		f.hasEpochs = f.hasEpochs || e.Name() == epochFile
		base, suffix, ok := segment.ParseFileName(e.Name())
		if !ok {
			continue
		}
		switch suffix {
		case segment.LogSuffix:
			info, err := s.regular(filepath.Join(c.path, e.Name()))
			if err != nil {
				return nil, err
			}
			f.bases = append(f.bases, base)
			f.sizes[base] = info.Size()
			f.sizeBytes += info.Size()
		case segment.IndexSuffix, segment.TimeIndexSuffix, segment.TxnIndexSuffix:
			if _, err := s.regular(filepath.Join(c.path, e.Name())); err != nil {
				return nil, err
			}
			f.side[base] = append(f.side[base], suffix)
		case segment.SnapshotSuffix:
			if _, err := s.regular(filepath.Join(c.path, e.Name())); err != nil {
				return nil, err
			}
			f.snapshots = append(f.snapshots, base)
		}
	}
	slices.Sort(f.bases)
	slices.Sort(f.snapshots)
	return f, nil
}

// regular looks at a file of the source before anything is copied.
func (s *Source) regular(name string) (fs.FileInfo, error) {
	info, err := s.fs.Stat(name)
	if err != nil {
		return nil, err
	}
	if err := vfs.CheckRegular(info); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return info, nil
}

// logPath is a segment's .log file.
func (c *copyOf) logPath(base int64) string {
	return filepath.Join(c.path, segment.FileName(base, segment.LogSuffix))
}
