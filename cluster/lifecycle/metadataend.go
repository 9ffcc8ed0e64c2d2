package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/storage"
)

// MetadataEnd notes in the data folder how far the metadata log is durable. What
// it says may lag behind, but is never ahead of the log: a log that ends before
// it has lost something.
type MetadataEnd struct {
	fs   vfs.FS
	dir  string
	log  *slog.Logger
	file vfs.File
	// made says that the file's name may not be durable yet.
	made bool
}

// MetadataEndPath is where a data folder has the note.
func MetadataEndPath(dir string) string { return filepath.Join(dir, storage.MetadataEndFile) }

// ReadMetadataEnd is the index that the data folder dir notes; 0 without a note,
// or with one that cannot be read: it is only a second witness.
func ReadMetadataEnd(fsys vfs.FS, dir string, log *slog.Logger) (index uint64) {
	name := MetadataEndPath(dir)
	data, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err == nil {
		index, err = storage.ParseMetadataEnd(data)
	}
	if err != nil {
		log.Warn("the note of the metadata log's end is unreadable; whether the log is whole is not checked", "file", name, "err", err)
		return 0
	}
	return index
}

// NewMetadataEnd is for one run of the owner of the data folder dir.
func NewMetadataEnd(fsys vfs.FS, dir string, log *slog.Logger) *MetadataEnd {
	return &MetadataEnd{fs: fsys, dir: dir, log: log}
}

// Note replaces the index, which must be durable already. It syncs nothing: a
// note that a power failure takes back is still a true one. One goroutine calls it.
// An error is told and ends the notes of this run.
func (e *MetadataEnd) Note(index uint64) {
	err := e.open()
	if err == nil && e.file != nil {
		_, err = e.file.WriteAt(storage.EncodeMetadataEnd(index), 0)
	}
	if err != nil {
		e.giveUp(err)
	}
}

// open opens the file for the first note.
func (e *MetadataEnd) open() (err error) {
	if e.file != nil || e.fs == nil {
		return nil
	}
	_, err = e.fs.Stat(MetadataEndPath(e.dir))
	e.made = errors.Is(err, fs.ErrNotExist)
	e.file, err = e.fs.OpenFile(MetadataEndPath(e.dir), os.O_RDWR|os.O_CREATE, 0o644)
	return err
}

func (e *MetadataEnd) giveUp(err error) {
	e.log.Warn("the end of the metadata log cannot be noted; the next start cannot tell a log that lost its end", "file", MetadataEndPath(e.dir), "err", err)
	if e.file != nil {
		_ = e.file.Close() // the error before is the one to tell
	}
	e.file, e.fs = nil, nil
}

// Close makes the last note durable. No note may follow.
func (e *MetadataEnd) Close() error {
	if e.file == nil {
		return nil
	}
	err := e.file.Sync()
	if err == nil && e.made {
		err = e.fs.SyncDir(e.dir)
	}
	err = errors.Join(err, e.file.Close())
	e.file, e.fs = nil, nil
	if err != nil {
		return fmt.Errorf("note the end of the metadata log: %w", err)
	}
	return nil
}
