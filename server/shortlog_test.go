package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/cluster/lifecycle"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// topicsOf are the topics that a node started on the folder has; on an error it
// did not start.
func topicsOf(t *testing.T, fsys vfs.FS) ([]string, error) {
	t.Helper()
	n, err := Start(testEnv(fsys), load(t, testDir))
	if err != nil {
		return nil, err
	}
	defer stop(n)
	list, err := kadm.NewClient(client(t, n)).ListTopics(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return list.Names(), nil
}

// content is every file below dir, by name, but for locks.
func content(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			for k, v := range content(t, fsys, name) {
				all[k] = v
			}
		case strings.Contains(strings.ToLower(e.Name()), "lock"):
		default:
			all[name] = string(readAll(t, fsys, name))
		}
	}
	return all
}

func readAll(t *testing.T, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil && len(b) > 0 {
		t.Fatal(err)
	}
	return b
}

// storeLog is the largest file of the embedded store's own log.
func storeLog(t *testing.T, fsys vfs.FS) (name string) {
	t.Helper()
	var largest int
	for k, v := range content(t, fsys, lifecycle.StoreDir(testDir)) {
		if strings.HasSuffix(k, ".log") && len(v) > largest {
			name, largest = k, len(v)
		}
	}
	if name == "" {
		t.Fatal("the store has no log")
	}
	return name
}

func rewrite(t *testing.T, fsys vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	b := change(readAll(t, fsys, name))
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

// storeDamages are what takes the end off the metadata log; the embedded store
// finds no fault with any.
var storeDamages = map[string]func(t *testing.T, fsys *vfs.Mem){
	"a flipped bit": func(t *testing.T, fsys *vfs.Mem) {
		rewrite(t, fsys, storeLog(t, fsys), func(b []byte) []byte {
			b[len(b)/3] ^= 4
			return b
		})
	},
	"cut": func(t *testing.T, fsys *vfs.Mem) {
		rewrite(t, fsys, storeLog(t, fsys), func(b []byte) []byte { return b[:len(b)/3] })
	},
	"emptied": func(t *testing.T, fsys *vfs.Mem) {
		rewrite(t, fsys, storeLog(t, fsys), func([]byte) []byte { return nil })
	},
	"removed": func(t *testing.T, fsys *vfs.Mem) {
		if err := fsys.Remove(storeLog(t, fsys)); err != nil {
			t.Fatal(err)
		}
	},
	"the whole store removed": func(t *testing.T, fsys *vfs.Mem) {
		if err := fsys.RemoveAll(lifecycle.StoreDir(testDir)); err != nil {
			t.Fatal(err)
		}
	},
}

// filled is a folder with topics whose broker was stopped, or killed.
func filled(t *testing.T, kill bool) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	n, err := Start(testEnv(fsys), load(t, testDir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kadm.NewClient(client(t, n)).CreateTopics(within(t), 1, 1, nil, "a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	if kill {
		fsys.CrashAt(1)
	}
	_ = stop(n) // what was killed cannot stop
	if kill {
		fsys.Kill()
		fsys = fsys.Next()
	}
	return fsys
}

// A metadata log that lost its end is refused, and the folder is left as it is.
func TestShortMetadataLogIsRefused(t *testing.T) {
	for name, damage := range storeDamages {
		for _, kill := range []bool{false, true} {
			fsys := filled(t, kill)
			damage(t, fsys)
			before := content(t, fsys, testDir)
			_, err := topicsOf(t, fsys)
			if !errors.Is(err, errShortLog) || !strings.Contains(err.Error(), lifecycle.MetadataEndPath(testDir)) {
				t.Errorf("%s, killed %v: %v, want a refusal that says what to do", name, kill, err)
				continue
			}
			if _, err := Look(testEnv(fsys), load(t, testDir)); !errors.Is(err, errShortLog) {
				t.Errorf("%s, killed %v: a look at it: %v", name, kill, err)
			}
			after := content(t, fsys, testDir)
			for file, was := range before {
				if is, ok := after[file]; !ok || is != was {
					t.Errorf("%s, killed %v: %s changed", name, kill, file)
				}
			}
			if len(after) > len(before) {
				t.Errorf("%s, killed %v: %d files became %d", name, kill, len(before), len(after))
			}
		}
	}
}

// The way on that the refusal names: what is left serves, and what it does not
// know is told and kept.
func TestShortMetadataLogIsAcceptedWithoutItsNote(t *testing.T) {
	fsys := filled(t, false)
	storeDamages["removed"](t, fsys)
	if err := fsys.Remove(lifecycle.MetadataEndPath(testDir)); err != nil {
		t.Fatal(err)
	}
	var out lines
	env := testEnv(fsys)
	env.Log = slog.New(slog.NewTextHandler(&out, nil))
	n, err := Start(env, load(t, testDir))
	if err != nil {
		t.Fatal(err)
	}
	defer stop(n)
	for _, folder := range []string{"a-0", "b-0", "c-0"} {
		if _, err := fsys.Stat(filepath.Join(testDir, folder)); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), "level=ERROR") || !strings.Contains(out.String(), folder) {
			t.Errorf("%s is not told of: %s", folder, out.String())
		}
	}
}

