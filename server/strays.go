package server

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/storage"
)

// settleStrays deals with partition folders that the metadata does not know:
// those of topics that it deleted go, those that it never knew are kept and
// named. It must run before the broker registers, which says that it has.
func (n *Node) settleStrays() error {
	img := n.driver.Image()
	strays := n.store.Strays(func(tp storage.TopicPartition, id storage.TopicID) bool {
		t, ok := img.Topic(tp.Topic)
		return ok && int(tp.Partition) < len(t.Partitions) && (t.ID == id || id == storage.TopicID{})
	})
	for _, s := range strays {
		if _, deleted := img.RemovedTopic(s.TopicID); !deleted {
			n.env.Log.Warn("the data folder holds a partition that the metadata never knew; it is kept and not served", "folder", s.Path)
			continue
		}
		if err := n.store.DiscardStray(s); err != nil {
			return fmt.Errorf("remove the folder %s of a deleted topic: %w", s.Path, err)
		}
	}
	return nil
}
