package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/storage"
)

// The files of a data folder that count here; partitions' own are in package
// storage/segment.
const (
	metaFile          = "meta.properties"
	lockFile          = ".lock"
	cleanFile         = ".kafka_cleanshutdown"
	startFile         = "log-start-offset-checkpoint"
	recoveryPointFile = "recovery-point-offset-checkpoint"
	partitionFile     = "partition.metadata"
	epochFile         = "leader-epoch-checkpoint"
	// barnabasStore is a folder that only a Barnabas data folder has.
	barnabasStore = "kv"
)

// maxSmallFile bounds what is read whole: checkpoints of a million partitions.
const maxSmallFile = 512 << 20

// Source is the data folders of one or more stopped brokers of one cluster. They
// are only read, and cannot be started while the Source is open.
type Source struct {
	fs      vfs.FS
	folders []*folder
	catalog *catalog
	// metadataFolder is where the catalog comes from, "" without one.
	metadataFolder string
	// ClusterID is "" for folders that have none.
	ClusterID string
	// Notes are what a person should know who imports from here.
	Notes []string
}

// folder is one data folder.
type folder struct {
	path   string
	nodeID int32
	lock   io.Closer
	// clean says that the last stop was clean.
	clean bool
	// starts and points are checkpoints.
	starts, points storage.OffsetCheckpoint
	partitions     map[storage.TopicPartition]*copyOf
	hasMetadata    bool
}

// copyOf is a partition as one folder has it.
type copyOf struct {
	storage.TopicPartition
	in   *folder
	path string
	// id is zero in folders from before topic ids.
	id storage.TopicID
}

// Open locks the folders and reads what their topics are. Without metadata the
// folders' names alone tell.
func Open(fsys vfs.FS, paths []string, withoutMetadata bool) (*Source, error) {
	s := &Source{fs: fsys}
	if err := s.open(paths, withoutMetadata); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Source) open(paths []string, withoutMetadata bool) error {
	for _, path := range paths {
		f, err := s.openFolder(path)
		if err != nil {
			return fmt.Errorf("folder %s: %w", path, err)
		}
		s.folders = append(s.folders, f)
	}
	if withoutMetadata {
		s.catalog = s.catalogOfFolders()
		return nil
	}
	return s.readCatalog()
}

// Close lets the folders be started again.
func (s *Source) Close() error {
	var errs []error
	for _, f := range s.folders {
		if f.lock != nil {
			errs = append(errs, f.lock.Close())
		}
	}
	s.folders = nil
	return errors.Join(errs...)
}

func (s *Source) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

func (s *Source) openFolder(path string) (*folder, error) {
	for _, have := range s.folders {
		if filepath.Clean(have.path) == filepath.Clean(path) {
			return nil, errors.New("it is given twice")
		}
	}
	meta, err := s.meta(path)
	if err != nil {
		return nil, err
	}
	if s.ClusterID == "" {
		s.ClusterID = meta.ClusterID
	}
	if meta.ClusterID != s.ClusterID {
		return nil, fmt.Errorf("it is of cluster %s, the folder before it of cluster %s: import one cluster at a time", meta.ClusterID, s.ClusterID)
	}
	f := &folder{path: path, nodeID: meta.NodeID, partitions: map[storage.TopicPartition]*copyOf{}}
	if f.lock, err = s.lock(path); err != nil {
		return nil, err
	}
	if err := s.readFolder(f); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *folder) close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

// meta makes sure that a folder is Kafka's.
func (s *Source) meta(path string) (storage.MetaProperties, error) {
	if err := vfs.CheckFolder(s.fs, path); err != nil {
		return storage.MetaProperties{}, fmt.Errorf("%w (a value of Kafka's log.dirs is wanted)", err)
	}
	b, err := s.readFile(filepath.Join(path, metaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return storage.MetaProperties{}, fmt.Errorf("it has no %s: it is not a data folder of Apache Kafka (a value of log.dirs is wanted)", metaFile)
	}
	if err != nil {
		return storage.MetaProperties{}, err
	}
	meta, err := storage.ParseMetaProperties(b)
	if err != nil {
		return meta, fmt.Errorf("%s: %w", metaFile, err)
	}
	if meta.Version > 1 {
		return meta, fmt.Errorf("%s has version %d, and versions up to 1 are known", metaFile, meta.Version)
	}
	if _, err := s.fs.Stat(filepath.Join(path, barnabasStore)); err == nil {
		return meta, errors.New("it is a data folder of Barnabas, not of Apache Kafka: start a broker on it, or copy it whole")
	}
	return meta, nil
}

// lock keeps a broker from starting on the folder.
func (s *Source) lock(path string) (io.Closer, error) {
	name := filepath.Join(path, lockFile)
	if info, err := s.fs.Stat(name); err == nil {
		if err := vfs.CheckRegular(info); err != nil {
			return nil, fmt.Errorf("%s: %w", lockFile, err)
		}
	}
	l, err := s.fs.ReadLock(name)
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return nil, fmt.Errorf("it is in use: stop the Apache Kafka broker first: %w", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errors.ErrUnsupported):
		return nil, nil // a copy of a folder, or a file system without locks
	}
	return l, err
}

