package segment

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Maps bounds the bytes of segment files that are mapped at the same time:
// mapped pages that were touched count in the process's resident size.
type Maps struct {
	maxBytes int64
	bytes    atomic.Int64
}

// NewMaps allows maxBytes; 0 means that nothing is ever mapped.
func NewMaps(maxBytes int64) *Maps { return &Maps{maxBytes: maxBytes} }

// Bytes is what is mapped now.
func (m *Maps) Bytes() int64 { return m.bytes.Load() }

func (m *Maps) reserve(n int64) bool {
	if m.bytes.Add(n) <= m.maxBytes {
		return true
	}
	m.bytes.Add(-n)
	return false
}

// Region is a range of a segment file that is sent without passing through the
// program. It keeps the file open, and mapped when the bound on maps allowed it,
// until Release.
type Region struct {
	ref      *FileRef
	file     vfs.File
	maps     *Maps
	mapping  vfs.Mapping
	position int64
	length   int
	released atomic.Bool
}

// newRegion takes over the caller's use of ref.
func newRegion(ref *FileRef, file vfs.File, maps *Maps, position int64, length int) *Region {
	r := &Region{ref: ref, file: file, maps: maps, position: position, length: length}
	if !maps.reserve(int64(length)) {
		return r
	}
	mapping, err := file.Map(position, length)
	if err != nil {
		// Not every system or file can be mapped; ReadAt serves it as well.
		maps.bytes.Add(-int64(length))
		return r
	}
	r.mapping = mapping
	return r
}

// Len is the number of bytes.
func (r *Region) Len() int { return r.length }

// Bytes is the mapped range, nil when it is not mapped. It may only be passed to
// write calls: the file may have been cut, then the call fails with EFAULT,
// while the program itself would die of a fault.
func (r *Region) Bytes() []byte {
	if r.mapping == nil {
		return nil
	}
	return r.mapping.Bytes()
}

// ReadAt reads from off bytes into the region.
func (r *Region) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(r.length) {
		return 0, io.EOF
	}
	short := false
	if left := int64(r.length) - off; int64(len(p)) > left {
		p, short = p[:left], true
	}
	n, err := r.file.ReadAt(p, r.position+off)
	if err == nil && short {
		err = io.EOF
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read %s: %w", r.ref.path, err)
	}
	return n, err
}

// Release gives up the map and the file. It is called exactly once.
func (r *Region) Release() {
	invariant.That(!r.released.Swap(true), "a region of %s was released twice", r.ref.path)
	if r.mapping != nil {
		_ = r.mapping.Unmap() // fails only for a range that is not mapped
		r.maps.bytes.Add(-int64(r.length))
	}
	r.ref.Release()
}
