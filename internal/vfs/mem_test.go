package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func write(t *testing.T, f FS, name, text string) File {
	t.Helper()
	h, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
	return h
}

func read(f FS, name string) string {
	h, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return "error: " + errors.Unwrap(err).Error()
	}
	defer h.Close()
	b, err := io.ReadAll(h)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}

// TestConformance holds Mem and OS to the same answers.
func TestConformance(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (FS, string){
		"os":  func(t *testing.T) (FS, string) { return OS(), t.TempDir() },
		"mem": func(t *testing.T) (FS, string) { return NewMem(), "/base" },
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := open(t)
			at := func(n string) string { return filepath.Join(dir, n) }
			if err := f.MkdirAll(at("d/e"), 0o755); err != nil {
				t.Fatal(err)
			}
			h := write(t, f, at("d/a"), "hello")
			if got := read(f, at("d/a")); got != "hello" {
				t.Fatalf("read %q", got)
			}
			if err := h.Truncate(2); err != nil {
				t.Fatal(err)
			}
			if _, err := h.WriteAt([]byte("x"), 4); err != nil {
				t.Fatal(err)
			}
			if got := read(f, at("d/a")); got != "he\x00\x00x" {
				t.Fatalf("read %q", got)
			}
			if err := errors.Join(h.Sync(), h.SyncData(), f.SyncDir(at("d"))); err != nil {
				t.Fatal(err)
			}
			if n, err := h.ReadAt(make([]byte, 10), 3); n != 2 || !errors.Is(err, io.EOF) {
				t.Fatalf("read %d at the end: %v", n, err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := h.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
				t.Fatalf("read of a closed file: %v", err)
			}
			write(t, f, at("d/b"), "other").Close()
			if err := f.Rename(at("d/b"), at("d/a")); err != nil {
				t.Fatal(err)
			}
			if got := read(f, at("d/a")); got != "other" {
				t.Fatalf("after the rename %q", got)
			}
			if _, err := f.OpenFile(at("d/b"), os.O_RDWR, 0); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("open a file that is gone: %v", err)
			}
			if _, err := f.OpenFile(at("d/a"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); !errors.Is(err, fs.ErrExist) {
				t.Fatalf("exclusive create: %v", err)
			}
			if err := f.Link(at("d/a"), at("d/c")); err != nil {
				t.Fatal(err)
			}
			entries, err := f.ReadDir(at("d"))
			if err != nil || len(entries) != 3 || entries[0].Name() != "a" || entries[1].Name() != "c" || !entries[2].IsDir() {
				t.Fatalf("entries %v, %v", entries, err)
			}
			if err := f.Remove(at("d")); err == nil {
				t.Fatal("removed a folder that is not empty")
			}
			if err := f.Rename(at("d"), at("z")); err != nil {
				t.Fatal(err)
			}
			if err := f.RemoveAll(at("z")); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Stat(at("z")); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("stat of a removed folder: %v", err)
			}
			testLock(t, f, at("lock"))
			if _, err := f.ReadLock(at("none")); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("read lock of a file that is not there: %v", err)
			}
			for range 2 { // readers share
				l, err := f.ReadLock(at("lock"))
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			}
		})
	}
}

