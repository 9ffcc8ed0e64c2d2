package importer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

const (
	metadataTopic  = "__cluster_metadata"
	snapshotSuffix = ".checkpoint"
)

// internalTopics are Kafka's own, which are never taken over as topics.
var internalTopics = map[string]string{
	metadataTopic:                  "what it says of topics is taken over with them",
	protocol.ConsumerOffsetsTopic:  "what groups have committed is taken over with the topics",
	protocol.TransactionStateTopic: "transactional ids are new after an import, as their producers ask for one at their start",
	protocol.ShareGroupStateTopic:  "share groups are not taken over",
}

func isInternal(topic string) bool { return internalTopics[topic] != "" }

// madeUpID is the id of a topic that had none: the same at every import.
func madeUpID(clusterID, topic string) storage.TopicID {
	sum := sha256.Sum256([]byte("barnabas import\x00" + clusterID + "\x00" + topic))
	id := storage.TopicID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// readCatalog reads the metadata log of the folder whose goes furthest.
func (s *Source) readCatalog() error {
	var best *catalog
	var bestEnd int64
	for _, f := range s.folders {
		if !f.hasMetadata {
			continue
		}
		c, end, err := s.catalogOf(filepath.Join(f.path, metadataTopic+"-0"))
		if err != nil {
			return fmt.Errorf("metadata log in %s: %w", f.path, err)
		}
		if best == nil || end > bestEnd {
			best, bestEnd, s.metadataFolder = c, end, f.path
		}
	}
	if best == nil {
		return errors.New("no folder has " + metadataTopic + "-0, which knows the topics' names and settings:" +
			" if metadata.log.dir is another folder, name it with --from too;" +
			" for a broker that used ZooKeeper, --without-metadata takes the folders as they are")
	}
	s.catalog = best
	return nil
}

// catalogOf replays a metadata log: its newest snapshot, and the log from there.
func (s *Source) catalogOf(dir string) (c *catalog, end int64, err error) {
	entries, err := s.fs.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	var bases []int64
	newest, from := "", int64(0)
	for _, e := range entries {
		if offset, ok := snapshotOffset(e.Name()); ok && (newest == "" || offset > from) {
			newest, from = e.Name(), offset
		}
		if base, suffix, ok := segment.ParseFileName(e.Name()); ok && suffix == segment.LogSuffix {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	c, end = newCatalog(), from
	if newest != "" {
		if _, err := s.replayMetadata(c, filepath.Join(dir, newest), 0, 0, false); err != nil {
			return nil, 0, err
		}
	}
	if newest == "" && (len(bases) == 0 || bases[0] > 0) {
		return nil, 0, errors.New("it has neither its start nor a snapshot")
	}
	for i, base := range bases {
		last := i == len(bases)-1
		if !last && bases[i+1] <= from {
			continue
		}
		if base > end {
			return nil, 0, fmt.Errorf("offsets %d to %d are missing", end, base-1)
		}
		if end, err = s.replayMetadata(c, filepath.Join(dir, segment.FileName(base, segment.LogSuffix)), base, from, last); err != nil {
			return nil, 0, err
		}
	}
	return c, end, nil
}

// snapshotOffset is where a snapshot's name says that the log goes on.
func snapshotOffset(name string) (int64, bool) {
	base, ok := strings.CutSuffix(name, snapshotSuffix)
	if !ok {
		return 0, false
	}
	offset, _, ok := strings.Cut(base, "-")
	n, err := strconv.ParseInt(offset, 10, 64)
	return n, ok && err == nil
}

// replayMetadata applies the records of a file from an offset on. A tail that is
// not whole, as a crash leaves it, is passed over.
func (s *Source) replayMetadata(c *catalog, name string, base, from int64, mayBeCut bool) (end int64, err error) {
	f, err := vfs.OpenRegular(s.fs, name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	sc := segment.NewScanner(f, name, 0, info.Size(), base, true)
	for sc.Next() {
		h := sc.Header()
		if h.IsControl() || h.LastOffset() < from {
			continue
		}
		whole := make([]byte, h.SizeBytes())
		if _, err := f.ReadAt(whole, h.Position); err != nil {
			return 0, fmt.Errorf("read %s: %w", name, err)
		}
		err := batch.Records(batch.View(whole), 0, func(r batch.Record) error {
			if r.Offset < from {
				return nil
			}
			if err := c.apply(r.Value); err != nil {
				return fmt.Errorf("offset %d: %w", r.Offset, err)
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	var bad *segment.CorruptError
	if err := sc.Err(); errors.As(err, &bad) && mayBeCut {
		s.note("the metadata log ends at offset %d: %v", sc.NextOffset(), bad)
	} else if err != nil {
		return 0, err
	}
	return sc.NextOffset(), nil
}