func (s *Source) readFolder(f *folder) error {
	_, err := s.fs.Stat(filepath.Join(f.path, cleanFile))
	f.clean = err == nil
	if f.starts, err = s.checkpoint(filepath.Join(f.path, startFile)); err != nil {
		return err
	}
	if f.points, err = s.checkpoint(filepath.Join(f.path, recoveryPointFile)); err != nil {
		return err
	}
	entries, err := s.fs.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		tp, ok := storage.ParseFolderName(e.Name())
		if !e.IsDir() || !ok {
			continue
		}
		if tp.Topic == metadataTopic {
			f.hasMetadata = true
			continue
		}
		c := &copyOf{TopicPartition: tp, in: f, path: filepath.Join(f.path, e.Name())}
		if c.id, err = s.topicID(c.path); err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		f.partitions[tp] = c
	}
	return nil
}

// topicID is that of a partition's folder, zero for none.
func (s *Source) topicID(path string) (storage.TopicID, error) {
	b, err := s.readFile(filepath.Join(path, partitionFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
		return storage.TopicID{}, nil
	}
	if err != nil {
		return storage.TopicID{}, err
	}
	return storage.ParsePartitionMetadata(b)
}

func (s *Source) checkpoint(name string) (storage.OffsetCheckpoint, error) {
	b, err := s.readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return storage.OffsetCheckpoint{}, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := storage.ParseOffsetCheckpoint(b)
	if err != nil {
		// Kafka goes on without it too.
		s.note("%s is unreadable and is left out of account: %v", name, err)
		return storage.OffsetCheckpoint{}, nil
	}
	return c, nil
}

func (s *Source) readFile(name string) ([]byte, error) {
	f, err := vfs.OpenRegular(s.fs, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSmallFile+1))
	if err == nil && len(b) > maxSmallFile {
		err = fmt.Errorf("%s: more than %d bytes", name, maxSmallFile)
	}
	return b, err
}

// copies are all of a partition, those of a topic id or of none.
func (s *Source) copies(tp storage.TopicPartition, id storage.TopicID) []*copyOf {
	var list []*copyOf
	for _, f := range s.folders {
		if c := f.partitions[tp]; c != nil && (c.id == id || c.id == storage.TopicID{}) {
			list = append(list, c)
		}
	}
	return list
}

// catalogOfFolders makes a catalog of what lies in the folders. Their settings are
// not known: nothing of theirs shall be deleted before somebody has looked.
func (s *Source) catalogOfFolders() *catalog {
	c := newCatalog()
	byName := map[string]*catalogTopic{}
	for _, f := range s.folders {
		for tp, have := range f.partitions {
			t := byName[tp.Topic]
			if t == nil {
				t = &catalogTopic{name: tp.Topic, id: have.id, partitions: map[int32]*catalogPartition{}}
				byName[tp.Topic] = t
				c.configs[catalogResource{kind: resourceTopic, name: tp.Topic}] = map[string]string{"retention.ms": "-1", "retention.bytes": "-1"}
			}
			t.partitions[tp.Partition] = &catalogPartition{leader: -1}
		}
	}
	for name, t := range byName {
		if t.id == (storage.TopicID{}) {
			t.id = madeUpID(s.ClusterID, name)
		}
		c.topics[t.id] = t
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		if !isInternal(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	s.note("without a metadata log the topics' settings are unknown: %s get retention.ms=-1 and retention.bytes=-1, so that nothing of theirs is deleted; `barnabas config set` changes that",
		strings.Join(names, ", "))
	return c
}
