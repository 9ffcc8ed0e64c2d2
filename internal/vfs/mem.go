package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrCrashed is what a Mem answers after CrashAt has struck, and what handles
// opened before a Crash or Kill answer.
var ErrCrashed = errors.New("the machine has crashed")

// Mem is a file system in memory that behaves like a disk behind a page cache:
// what was not synced may be lost in a crash, file data and folder entries each
// on their own. It can fail chosen operations and be full. It is for tests, and
// safe for concurrent use.
type Mem struct {
	mu       sync.Mutex
	root     *inode
	journal  []*nameOp // folder changes that no SyncDir has made durable
	locks    map[string]*memLock
	epoch    int // handles of an older epoch are dead
	capacity uint64
	now      func() time.Time
	faults   faults
}

// NewMem is an empty file system of unlimited size.
func NewMem() *Mem {
	return &Mem{
		root: newFolder(), locks: map[string]*memLock{},
		now: func() time.Time { return time.Unix(0, 0) },
	}
}

// SetNow gives files their modification times.
func (m *Mem) SetNow(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
}

// SetCapacity bounds the bytes of all files; a write beyond it fails with
// ENOSPC, its first part written. 0 is no bound.
func (m *Mem) SetCapacity(bytes uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytes
}

// inode is a file or a folder.
type inode struct {
	folder bool
	mod    time.Time
	// entries are a folder's current ones, stable those that a crash keeps.
	entries, stable map[string]*inode
	// data is a file's current content, kept what a crash keeps, and pending
	// the changes in between.
	data, kept []byte
	pending    []dataOp
	// reserved is how far the file has space of its own, as far as that is
	// beyond data.
	reserved int64
}

func newFolder() *inode {
	return &inode{folder: true, entries: map[string]*inode{}, stable: map[string]*inode{}}
}

// dataOp is a write or, with b == nil, a change of the length to off.
type dataOp struct {
	off int64
	b   []byte
}

// apply performs the change on a content.
func (o dataOp) apply(data []byte) []byte {
	if o.b == nil {
		return resize(data, o.off)
	}
	if end := o.off + int64(len(o.b)); end > int64(len(data)) {
		data = resize(data, end)
	}
	copy(data[o.off:], o.b)
	return data
}

func resize(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}

// nameOp is a change of folder entries: node leaves (from, fromName) and gets
// (to, toName); either may be absent.
type nameOp struct {
	node             *inode
	from, to         *inode
	fromName, toName string
}

// applyStable performs the change on what a crash keeps.
func (o *nameOp) applyStable() {
	if o.from != nil && o.from.stable[o.fromName] == o.node {
		delete(o.from.stable, o.fromName)
	}
	if o.to != nil {
		o.to.stable[o.toName] = o.node
	}
}

func parts(name string) []string {
	name = filepath.ToSlash(filepath.Clean(name))
	name = strings.Trim(name, "/")
	if name == "" || name == "." {
		return nil
	}
	return strings.Split(name, "/")
}

// findLocked resolves a path; nil when there is nothing.
func (m *Mem) findLocked(name string) *inode {
	n := m.root
	for _, p := range parts(name) {
		if n == nil || !n.folder {
			return nil
		}
		n = n.entries[p]
	}
	return n
}

// parentLocked resolves the folder of a path.
func (m *Mem) parentLocked(name string) (folder *inode, base string) {
	ps := parts(name)
	if len(ps) == 0 {
		return nil, ""
	}
	n := m.root
	for _, p := range ps[:len(ps)-1] {
		if n == nil || !n.folder {
			return nil, ""
		}
		n = n.entries[p]
	}
	if n == nil || !n.folder {
		return nil, ""
	}
	return n, ps[len(ps)-1]
}

