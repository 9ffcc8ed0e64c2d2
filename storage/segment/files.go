package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Files bounds the open segment and index files of a data directory. Files in
// use stay open; of the others the ones not used lately are closed.
type Files struct {
	fs  vfs.FS
	max int

	mu   sync.Mutex
	open []*FileRef // the clock hand goes round in this slice
	hand int
}

// NewFiles keeps at most max unused files open.
func NewFiles(fsys vfs.FS, max int) *Files {
	return &Files{fs: fsys, max: max}
}

// Open is the number of files that are open now.
func (p *Files) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// added registers an opened file and closes others beyond the bound.
func (p *Files) added(r *FileRef) {
	p.mu.Lock()
	p.open = append(p.open, r)
	var victims []vfs.File
	for tries := 2 * len(p.open); tries > 0 && len(p.open) > p.max; tries-- {
		if p.hand >= len(p.open) {
			p.hand = 0
		}
		f, ok := p.open[p.hand].evict()
		if !ok {
			p.hand++
			continue
		}
		victims = append(victims, f)
		p.removeLocked(p.hand)
	}
	p.mu.Unlock()
	for _, f := range victims {
		_ = f.Close() // written data stays dirty in the page cache; fsync reports errors
	}
}

func (p *Files) removeLocked(i int) {
	last := len(p.open) - 1
	p.open[i] = p.open[last]
	p.open[last] = nil
	p.open = p.open[:last]
}

// forget takes a closed file off the list.
func (p *Files) forget(r *FileRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, o := range p.open {
		if o == r {
			p.removeLocked(i)
			return
		}
	}
}

const (
	refClosed = -1 // the file is not open; Acquire opens it
	refDead   = -2 // the file was given up; Acquire fails
	// refDying is added to the number of users once Close was called.
	refDying = 1 << 40
)

// FileRef is one file that is opened when somebody needs it.
type FileRef struct {
	pool *Files
	path string
	flag int
	// state is the number of users of the open file, or one of the above.
	state atomic.Int64
	used  atomic.Bool

	// opening guards f while nobody uses it, and at; it spans the open call.
	opening sync.Mutex
	f       vfs.File
	at      string // where the file is now
}

// Ref makes a reference without opening the file.
func (p *Files) Ref(path string, flag int) *FileRef {
	r := &FileRef{pool: p, path: path, flag: flag, at: path}
	r.state.Store(refClosed)
	return r
}

// Path is the file's name when it was made.
func (r *FileRef) Path() string { return r.path }

// Acquire returns the open file, which stays open until Release.
func (r *FileRef) Acquire() (vfs.File, error) {
	if r.join() {
		return r.f, nil
	}
	f, opened, err := r.openOnce()
	if opened {
		r.pool.added(r)
	}
	return f, err
}

// join adds a user to a file that is open.
func (r *FileRef) join() bool {
	for {
		n := r.state.Load()
		if n < 0 || n >= refDying {
			return false
		}
		if r.state.CompareAndSwap(n, n+1) {
			if !r.used.Load() {
				r.used.Store(true)
			}
			return true
		}
	}
}

func (r *FileRef) openOnce() (f vfs.File, opened bool, err error) {
	r.opening.Lock()
	defer r.opening.Unlock()
	if r.join() {
		return r.f, false, nil
	}
	if r.state.Load() != refClosed {
		return nil, false, &fs.PathError{Op: "open", Path: r.path, Err: os.ErrClosed}
	}
	f, err = r.pool.fs.OpenFile(r.at, r.flag, 0o644)
	if err != nil {
		return nil, false, fmt.Errorf("open a partition's file: %w", err)
	}
	r.f = f
	r.used.Store(true)
	r.state.Store(1)
	return f, true, nil
}

// Release ends one Acquire.
func (r *FileRef) Release() {
	if r.state.Add(-1) == refDying {
		r.finish()
	}
}

// Close makes every later Acquire fail. The file itself is closed when its last
// user has released it.
func (r *FileRef) Close() {
	r.opening.Lock()
	defer r.opening.Unlock()
	for {
		n := r.state.Load()
		if n == refDead || n >= refDying {
			return
		}
		if n == refClosed {
			r.state.Store(refDead)
			return
		}
		if r.state.CompareAndSwap(n, n+refDying) {
			if n == 0 {
				r.finish()
			}
			return
		}
	}
}

// rename moves the file; those who use it, or will, go on with it.
func (r *FileRef) rename(to string) error {
	r.opening.Lock()
	defer r.opening.Unlock()
	err := r.pool.fs.Rename(r.at, to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// It is never made anew: another file may get the old name, and the new place
	// only waits to be removed.
	r.at, r.flag = to, r.flag&^os.O_CREATE
	return err
}

// finish closes the file of a dying reference; only one caller gets through.
func (r *FileRef) finish() {
	if !r.state.CompareAndSwap(refDying, refDead) {
		return
	}
	r.pool.forget(r)
	_ = r.f.Close() // nothing was promised of a file that is given up
}

// evict takes the file out of a reference that nobody uses and nobody used since
// the hand last came by.
func (r *FileRef) evict() (vfs.File, bool) {
	if r.used.Swap(false) || !r.opening.TryLock() {
		return nil, false
	}
	defer r.opening.Unlock()
	if !r.state.CompareAndSwap(0, refClosed) {
		return nil, false
	}
	f := r.f
	r.f = nil
	return f, true
}

// CloseAll closes what nobody uses, at the end of a store's life.
func (p *Files) CloseAll() {
	p.mu.Lock()
	open := append([]*FileRef(nil), p.open...)
	p.mu.Unlock()
	for _, r := range open {
		r.Close()
	}
}
