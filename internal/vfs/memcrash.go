package vfs

import "math/rand/v2"

// OpKind is a kind of operation of a Mem.
type OpKind int8

// The kinds; those from OpCreate on change something.
const (
	OpOpen OpKind = iota
	OpRead
	OpCreate
	OpWrite
	OpSync
	OpTruncate
	OpPreallocate
	OpMkdir
	OpRemove
	OpRename
	OpLink
	OpSyncDir
)

// Changes says that the operation changes the file system or makes it durable.
func (k OpKind) Changes() bool { return k >= OpCreate }

// Op is an operation that is about to happen. N numbers those that change
// something, from 1; it is 0 for the others.
type Op struct {
	N    int64
	Kind OpKind
	Name string
}

// faults decides which operations fail.
type faults struct {
	ops     int64
	crashAt int64
	hook    func(Op) error
}

func (f *faults) check(kind OpKind, name string) error {
	op := Op{Kind: kind, Name: name}
	if kind.Changes() {
		f.ops++
		op.N = f.ops
	}
	if f.crashAt > 0 && f.ops >= f.crashAt {
		return ErrCrashed
	}
	if f.hook != nil {
		return f.hook(op)
	}
	return nil
}

// Ops is how many operations so far changed something.
func (m *Mem) Ops() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults.ops
}

// SetFault makes operations fail with what hook returns; it runs under the file
// system's lock. A failed write has written its first half. nil ends it.
func (m *Mem) SetFault(hook func(Op) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.hook = hook
}

// FailAt makes the n-th changing operation from now fail, once.
func (m *Mem) FailAt(n int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.faults.ops + n
	m.faults.hook = func(op Op) error {
		if op.N == at {
			return err
		}
		return nil
	}
}

// CrashAt stops the machine before the n-th changing operation from now: that
// one (a write may have half happened) and all later ones fail with ErrCrashed,
// until Crash or Kill.
func (m *Mem) CrashAt(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.crashAt = m.faults.ops + n
}

// Kill is the end of the process: handles and locks are gone, every write that
// returned is still there.
func (m *Mem) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restartLocked()
}

// Next is the file system as the next process has it, after a Kill or Crash. A
// goroutine of the process before may be late and remove a file of a name that is
// there again; this one has crashed for good.
func (m *Mem) Next() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := &Mem{root: m.root, journal: m.journal, locks: map[string]*memLock{}, epoch: m.epoch, capacity: m.capacity, now: m.now, faults: faults{ops: m.faults.ops}}
	m.root, m.journal, m.faults = newFolder(), nil, faults{ops: 1, crashAt: 1}
	m.epoch++
	return next
}

func (m *Mem) restartLocked() {
	m.epoch++
	m.locks = map[string]*memLock{}
	m.faults.crashAt, m.faults.hook = 0, nil
}

// Crash is the end of the machine: of what was not synced, only what the seed
// chooses survives. Seeds differ in kind: nothing, everything, a prefix in order
// with a torn last write, or any subset, page by page.
func (m *Mem) Crash(seed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := rand.New(rand.NewPCG(seed, 0x6d656d))
	m.crashNamesLocked(r)
	m.root.crash(r, map[*inode]bool{})
	m.restartLocked()
}

// survival is what of a sequence of changes survives.
type survival int

const (
	surviveNone survival = iota
	surviveAll
	survivePrefix
	surviveAny
	survivals
)

func (m *Mem) crashNamesLocked(r *rand.Rand) {
	mode := survival(r.IntN(int(survivals)))
	n := len(m.journal)
	if mode == survivePrefix {
		n = r.IntN(n + 1)
	}
	for _, op := range m.journal[:n] {
		if mode == surviveAll || mode == survivePrefix || mode == surviveAny && r.IntN(2) == 0 {
			op.applyStable()
		}
	}
	m.journal = nil
}

// crash takes a folder or file back to what survives.
func (n *inode) crash(r *rand.Rand, seen map[*inode]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	if !n.folder {
		n.crashData(r)
		return
	}
	n.entries = map[string]*inode{}
	for _, name := range sortedNames(n.stable) {
		n.entries[name] = n.stable[name]
		n.stable[name].crash(r, seen)
	}
}

func (n *inode) crashData(r *rand.Rand) {
	mode := survival(r.IntN(int(survivals)))
	ops := n.pending
	switch mode {
	case surviveNone:
		ops = nil
	case survivePrefix:
		ops = ops[:r.IntN(len(ops)+1)]
	}
	for i, op := range ops {
		torn := mode == survivePrefix && i == len(ops)-1
		switch {
		case mode == surviveAny:
			n.keepPages(op, r)
		case torn && len(op.b) > 0:
			n.kept = dataOp{off: op.off, b: op.b[:r.IntN(len(op.b)+1)]}.apply(n.kept)
		default:
			n.kept = op.apply(n.kept)
		}
	}
	n.data, n.pending = append([]byte(nil), n.kept...), nil
}

const pageSize = 4096

// keepPages keeps any of a change's pages.
func (n *inode) keepPages(op dataOp, r *rand.Rand) {
	if op.b == nil {
		if r.IntN(2) == 0 {
			n.kept = op.apply(n.kept)
		}
		return
	}
	for from := int64(0); from < int64(len(op.b)); {
		to := min((op.off+from)/pageSize*pageSize+pageSize-op.off, int64(len(op.b)))
		if r.IntN(2) == 0 {
			n.kept = dataOp{off: op.off + from, b: op.b[from:to]}.apply(n.kept)
		}
		from = to
	}
}
