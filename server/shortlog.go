package server

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/barnabas-mq/barnabas/cluster/lifecycle"
	"github.com/barnabas-mq/barnabas/cluster/quorum"
	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// errShortLog says that the metadata log has lost its end.
var errShortLog = errors.New("the metadata log is damaged")

// checkMetadataEnd refuses a metadata log that ends before what was noted of it.
// The embedded store takes damage in its own log for the torn end of a last write,
// and drops what follows when it is opened to write: so this only reads, and must
// come first.
func checkMetadataEnd(env Env, dir string) error {
	noted := lifecycle.ReadMetadataEnd(env.FS, dir, env.Log)
	if noted == 0 {
		return nil
	}
	db, err := kv.OpenReadOnly(env.FS, lifecycle.StoreDir(dir), env.Log)
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return inUse(dir, err)
	case errors.Is(err, fs.ErrNotExist):
		return shortLog(dir, 0, noted)
	case err != nil:
		return damagedStore(dir, err)
	}
	end, err := quorum.End(db)
	if err := errors.Join(err, db.Close()); err != nil {
		return damagedStore(dir, err)
	}
	if end < noted {
		return shortLog(dir, end, noted)
	}
	return nil
}

// shortLog says what to do about a log that ends at end, 0 for none at all.
func shortLog(dir string, end, noted uint64) error {
	left := fmt.Sprintf("ends at entry %d", end)
	if end == 0 {
		left = "holds nothing of it"
	}
	return fmt.Errorf("%w: %s %s, but entry %d had been synced: a file of it was damaged, cut or removed. Nothing was changed. "+
		"Restore the whole data folder from a copy. Or keep a copy of it and remove %s: the broker then starts with the metadata that is left, "+
		"without the topics, settings and users made after that; the folders of partitions that it does not know are named, kept and not served, "+
		"and `barnabas import --without-metadata` takes them over (docs/import.md)",
		errShortLog, lifecycle.StoreDir(dir), left, noted, lifecycle.MetadataEndPath(dir))
}

// damagedStore says what to do about a store that cannot be read, unless it is the
// disk that does not give it.
func damagedStore(dir string, err error) error {
	var disk *fs.PathError
	if errors.As(err, &disk) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w. Nothing was changed. Restore the whole data folder %s from a copy. Without one its partitions are still whole: "+
		"docs/import.md says, under \"When Barnabas's own metadata is lost\", how `barnabas import --without-metadata` takes them over", err, dir)
}
