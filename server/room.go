package server

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/storage"
)

// roomyKV is the embedded store for what can be made again from the logs: it
// refuses writes while the disk is full, because one that failed would end the
// metadata log too.
type roomyKV struct {
	*kv.DB
	store *storage.Store
}

// Apply writes ops unless the disk is full.
func (r roomyKV) Apply(ops []kv.Op, sync bool) error {
	if err := r.store.RoomToChange(false); err != nil {
		return err
	}
	return r.DB.Apply(ops, sync)
}

// adviseFull says what to do when the disk had no room for the metadata.
func (n *Node) adviseFull(err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	snap := n.live.Snapshot()
	advice := "make room and start the broker again; what it acknowledged is kept"
	if config.ReserveBytes.Get(snap) == 0 {
		advice += ". Without barnabas.storage.reserve.bytes=0 a broker keeps room for its metadata, and stays up when the disk is full"
	}
	return fmt.Errorf("the disk of the data folder %s is full: %w; %s", snap.DataDir(), err, advice)
}
