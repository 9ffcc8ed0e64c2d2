package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Check is Open for somebody who only looks: it changes nothing. founded is
// false for a folder that a start would make its own.
func Check(fsys vfs.FS, dir string, want Wanted) (id Identity, founded bool, err error) {
	if err := checkClusterID(want.ClusterID); err != nil {
		return Identity{}, false, err
	}
	id, err = readFolder(fsys, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = checkNew(fsys, dir)
	case err == nil:
		founded = true
		err = id.check(want)
	}
	if err != nil {
		return Identity{}, false, fmt.Errorf("data folder %s: %w", dir, err)
	}
	return id, founded, nil
}
