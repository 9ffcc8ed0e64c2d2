package server

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/cluster/lifecycle"
	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/storage"
)

// openFolder makes sure whose the data folder is before it touches it, locks it,
// and opens the logs' store and the embedded store.
func (n *Node) openFolder() error {
	snap := n.live.Snapshot()
	dir, err := filepath.Abs(snap.DataDir())
	if err != nil {
		return fmt.Errorf("data folder %s: %w", snap.DataDir(), err)
	}
	want := lifecycle.Wanted{ClusterID: config.ClusterID.Get(snap), NodeID: &n.id}
	if n.ident, err = lifecycle.Open(n.env.FS, dir, want, n.env.newRand()); err != nil {
		return inUse(dir, err)
	}
	if err := checkMetadataEnd(n.env, dir); err != nil {
		return err
	}
	n.store, err = storage.Open(storage.Env{
		FS: n.env.FS, Clock: n.env.Clock, Logger: n.env.Log, Metrics: n.env.Metrics, Rand: n.env.Random,
		OnOffline: n.logOffline,
	}, dir, n.storeConfig(snap))
	if err != nil {
		return inUse(dir, err)
	}
	n.onClose("data folder", quiet(n.store.Close))
	n.db, err = kv.Open(n.env.FS, lifecycle.StoreDir(dir), n.env.Log)
	if err != nil {
		return err
	}
	n.onClose("embedded store", quiet(n.db.Close))
	return nil
}

// storeConfig is what the data folder needs to know. A node that serves nobody
// removes nothing: who opened it may want to change what is kept.
func (n *Node) storeConfig(snap *config.Snapshot) storage.StoreConfig {
	c := snap.StoreConfig()
	if n.offline {
		c.RetentionCheck, c.Cleaner = -1, n.cleanerConfig(snap)
	}
	return c
}

func (n *Node) cleanerConfig(snap *config.Snapshot) storage.CleanerConfig {
	c := snap.CleanerConfig()
	if n.offline {
		c.Threads = 0
	}
	return c
}

// inUse says what to do about a folder that another broker holds.
func inUse(dir string, err error) error {
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("data folder %s is in use by another broker; stop that one, or choose another folder with --data: %w", dir, err)
	}
	return err
}

// logOffline passes on what the storage says about a log; err is nil when it is
// back.
func (n *Node) logOffline(tp storage.TopicPartition, _ error) {
	if n.replicas != nil {
		n.replicas.LogChanged(tp)
	}
}
