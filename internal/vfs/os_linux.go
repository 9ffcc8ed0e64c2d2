package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func syncData(f *os.File) error {
	err := control(f, func(fd uintptr) error {
		return retryInterrupted(func() error { return unix.Fdatasync(int(fd)) })
	})
	if err != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

// preallocate keeps the length: Kafka's tools would read a longer file's zeros
// as batches.
func preallocate(f *os.File, offset, lengthBytes int64) error {
	err := control(f, func(fd uintptr) error {
		return retryInterrupted(func() error {
			return unix.Fallocate(int(fd), unix.FALLOC_FL_KEEP_SIZE, offset, lengthBytes)
		})
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

func usage(name string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Statfs(name, &st) }); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}
