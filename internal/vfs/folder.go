package vfs

import (
	"errors"
	"io/fs"
	"os"
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

// SameFile tells whether two looks, one after the other, have found the same file and
// not another one of its name.
func SameFile(a, b fs.FileInfo) bool {
	if node, ok := a.Sys().(*inode); ok {
		return b.Sys() == any(node)
	}
	return os.SameFile(a, b)
}
