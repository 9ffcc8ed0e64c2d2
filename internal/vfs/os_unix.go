//go:build unix

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = control(f, func(fd uintptr) error {
		return retryInterrupted(func() error { return unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	})
	if err == nil {
		return f, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, errors.Join(err, f.Close())
}

// readLockFile uses the locks of POSIX, as Java's FileChannel does.
func readLockFile(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	err = control(f, func(fd uintptr) error {
		return retryInterrupted(func() error {
			return unix.FcntlFlock(fd, unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart})
		})
	})
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
		err = ErrLocked
	case errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL):
		err = errors.ErrUnsupported
	}
	return nil, errors.Join(err, f.Close())
}

// retryInterrupted hides EINTR, which Go's own signals cause.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// unixMapping is a page-aligned map; bytes starts where the caller asked.
type unixMapping struct{ pages, bytes []byte }

func (m *unixMapping) Bytes() []byte { return m.bytes }

func (m *unixMapping) Unmap() error {
	pages := m.pages
	m.pages, m.bytes = nil, nil
	if pages == nil {
		return nil
	}
	return unix.Munmap(pages)
}

func mapFile(f *os.File, offset int64, lengthBytes int) (Mapping, error) {
	if offset < 0 || lengthBytes <= 0 {
		return nil, unix.EINVAL
	}
	ahead := int(offset % int64(os.Getpagesize()))
	var pages []byte
	err := control(f, func(fd uintptr) (err error) {
		pages, err = unix.Mmap(int(fd), offset-int64(ahead), ahead+lengthBytes, unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &unixMapping{pages: pages, bytes: pages[ahead:]}, nil
}
