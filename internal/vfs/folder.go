package vfs

import (
	"errors"
	"io/fs"
)

// errNotAFolder is of a name that stands for a file.
var errNotAFolder = errors.New("it is a file, not a folder")

// CheckFolder says why dir is not a folder, in words for a text that names dir
// itself. It is fs.ErrNotExist for one that is not there.
func CheckFolder(fsys FS, dir string) error {
	info, err := fsys.Stat(dir)
	var named *fs.PathError
	switch {
	case errors.As(err, &named):
		return named.Err
	case err != nil:
		return err
	case !info.IsDir():
		return errNotAFolder
	}
	return nil
}
