package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// MkdirAllSync is MkdirAll that survives a crash: the folders above those that
// it makes are synced.
func MkdirAllSync(fsys FS, dir string, perm fs.FileMode) error {
	var parents []string
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		_, err := fsys.Stat(at)
		if err == nil || at == filepath.Dir(at) {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parents = append(parents, filepath.Dir(at))
	}
	if err := fsys.MkdirAll(dir, perm); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := fsys.SyncDir(parent); err != nil {
			return err
		}
	}
	return nil
}
