package server

import (
	"fmt"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/storage"
)

// settleStrays deals with partition folders that the metadata does not know:
// those of topics that it deleted go, those that it never knew are kept and
// named. It must run before the broker registers, which says that it has.
func (n *Node) settleStrays() error {
	left := filepath.Join(n.store.Dir(), storage.ImportFolder)
	importing := exists(n.env.FS, left)
	if importing {
		n.env.Log.Warn("an import was interrupted; run `barnabas import` again, or remove what it left", "folder", left)
	}
	img := n.driver.Image()
	for _, s := range n.strays() {
		if _, deleted := img.RemovedTopic(s.TopicID); !deleted {
			n.tellUnknown(s, importing)
			continue
		}
		if err := n.store.DiscardStray(s); err != nil {
			return fmt.Errorf("remove the folder %s of a deleted topic: %w", s.Path, err)
		}
	}
	return nil
}

// tellUnknown names a folder of a topic that the metadata never knew. A topic is
// durable before its first folder is made, so the metadata was lost, or somebody
// put the folder there. Only an import moves folders first; and one without a
// topic id may be of a topic that was made and deleted before its first sync.
func (n *Node) tellUnknown(s storage.Stray, importing bool) {
	if importing || s.TopicID == (storage.TopicID{}) {
		n.env.Log.Warn("the data folder holds a partition that the metadata never knew; it is kept and not served", "folder", s.Path)
		return
	}
	n.env.Log.Error("the data folder holds a partition of a topic that the metadata does not know: metadata was lost or came from an older copy, "+
		"or the folder was put here by hand; it is kept and not served, `barnabas import --without-metadata` takes it over (docs/import.md)", "folder", s.Path, "topicID", storage.FormatID(s.TopicID))
}

// strays are the partition folders that no topic of the metadata has.
func (n *Node) strays() []storage.Stray {
	img := n.driver.Image()
	return n.store.Strays(func(tp storage.TopicPartition, id storage.TopicID) bool {
		t, ok := img.Topic(tp.Topic)
		return ok && int(tp.Partition) < len(t.Partitions) && (t.ID == id || id == storage.TopicID{})
	})
}

func exists(fsys vfs.FS, name string) bool {
	_, err := fsys.Stat(name)
	return err == nil
}
