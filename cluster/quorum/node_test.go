package quorum

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

var quiet = slog.New(slog.DiscardHandler)

// journal is a state machine that remembers what it was told, in order.
type journal struct {
	mu     sync.Mutex
	words  []string
	last   uint64
	term   uint64
	refuse error
	told   []string
}

func (j *journal) Apply(index, term uint64, data []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if index <= j.last || term < j.term {
		return fmt.Errorf("entry %d of term %d after %d of %d", index, term, j.last, j.term)
	}
	j.last, j.term = index, term
	j.words = append(j.words, string(data))
	return j.refuse
}

func (j *journal) Snapshot() ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return []byte(strings.Join(j.words, " ")), nil
}

func (j *journal) Restore(snapshot []byte, index, term uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.words, j.last, j.term = strings.Fields(string(snapshot)), index, term
	return nil
}

func (j *journal) LeaderChange(leader NodeID, term uint64, self bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.told = append(j.told, fmt.Sprintf("leader %d term %d self %v after %d", leader, term, self, len(j.words)))
	j.term = term
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.words, " ")
}

// member is a node with its store and machine.
type member struct {
	*Node
	db *kv.DB
	j  *journal
}

func start(fsys vfs.FS, o Options) (*member, error) {
	db, err := kv.Open(fsys, "/data/kv", quiet)
	if err != nil {
		return nil, err
	}
	j := &journal{}
	o.DB, o.Machine, o.Log = db, j, quiet
	if o.ID == 0 {
		o.ID = 77
	}
	n, err := Open(o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &member{Node: n, db: db, j: j}, nil
}

func mustStart(t *testing.T, fsys vfs.FS, o Options) *member {
	t.Helper()
	m, err := start(fsys, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.stop)
	return m
}

func (m *member) stop() {
	m.Close()
	m.db.Close()
}

func (m *member) leads() uint64 {
	m.j.mu.Lock()
	defer m.j.mu.Unlock()
	return m.j.term
}

func TestLeadsAtOnceAndCommits(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustStart(t, fsys, Options{})
	if len(m.j.told) != 1 || !strings.Contains(m.j.told[0], "leader 77 term 2 self true after 0") {
		t.Fatalf("told %v", m.j.told)
	}
	if _, err := m.Propose(m.leads()-1, []byte("old")); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("proposed in an old term: %v", err)
	}
	var last uint64
	for _, word := range []string{"a", "b", "c"} {
		index, err := m.Propose(m.leads(), []byte(word))
		if err != nil || index <= last {
			t.Fatalf("index %d after %d, %v", index, last, err)
		}
		last = index
		if got := m.j.text(); !strings.HasSuffix(got, word) {
			t.Fatalf("answered before it was applied: %q", got)
		}
	}
	m.stop()
	if _, err := m.Propose(2, []byte("x")); !errors.Is(err, ErrClosed) {
		t.Fatalf("proposed to a closed node: %v", err)
	}
	m = mustStart(t, fsys, Options{})
	if got := m.j.text(); got != "a b c" {
		t.Fatalf("after a restart: %q", got)
	}
	if len(m.j.told) != 1 || !strings.Contains(m.j.told[0], "term 3 self true after 3") {
		t.Fatalf("told %v: it must lead a new term, after everything was replayed", m.j.told)
	}
}

func TestSnapshotsReplaceTheLog(t *testing.T) {
	fsys := vfs.NewMem()
	var want []string
	for round := range 4 {
		m := mustStart(t, fsys, Options{SnapshotEntries: 7})
		for i := range 10 {
			word := fmt.Sprintf("%d.%d", round, i)
			want = append(want, word)
			if _, err := m.Propose(m.leads(), []byte(word)); err != nil {
				t.Fatal(err)
			}
		}
		entries := 0
		if err := m.db.Scan(entryPrefix, func(_, _ []byte) bool { entries++; return true }); err != nil {
			t.Fatal(err)
		}
		if entries > 7 {
			t.Fatalf("%d entries are kept", entries)
		}
		if got := m.j.text(); got != strings.Join(want, " ") {
			t.Fatalf("round %d: %q", round, got)
		}
		m.stop()
	}
}

// TestLargeSnapshot takes more than one chunk, and more bytes than entries make
// it due.
func TestLargeSnapshot(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustStart(t, fsys, Options{SnapshotBytes: 2 * chunkBytes})
	word := strings.Repeat("x", chunkBytes)
	for range 5 {
		if _, err := m.Propose(m.leads(), []byte(word)); err != nil {
			t.Fatal(err)
		}
	}
	if m.store.snap.sizeBytes < 2*chunkBytes {
		t.Fatalf("snapshot of %d bytes", m.store.snap.sizeBytes)
	}
	m.stop()
	m = mustStart(t, fsys, Options{})
	if got := len(m.j.words); got != 5 {
		t.Fatalf("%d entries after a restart", got)
	}
}

