package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// maxSmallFile bounds what is read whole into memory: checkpoints of a million
// partitions fit, and a damaged directory can't exhaust it.
const maxSmallFile = 512 << 20

// replaceFile makes name hold data: written aside, synced, renamed, and the
// folder synced. A reader sees the old content or the new.
func replaceFile(fsys vfs.FS, name string, data []byte) error {
	if err := placeFile(fsys, name, data, true); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// placeFile is replaceFile without the folder's sync, and without any when sync
// is false.
func placeFile(fsys vfs.FS, name string, data []byte, sync bool) error {
	temp := name + ".tmp"
	if err := createFile(fsys, temp, data, sync); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	if err := fsys.Rename(temp, name); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}

// writeFile makes name hold data, in place and without a sync.
func writeFile(fsys vfs.FS, name string, data []byte) error {
	if err := createFile(fsys, name, data, false); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func createFile(fsys vfs.FS, name string, data []byte, sync bool) error {
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readFile reads a small file whole.
func readFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Most are shorter than this: one call less when thousands are read.
	data := make([]byte, 256)
	n, err := f.ReadAt(data, 0)
	if errors.Is(err, io.EOF) {
		return data[:n], nil
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSmallFile {
		return nil, fmt.Errorf("%w: %s has %d bytes", ErrCorrupt, name, info.Size())
	}
	data = make([]byte, info.Size())
	n, err = f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// syncFile makes a file durable that was written without.
func syncFile(fsys vfs.FS, name string) error {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeDurableDir makes a folder, and its name and those of the parents it made
// durable.
func makeDurableDir(fsys vfs.FS, dir string) error {
	var made []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := fsys.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range made {
		if err := fsys.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}
