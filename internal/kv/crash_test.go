package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// workload opens a store, writes pairs of keys that belong together, every third
// time synced, and closes it. It returns how many pairs were acknowledged as
// durable.
func workload(fsys vfs.FS, round int) (durable int) {
	d, err := Open(fsys, "/data/kv", quiet)
	if err != nil {
		return 0
	}
	defer d.Close()
	for i := range 9 {
		sync := i%3 == 2
		key := fmt.Sprintf("%d/%d", round, i)
		if err := d.Apply([]Op{put("a/"+key, "x"), put("b/"+key, "x")}, sync); err != nil {
			return durable
		}
		if sync {
			durable = i + 1
		}
	}
	return durable
}

// checkPairs opens the store again: it must come up, hold every durable pair,
// and no half of one; and what it holds is the beginning of what was written.
func checkPairs(t *testing.T, fsys vfs.FS, round, durable int) {
	t.Helper()
	// Who only looks needs no repair first.
	d, err := OpenReadOnly(fsys, "/data/kv", quiet)
	if err == nil {
		err = d.Close()
	}
	if err != nil && (durable > 0 || !errors.Is(err, fs.ErrNotExist)) {
		t.Fatalf("the store does not open to read: %v", err)
	}
	d, err = Open(fsys, "/data/kv", quiet)
	if err != nil {
		t.Fatalf("the store does not open again: %v", err)
	}
	defer d.Close()
	a, b := contents(t, d, fmt.Sprintf("a/%d/", round)), contents(t, d, fmt.Sprintf("b/%d/", round))
	if strings.ReplaceAll(b, "b/", "a/") != a {
		t.Fatalf("half a batch: %q and %q", a, b)
	}
	var want []string
	for i := range len(strings.Fields(a)) {
		want = append(want, fmt.Sprintf("a/%d/%d=x", round, i))
	}
	if a != strings.Join(want, " ") {
		t.Fatalf("writes are missing in the middle: %q", a)
	}
	if len(want) < durable {
		t.Fatalf("%d pairs were durable, %q is left", durable, a)
	}
	if err := d.Apply([]Op{put("after", "x")}, true); err != nil {
		t.Fatalf("the store does not write again: %v", err)
	}
}

// operations is how many changing operations the workload takes on a copy of
// what prepare leaves.
func operations(prepare func() *vfs.Mem, round int) int64 {
	fsys := prepare()
	before := fsys.Ops()
	workload(fsys, round)
	return fsys.Ops() - before
}

// prepared are the states that a workload starts from: nothing, and a store that
// was closed.
func prepared() map[string]func() *vfs.Mem {
	return map[string]func() *vfs.Mem{
		"new": vfs.NewMem,
		"old": func() *vfs.Mem {
			fsys := vfs.NewMem()
			workload(fsys, 0)
			return fsys
		},
	}
}

func TestCrashAtEveryOperation(t *testing.T) {
	for name, prepare := range prepared() {
		t.Run(name, func(t *testing.T) {
			const round = 1
			// Background work makes the number of operations vary a little.
			last := operations(prepare, round) + 5
			for n := int64(1); n <= last; n++ {
				fsys := prepare()
				fsys.CrashAt(n)
				durable := workload(fsys, round)
				fsys.Crash(uint64(n))
				checkPairs(t, fsys.Next(), round, durable)
				if t.Failed() {
					t.Fatalf("after a crash at operation %d", n)
				}
			}
		})
	}
}

func TestFailureAtEveryOperation(t *testing.T) {
	disk := errors.New("input/output error")
	for name, prepare := range prepared() {
		t.Run(name, func(t *testing.T) {
			const round = 1
			last := operations(prepare, round) + 5
			for n := int64(1); n <= last; n++ {
				fsys := prepare()
				fsys.FailAt(n, disk)
				durable := workload(fsys, round)
				fsys.Kill()
				checkPairs(t, fsys.Next(), round, durable)
				if t.Failed() {
					t.Fatalf("after a failure of operation %d", n)
				}
			}
		})
	}
}
