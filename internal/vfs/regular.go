package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// kinds are what stands where a file is wanted.
var kinds = []struct {
	mode fs.FileMode
	name string
}{
	{fs.ModeDir, "a folder"},
	{fs.ModeNamedPipe, "a named pipe"},
	{fs.ModeSocket, "a socket"},
	{fs.ModeDevice, "a device"},
}

// CheckRegular says why what stands there is not a file to read, in words for a
// text that names it. Only a look decides: to open a named pipe waits for somebody
// who writes, for ever.
func CheckRegular(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	for _, k := range kinds {
		if info.Mode()&k.mode != 0 {
			return fmt.Errorf("it is %s, not a file", k.name)
		}
	}
	return errors.New("it is no file")
}

// OpenRegular opens a file, or a link to one, to read it. Anything else is refused
// without being opened.
func OpenRegular(fsys FS, name string) (File, error) {
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, err
	}
	if err := CheckRegular(info); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return fsys.OpenFile(name, os.O_RDONLY, 0)
}