func testLock(t *testing.T, f FS, name string) {
	t.Helper()
	l, err := f.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock(name); !errors.Is(err, ErrLocked) {
		t.Fatalf("second lock: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = f.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file that another program has locked as Java does cannot be read-locked, and
// one that is read-locked cannot be locked so.
func TestReadLockAgainstOthers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	if other := os.Getenv("VFS_TEST_LOCK"); other != "" {
		fmt.Print(javaLock(other))
		return
	}
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	other := func() string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestReadLockAgainstOthers$")
		cmd.Env = append(os.Environ(), "VFS_TEST_LOCK="+name)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := other(); !strings.HasPrefix(got, "locked") {
		t.Fatalf("another program: %s", got)
	}
	l, err := OS().ReadLock(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := other(); !strings.HasPrefix(got, "held") {
		t.Errorf("another program beside a read lock: %s", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := other(); !strings.HasPrefix(got, "locked") {
		t.Errorf("another program after a read lock: %s", got)
	}
}

func TestOSMapAndPreallocate(t *testing.T) {
	h := write(t, OS(), filepath.Join(t.TempDir(), "f"), string(make([]byte, 9000))+"tail")
	defer h.Close()
	if err := h.Preallocate(9004, 1<<20); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	if info, err := h.Stat(); err != nil || info.Size() != 9004 {
		t.Fatalf("preallocation changed the length: %v, %v", info, err)
	}
	m, err := h.Map(9000, 4)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no maps here")
	}
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Bytes()) != "tail" {
		t.Fatalf("mapped %q", m.Bytes())
	}
	if err := m.Unmap(); err != nil {
		t.Fatal(err)
	}
	if free, total, err := OS().Usage(t.TempDir()); err != nil || free == 0 || total < free {
		t.Fatalf("usage %d of %d: %v", free, total, err)
	}
}

func TestCrashForgetsWhatWasNotSynced(t *testing.T) {
	outcomes := map[string]bool{}
	for seed := range uint64(64) {
		m := NewMem()
		if err := m.MkdirAll("/d", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := m.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		h := write(t, m, "/d/kept", "synced")
		if err := errors.Join(h.Sync(), m.SyncDir("/d")); err != nil {
			t.Fatal(err)
		}
		if _, err := h.WriteAt([]byte("UNSURE"), 0); err != nil {
			t.Fatal(err)
		}
		write(t, m, "/d/new", "x")
		if err := m.Rename("/d/kept", "/d/moved"); err != nil {
			t.Fatal(err)
		}
		m.Crash(seed)
		old, moved := read(m, "/d/kept"), read(m, "/d/moved")
		if (len(old) == 6) == (len(moved) == 6) {
			t.Fatalf("seed %d: the rename is neither whole nor absent: %q, %q", seed, old, moved)
		}
		outcomes[fmt.Sprint(old, moved, read(m, "/d/new"))] = true
		if _, err := h.ReadAt(make([]byte, 1), 0); !errors.Is(err, ErrCrashed) {
			t.Fatalf("a handle outlived the crash: %v", err)
		}
	}
	if len(outcomes) < 6 {
		t.Fatalf("seeds make too little difference: %v", outcomes)
	}
}

func TestSyncedSurvivesEveryCrash(t *testing.T) {
	for seed := range uint64(32) {
		m := NewMem()
		h := write(t, m, "/f", "durable")
		if err := errors.Join(h.Sync(), m.SyncDir("/")); err != nil {
			t.Fatal(err)
		}
		m.Crash(seed)
		if got := read(m, "/f"); got != "durable" {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
}

// TestFailedSyncLosesPages is Linux's behaviour: after a failed fsync the pages
// are clean, a later fsync succeeds and they are lost all the same.
func TestFailedSyncLosesPages(t *testing.T) {
	m := NewMem()
	h := write(t, m, "/f", "12")
	if err := errors.Join(h.Sync(), m.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.WriteAt([]byte("34"), 2); err != nil {
		t.Fatal(err)
	}
	m.FailAt(1, syscall.EIO)
	if err := h.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := h.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := read(m, "/f"); got != "1234" {
		t.Fatalf("the page cache has %q", got)
	}
	m.Crash(1)
	if got := read(m, "/f"); got != "12" {
		t.Fatalf("after the crash %q", got)
	}
}

func TestCrashAtStopsEverything(t *testing.T) {
	m := NewMem()
	h := write(t, m, "/f", "a")
	m.CrashAt(2)
	if err := h.Sync(); err != nil {
		t.Fatal(err)
	}
	if n, err := h.WriteAt([]byte("bcde"), 1); n != 2 || !errors.Is(err, ErrCrashed) {
		t.Fatalf("wrote %d: %v", n, err)
	}
	if _, err := m.Stat("/f"); !errors.Is(err, ErrCrashed) {
		t.Fatalf("stat after the crash: %v", err)
	}
	m.Kill()
	if got := read(m, "/f"); got != "abc" {
		t.Fatalf("after a restart of the process %q", got)
	}
	next := m.Next()
	if err := m.Remove("/f"); !errors.Is(err, ErrCrashed) {
		t.Fatalf("a late removal: %v", err)
	}
	if got := read(next, "/f"); got != "abc" {
		t.Fatalf("the next process has %q", got)
	}
}

func TestCapacity(t *testing.T) {
	m := NewMem()
	m.SetCapacity(10)
	h := write(t, m, "/f", "12345678")
	n, err := h.WriteAt([]byte("abcd"), 8)
	if n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("wrote %d: %v", n, err)
	}
	if free, total, _ := m.Usage("/"); free != 0 || total != 10 {
		t.Fatalf("usage %d of %d", free, total)
	}
	if err := h.Preallocate(10, 1); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := m.Remove("/f"); err != nil {
		t.Fatal(err)
	}
	if free, _, _ := m.Usage("/"); free != 10 {
		t.Fatalf("%d free after the removal", free)
	}
	h = write(t, m, "/g", "1")
	if err := h.Preallocate(1, 7); err != nil {
		t.Fatal(err)
	}
	write(t, m, "/h", "12")
	if free, _, _ := m.Usage("/"); free != 0 {
		t.Fatalf("%d free beside reserved space", free)
	}
	if _, err := h.WriteAt([]byte("2345678"), 1); err != nil {
		t.Fatalf("write into reserved space: %v", err)
	}
	if err := h.Truncate(1); err != nil {
		t.Fatal(err)
	}
	if free, _, _ := m.Usage("/"); free != 7 {
		t.Fatalf("%d free after the truncation", free)
	}
}