func (m *Mem) changeLocked(op *nameOp) {
	if op.from != nil {
		delete(op.from.entries, op.fromName)
	}
	if op.to != nil {
		op.to.entries[op.toName] = op.node
	}
	m.journal = append(m.journal, op)
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// OpenFile opens or creates a file.
func (m *Mem) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.findLocked(name)
	creates := n == nil && flag&os.O_CREATE != 0
	kind := OpOpen
	if creates || flag&os.O_TRUNC != 0 {
		kind = OpCreate
	}
	if err := m.faults.check(kind, name); err != nil {
		return nil, pathError("open", name, err)
	}
	switch {
	case n != nil && flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, pathError("open", name, fs.ErrExist)
	case n != nil && n.folder:
		return nil, pathError("open", name, syscall.EISDIR)
	case n == nil && !creates:
		return nil, pathError("open", name, fs.ErrNotExist)
	case n == nil:
		folder, base := m.parentLocked(name)
		if folder == nil {
			return nil, pathError("open", name, fs.ErrNotExist)
		}
		n = &inode{mod: m.now()}
		m.changeLocked(&nameOp{node: n, to: folder, toName: base})
	case flag&os.O_TRUNC != 0 && len(n.data) > 0:
		n.change(dataOp{off: 0})
	}
	f := &memFile{fs: m, node: n, name: name, epoch: m.epoch, flag: flag}
	if flag&os.O_APPEND != 0 {
		f.pos = int64(len(n.data))
	}
	return f, nil
}

func (n *inode) change(op dataOp) {
	n.data = op.apply(n.data)
	if op.b == nil {
		n.reserved = 0
	}
	n.pending = append(n.pending, op)
}

// MkdirAll makes a folder and its parents.
func (m *Mem) MkdirAll(name string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for _, p := range parts(name) {
		next := n.entries[p]
		if next == nil {
			if err := m.faults.check(OpMkdir, name); err != nil {
				return pathError("mkdir", name, err)
			}
			next = newFolder()
			next.mod = m.now()
			m.changeLocked(&nameOp{node: next, to: n, toName: p})
		}
		if !next.folder {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// Remove removes a file or an empty folder.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.faults.check(OpRemove, name); err != nil {
		return pathError("remove", name, err)
	}
	n := m.findLocked(name)
	if n == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if len(n.entries) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	m.removeLocked(name, n)
	return nil
}

func (m *Mem) removeLocked(name string, n *inode) {
	if folder, base := m.parentLocked(name); folder != nil {
		m.changeLocked(&nameOp{node: n, from: folder, fromName: base})
	}
}

// RemoveAll removes a file or folder with all that is in it.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.faults.check(OpRemove, name); err != nil {
		return pathError("removeall", name, err)
	}
	n := m.findLocked(name)
	if n == nil {
		return nil
	}
	m.clearLocked(n)
	m.removeLocked(name, n)
	return nil
}

func (m *Mem) clearLocked(n *inode) {
	for _, name := range sortedNames(n.entries) {
		child := n.entries[name]
		m.clearLocked(child)
		m.changeLocked(&nameOp{node: child, from: n, fromName: name})
	}
}

func sortedNames(entries map[string]*inode) []string {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Rename moves a file or folder; a crash keeps all of the move or nothing.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.faults.check(OpRename, oldName); err != nil {
		return pathError("rename", oldName, err)
	}
	n := m.findLocked(oldName)
	from, fromName := m.parentLocked(oldName)
	to, toName := m.parentLocked(newName)
	if n == nil || from == nil || to == nil {
		return pathError("rename", oldName, fs.ErrNotExist)
	}
	if at := to.entries[toName]; at != nil && at.folder && (len(at.entries) > 0 || !n.folder) {
		return pathError("rename", newName, fs.ErrExist)
	}
	if from == to && fromName == toName {
		return nil
	}
	m.changeLocked(&nameOp{node: n, from: from, fromName: fromName, to: to, toName: toName})
	return nil
}