func TestOtherFolderIsRefused(t *testing.T) {
	fsys := vfs.NewMem()
	mustStart(t, fsys, Options{}).stop()
	if _, err := start(fsys, Options{ID: 78}); err == nil || !strings.Contains(err.Error(), "meta.properties") {
		t.Fatalf("a log of another folder: %v", err)
	}
}

func TestMachineErrorEndsTheNode(t *testing.T) {
	m := mustStart(t, vfs.NewMem(), Options{})
	m.j.refuse = errors.New("does not fit")
	if _, err := m.Propose(m.leads(), []byte("x")); !errors.Is(err, m.j.refuse) {
		t.Fatalf("%v", err)
	}
	<-m.Done()
	if _, err := m.Propose(2, []byte("y")); !errors.Is(err, m.j.refuse) || m.Err() == nil {
		t.Fatalf("the node goes on: %v", err)
	}
}

// TestDamageIsRefused changes what the store holds: the log is never taken for
// shorter or emptier than it was.
func TestDamageIsRefused(t *testing.T) {
	key := func(n uint64) []byte { return indexKey(entryPrefix, n) }
	for name, ops := range map[string][]kv.Op{
		"entry lost":          {{Key: key(3), Delete: true}},
		"end lost":            {{Key: key(5), Delete: true}, {Key: key(6), Delete: true}},
		"entry cut":           {{Key: key(3), Value: []byte{0}}},
		"entry empty":         {{Key: key(3)}},
		"entry of other kind": {{Key: key(3), Value: numbers(2, 1)}},
		"term lost":           {{Key: hardKey, Delete: true}},
		"term cut":            {{Key: hardKey, Value: []byte{0, 2}}},
		"start lost":          {{Key: metaKey, Delete: true}},
		"start cut":           {{Key: metaKey, Value: []byte{0, 2}}},
		"start newer":         {{Key: metaKey, Value: []byte{9, 2}}},
		"too many voters":     {{Key: metaKey, Value: numbers(1, 1, 0, 0, 1<<40)}},
		"snapshot lost":       {{Key: chunkPrefix, End: kv.PrefixEnd(chunkPrefix), Delete: true}},
		"snapshot changed":    {{Key: indexKey(chunkPrefix, 0), Value: []byte("else")}},
		"foreign key":         {{Key: []byte("raft/entry/x"), Value: numbers(2, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			m := mustStart(t, fsys, Options{SnapshotEntries: 100})
			for _, word := range []string{"a", "b", "c"} {
				if _, err := m.Propose(m.leads(), []byte(word)); err != nil {
					t.Fatal(err)
				}
			}
			m.Close()
			if name == "snapshot lost" || name == "snapshot changed" {
				if err := m.store.saveSnapshot(m.applied, m.appliedTerm, []byte("a b c")); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.db.Apply(ops, true); err != nil {
				t.Fatal(err)
			}
			m.db.Close()
			if again, err := start(fsys, Options{}); err == nil {
				t.Fatalf("opened a damaged log: %q", again.j.text())
			}
		})
	}
}

// TestSaveReplacesTheTail is what a log does whose leader wrote another end.
func TestSaveReplacesTheTail(t *testing.T) {
	m := mustStart(t, vfs.NewMem(), Options{})
	for _, word := range []string{"a", "b", "c"} {
		if _, err := m.Propose(m.leads(), []byte(word)); err != nil {
			t.Fatal(err)
		}
	}
	m.Close()
	s := m.store
	entries, err := s.Entries(s.last-1, s.last+1, 1<<20)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	other := entries[0]
	other.Term = new(uint64(9))
	if err := s.save(nil, entries[:1], nil, true); err != nil {
		t.Fatal(err)
	}
	if term, err := s.Term(s.last); err != nil || term != 9 || s.last != other.GetIndex() {
		t.Fatalf("last is %d of term %d, %v", s.last, term, err)
	}
	again := &store{db: m.db}
	if _, err := again.load(); err == nil || !strings.Contains(err.Error(), "was committed") {
		t.Fatalf("a committed entry is gone and nobody says so: %v", err)
	}
}

// meddler damages the log between its first check and its replay.
type meddler struct {
	journal
	meddle func() error
}

func (m *meddler) Restore(snapshot []byte, index, term uint64) error {
	return errors.Join(m.journal.Restore(snapshot, index, term), m.meddle())
}

// TestUnreadableLogIsAnError: the library panics when it cannot read the log; the
// node says what is wrong.
func TestUnreadableLogIsAnError(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustStart(t, fsys, Options{})
	for _, word := range []string{"a", "b", "c"} {
		if _, err := m.Propose(m.leads(), []byte(word)); err != nil {
			t.Fatal(err)
		}
	}
	m.stop()
	db, err := kv.Open(fsys, "/data/kv", quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	machine := &meddler{meddle: func() error {
		return db.Apply([]kv.Op{{Key: entryPrefix, End: kv.PrefixEnd(entryPrefix), Delete: true}}, false)
	}}
	if _, err := Open(Options{ID: 77, DB: db, Machine: machine, Log: quiet}); !errors.Is(err, errDamagedLog) {
		t.Fatalf("%v", err)
	}
}
