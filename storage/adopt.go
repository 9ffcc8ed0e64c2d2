package storage

import "fmt"

// ImportFolder is where copies of partitions are made that are to be adopted, in
// the data directory. It is no partition's.
const ImportFolder = "import.partial"

// Adoption is a partition's folder that was made beside the store, whole and
// durable, on the same file system.
type Adoption struct {
	TopicPartition
	Path string
	// LogStartOffset is the first offset that may be read, LogEndOffset what
	// follows the last one.
	LogStartOffset, LogEndOffset int64
}

// Adopt moves folders into their places, where OpenLog finds them as if they had
// been there at the start. When it returns, places and checkpoints are durable.
func (s *Store) Adopt(list []Adoption) error {
	for _, a := range list {
		err := s.clearLeftover(a.TopicPartition)
		if err == nil {
			err = s.adopt(a)
		}
		if err != nil {
			return fmt.Errorf("adopt %v: %w", a.TopicPartition, err)
		}
	}
	if err := s.env.FS.SyncDir(s.dir); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	return s.writeCheckpoints()
}

func (s *Store) adopt(a Adoption) error {
	name := a.String()
	s.mu.Lock()
	_, open := s.logs[a.TopicPartition]
	_, opening := s.opening[a.TopicPartition]
	_, found := s.folders[name]
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case open || opening || found:
		return fmt.Errorf("the folder %s is there already", s.path(name))
	}
	if err := s.env.FS.Rename(a.Path, s.path(name)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folders[name] = struct{}{}
	s.points[a.TopicPartition], s.marks[a.TopicPartition] = a.LogEndOffset, a.LogEndOffset
	s.starts[a.TopicPartition] = a.LogStartOffset
	return nil
}
