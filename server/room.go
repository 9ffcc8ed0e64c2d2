package server

import (
	"github.com/barnabas-mq/barnabas/internal/kv"
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