// A note that cannot be read is no reason to stay away.
func TestUnreadableNoteOfTheMetadataEnd(t *testing.T) {
	fsys := filled(t, false)
	rewrite(t, fsys, lifecycle.MetadataEndPath(testDir), func(b []byte) []byte { return b[:9] })
	if topics, err := topicsOf(t, fsys); err != nil || len(topics) != 3 {
		t.Fatalf("%v, %v", topics, err)
	}
	if err := fsys.Remove(lifecycle.MetadataEndPath(testDir)); err != nil {
		t.Fatal(err)
	}
	if topics, err := topicsOf(t, fsys); err != nil || len(topics) != 3 {
		t.Fatalf("%v, %v", topics, err)
	}
}

// changeTopics starts a node and makes and removes topics, up to the first error.
func changeTopics(t *testing.T, fsys vfs.FS) (made []string) {
	n, err := OpenOffline(testEnv(fsys), load(t, testDir))
	if err != nil {
		return nil
	}
	defer func() { _ = n.Close(context.Background()) }()
	for _, topic := range []string{"x", "y", "z"} {
		if err := n.makeTopic(topic, 1, nil); err != nil {
			return made
		}
		made = append(made, topic)
	}
	return made
}

// A crash at any operation, and a kill at any, leave no folder that the next start
// takes for a damaged one.
func TestNoCrashLooksLikeAShortMetadataLog(t *testing.T) {
	for name, prepare := range map[string]func() *vfs.Mem{"new": vfs.NewMem, "old": func() *vfs.Mem { return filled(t, false) }} {
		for _, power := range []bool{true, false} {
			fsys := prepare()
			before := fsys.Ops()
			changeTopics(t, fsys)
			last := fsys.Ops() - before
			for at := int64(1); at <= last; at++ {
				fsys := prepare()
				fsys.CrashAt(at)
				made := changeTopics(t, fsys)
				if power {
					fsys.Crash(uint64(at))
				} else {
					fsys.Kill()
				}
				checkTopics(t, fsys.Next(), made)
				if t.Failed() {
					t.Fatalf("%s folder, power failure %v, at operation %d of %d", name, power, at, last)
				}
			}
			t.Logf("%s folder, power failure %v: %d operations", name, power, last)
		}
	}
}

// checkTopics opens the folder twice, as the first start after a crash must not
// mislead the second, and looks for the topics that were answered.
func checkTopics(t *testing.T, fsys vfs.FS, made []string) {
	t.Helper()
	for range 2 {
		n, err := OpenOffline(testEnv(fsys), load(t, testDir))
		if err != nil {
			t.Errorf("refused: %v", err)
			return
		}
		for _, topic := range made {
			if _, ok := n.Image().Topic(topic); !ok {
				t.Errorf("topic %s is lost", topic)
			}
		}
		if err := n.Close(context.Background()); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
	}
}