// Link gives a file a second name.
func (m *Mem) Link(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.faults.check(OpLink, newName); err != nil {
		return pathError("link", newName, err)
	}
	n := m.findLocked(oldName)
	to, toName := m.parentLocked(newName)
	if n == nil || to == nil {
		return pathError("link", oldName, fs.ErrNotExist)
	}
	if to.entries[toName] != nil {
		return pathError("link", newName, fs.ErrExist)
	}
	m.changeLocked(&nameOp{node: n, to: to, toName: toName})
	return nil
}

// ReadDir lists a folder sorted by name.
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.faults.check(OpRead, name); err != nil {
		return nil, pathError("readdir", name, err)
	}
	n := m.findLocked(name)
	if n == nil {
		return nil, pathError("readdir", name, fs.ErrNotExist)
	}
	if !n.folder {
		return nil, pathError("readdir", name, syscall.ENOTDIR)
	}
	list := make([]fs.DirEntry, 0, len(n.entries))
	for _, base := range sortedNames(n.entries) {
		list = append(list, fs.FileInfoToDirEntry(n.entries[base].info(base)))
	}
	return list, nil
}

// Stat describes a file or folder.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.faults.check(OpRead, name); err != nil {
		return nil, pathError("stat", name, err)
	}
	n := m.findLocked(name)
	if n == nil {
		return nil, pathError("stat", name, fs.ErrNotExist)
	}
	return n.info(filepath.Base(name)), nil
}

// SyncDir makes the changes of a folder's entries durable, in their order.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.faults.check(OpSyncDir, name); err != nil {
		return pathError("syncdir", name, err)
	}
	n := m.findLocked(name)
	if n == nil {
		return pathError("syncdir", name, fs.ErrNotExist)
	}
	m.journal = slices.DeleteFunc(m.journal, func(op *nameOp) bool {
		if op.from != n && op.to != n {
			return false
		}
		op.applyStable()
		return true
	})
	return nil
}

type memLock struct {
	fs   *Mem
	name string
}

func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.fs.locks[l.name] == l {
		delete(l.fs.locks, l.name)
	}
	return nil
}

// Lock takes a lock that Close, Crash and Kill release.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.faults.check(OpOpen, name); err != nil {
		return nil, pathError("lock", name, err)
	}
	if m.locks[name] != nil {
		return nil, pathError("lock", name, ErrLocked)
	}
	folder, base := m.parentLocked(name)
	if folder == nil {
		return nil, pathError("lock", name, fs.ErrNotExist)
	}
	if folder.entries[base] == nil {
		m.changeLocked(&nameOp{node: &inode{mod: m.now()}, to: folder, toName: base})
	}
	l := &memLock{fs: m, name: name}
	m.locks[name] = l
	return l, nil
}

// ReadLock stands for nobody else's lock: there are no other programs. A lock of
// Lock counts as one.
func (m *Mem) ReadLock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.faults.check(OpOpen, name); err != nil {
		return nil, pathError("lock", name, err)
	}
	switch {
	case m.findLocked(name) == nil:
		return nil, pathError("lock", name, fs.ErrNotExist)
	case m.locks[name] != nil:
		return nil, pathError("lock", name, ErrLocked)
	}
	return &memLock{fs: m}, nil
}

const unlimited = 1 << 50

// Usage is what SetCapacity leaves.
func (m *Mem) Usage(string) (free, total uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.capacity == 0 {
		return unlimited, unlimited, nil
	}
	used := m.usedLocked()
	return m.capacity - min(used, m.capacity), m.capacity, nil
}

func (m *Mem) usedLocked() uint64 { return m.root.used(map[*inode]bool{}) }

// space is what the file takes of the capacity.
func (n *inode) space() int64 { return max(int64(len(n.data)), n.reserved) }

func (n *inode) used(seen map[*inode]bool) uint64 {
	if seen[n] {
		return 0
	}
	seen[n] = true
	sum := uint64(n.space())
	for _, child := range n.entries {
		sum += child.used(seen)
	}
	return sum
}
