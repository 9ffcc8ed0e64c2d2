package quorum

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// term of service: two starts with proposals, so that a restart, a new term and a
// snapshot lie in the middle. It returns the proposals whose commit was reported.
func serve(fsys vfs.FS, round int) (acked []string) {
	for part := range 2 {
		m, err := start(fsys, Options{SnapshotEntries: 3})
		if err != nil {
			return acked
		}
		for i := range 3 {
			word := fmt.Sprintf("%d.%d.%d", round, part, i)
			if _, err := m.Propose(m.leads(), []byte(word)); err != nil {
				break
			}
			acked = append(acked, word)
		}
		m.stop()
	}
	return acked
}

// checkServed starts once more: it must come up, and hold what was acknowledged,
// in order and once each.
func checkServed(t *testing.T, fsys vfs.FS, acked []string) {
	t.Helper()
	m, err := start(fsys, Options{SnapshotEntries: 3})
	if err != nil {
		t.Fatalf("does not start again: %v", err)
	}
	defer m.stop()
	got := m.j.words
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Fatalf("out of order or twice: %v", got)
	}
	for _, word := range acked {
		if !slices.Contains(got, word) {
			t.Fatalf("%s was committed and is lost; left is %s", word, strings.Join(got, " "))
		}
	}
	if _, err := m.Propose(m.leads(), []byte("after")); err != nil {
		t.Fatalf("does not commit again: %v", err)
	}
}

func TestCommittedSurvivesACrashAtEveryOperation(t *testing.T) {
	eachOperation(t, func(fsys *vfs.Mem, n int64) { fsys.CrashAt(n) }, func(fsys *vfs.Mem, n int64) { fsys.Crash(uint64(n)) })
}

func TestCommittedSurvivesAFailureOfEveryOperation(t *testing.T) {
	disk := errors.New("input/output error")
	eachOperation(t, func(fsys *vfs.Mem, n int64) { fsys.FailAt(n, disk) }, func(fsys *vfs.Mem, _ int64) { fsys.Kill() })
}

func eachOperation(t *testing.T, arm, end func(fsys *vfs.Mem, n int64)) {
	prepare := func() *vfs.Mem {
		fsys := vfs.NewMem()
		serve(fsys, 0)
		return fsys
	}
	for name, prepare := range map[string]func() *vfs.Mem{"new": vfs.NewMem, "old": prepare} {
		t.Run(name, func(t *testing.T) {
			fsys := prepare()
			before := fsys.Ops()
			serve(fsys, 1)
			last := fsys.Ops() - before
			for n := int64(1); n <= last; n++ {
				fsys := prepare()
				arm(fsys, n)
				acked := serve(fsys, 1)
				end(fsys, n)
				checkServed(t, fsys.Next(), acked)
				if t.Failed() {
					t.Fatalf("at operation %d", n)
				}
			}
		})
	}
}
