package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

var quiet = slog.New(slog.DiscardHandler)

func open(t testing.TB, fsys vfs.FS, dir string) *DB {
	t.Helper()
	d, err := Open(fsys, dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func put(key, value string) Op { return Op{Key: []byte(key), Value: []byte(value)} }

func contents(t testing.TB, d *DB, prefix string) string {
	t.Helper()
	var out strings.Builder
	if err := d.Scan([]byte(prefix), func(key, value []byte) bool {
		fmt.Fprintf(&out, "%s=%s ", key, value)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func TestApplyGetScan(t *testing.T) {
	dir := t.TempDir()
	d := open(t, vfs.OS(), dir)
	ops := []Op{put("a/1", "x"), put("a/2", ""), put("a/3", "z"), put("b/1", "q"), {Key: []byte("a/2"), Delete: true}}
	if err := d.Apply(ops, false); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := d.Get([]byte("a/1")); err != nil || !ok || string(v) != "x" {
		t.Fatalf("a/1 is %q, %v, %v", v, ok, err)
	}
	if _, ok, err := d.Get([]byte("a/2")); err != nil || ok {
		t.Fatalf("a/2 is there: %v, %v", ok, err)
	}
	if got := contents(t, d, "a/"); got != "a/1=x a/3=z" {
		t.Fatalf("a/ holds %q", got)
	}
	if err := d.Apply([]Op{{Key: []byte("a/"), End: PrefixEnd([]byte("a/")), Delete: true}, put("a/9", "new")}, true); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatalf("closed twice: %v", err)
	}
	if _, _, err := d.Get([]byte("a/9")); !errors.Is(err, ErrClosed) {
		t.Fatalf("get after close: %v", err)
	}
	d = open(t, vfs.OS(), dir)
	if got := contents(t, d, ""); got != "a/9=new b/1=q" {
		t.Fatalf("after reopening: %q", got)
	}
}

func TestLast(t *testing.T) {
	d := open(t, vfs.NewMem(), "/kv")
	if err := d.Apply([]Op{put("a/1", ""), put("a/3", ""), put("a/2", ""), put("b/9", "")}, false); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]string{"a/": "a/3", "b/": "b/9", "": "b/9", "c/": "", "a/4": ""} {
		if key, err := d.Last([]byte(prefix)); err != nil || string(key) != want {
			t.Errorf("last of %q is %q, %v, want %q", prefix, key, err, want)
		}
	}
}

// TestScanPages goes over more than one page, and stops where it is told to.
func TestScanPages(t *testing.T) {
	d := open(t, vfs.OS(), t.TempDir())
	value := bytes.Repeat([]byte("v"), pageBytes/3)
	for i := range 10 {
		if err := d.Apply([]Op{{Key: fmt.Appendf(nil, "k/%d", i), Value: value}}, false); err != nil {
			t.Fatal(err)
		}
	}
	scan := func(from string, stop int) string {
		var keys []string
		err := d.ScanFrom([]byte("k/"), []byte(from), func(key, v []byte) bool {
			if !bytes.Equal(v, value) {
				t.Fatalf("%s has another value", key)
			}
			keys = append(keys, string(key[2:]))
			// The store may be written from inside a scan.
			if err := d.Apply([]Op{put("other", "x")}, false); err != nil {
				t.Fatal(err)
			}
			return len(keys) < stop
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(keys, "")
	}
	if got := scan("k/", 100); got != "0123456789" {
		t.Errorf("scan: %s", got)
	}
	if got := scan("k/7", 100); got != "789" {
		t.Errorf("scan from 7: %s", got)
	}
	if got := scan("k/2", 5); got != "23456" {
		t.Errorf("scan of five from 2: %s", got)
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "a\xff": "b", "a/\xff\xff": "a0"} {
		if got := PrefixEnd([]byte(prefix)); string(got) != want {
			t.Errorf("end of %q is %q, want %q", prefix, got, want)
		}
	}
	if got := PrefixEnd([]byte("\xff")); got != nil {
		t.Errorf("end of 0xff is %q", got)
	}
}

func TestOneProcessOnly(t *testing.T) {
	dir := t.TempDir()
	open(t, vfs.OS(), dir)
	if _, err := Open(vfs.OS(), dir, quiet); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("opened twice: %v", err)
	}
}

// brokenFS fails every write and sync once it is told to.
type brokenFS struct {
	vfs.FS
	broken atomic.Bool
}

var errBroken = errors.New("the disk is broken")

func (b *brokenFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if b.broken.Load() && flag&os.O_CREATE != 0 {
		return nil, errBroken
	}
	f, err := b.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &brokenFile{File: f, fs: b}, nil
}

type brokenFile struct {
	vfs.File
	fs *brokenFS
}

func (f *brokenFile) Write(p []byte) (int, error) {
	if f.fs.broken.Load() {
		return 0, errBroken
	}
	return f.File.Write(p)
}

func (f *brokenFile) SyncData() error {
	if f.fs.broken.Load() {
		return errBroken
	}
	return f.File.SyncData()
}

// TestFatalFailsTheStoreOnly breaks the disk: pebble calls Fatalf then. The
// process lives on, every call gets the error, and the folder can be opened
// again once the disk works.
func TestFatalFailsTheStoreOnly(t *testing.T) {
	dir := t.TempDir()
	fsys := &brokenFS{FS: vfs.OS()}
	d, err := Open(fsys, dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Apply([]Op{put("before", "x")}, true); err != nil {
		t.Fatal(err)
	}
	if d.Failed() != nil {
		t.Fatal("failed before anything failed")
	}
	fsys.broken.Store(true)
	if err := d.Apply([]Op{put("lost", "x")}, true); !errors.Is(err, errBroken) {
		t.Fatalf("write to a broken disk: %v", err)
	}
	<-d.Done()
	for what, err := range map[string]error{
		"failed": d.Failed(),
		"apply":  d.Apply([]Op{put("later", "x")}, false),
		"scan":   d.Scan(nil, func(_, _ []byte) bool { return true }),
		"close":  d.Close(),
	} {
		if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s says %v", what, err)
		}
	}
	fsys.broken.Store(false)
	again := open(t, fsys, dir)
	if v, ok, err := again.Get([]byte("before")); err != nil || !ok || string(v) != "x" {
		t.Fatalf("what was synced before the failure is %q, %v, %v", v, ok, err)
	}
}

// TestOpenOnBrokenDisk fails every operation of an open in turn: each is an
// error, none ends the process or hangs.
func TestOpenOnBrokenDisk(t *testing.T) {
	fsys := &brokenFS{FS: vfs.OS()}
	fsys.broken.Store(true)
	if _, err := Open(fsys, t.TempDir(), quiet); !errors.Is(err, errBroken) {
		t.Fatalf("opened on a broken disk: %v", err)
	}
}

// TestDamageIsNamed damages files of a store: it is refused, with the path.
func TestDamageIsNamed(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"marker lost": func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "marker.manifest*"))
			if err != nil || len(names) == 0 {
				return fmt.Errorf("no marker: %v", err)
			}
			return os.Remove(names[0])
		},
		"manifest overwritten": func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "MANIFEST*"))
			if err != nil || len(names) == 0 {
				return fmt.Errorf("no manifest: %v", err)
			}
			return os.WriteFile(names[len(names)-1], bytes.Repeat([]byte{7}, 200), 0o644)
		},
		"manifest lost": func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "MANIFEST*"))
			if err != nil || len(names) == 0 {
				return fmt.Errorf("no manifest: %v", err)
			}
			return os.Remove(names[len(names)-1])
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, vfs.OS(), dir)
			if err := d.Apply([]Op{put("k", "v")}, true); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(vfs.OS(), dir, quiet); err == nil || !strings.Contains(err.Error(), dir) {
				t.Fatalf("opened a damaged store: %v", err)
			}
		})
	}
}

func BenchmarkOpenEmpty(b *testing.B) {
	for b.Loop() {
		d := open(b, vfs.OS(), b.TempDir())
		if err := d.Apply([]Op{put("raft/a", "x")}, true); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		d.Close()
		b.StartTimer()
	}
}

func BenchmarkReopen(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		d := open(b, vfs.OS(), dir)
		if err := d.Apply([]Op{put("raft/a", "x")}, true); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		d.Close()
		b.StartTimer()
	}
}

// TestDamagedPrefixIsRebuilt damages the table that holds a prefix which can be
// rebuilt: reading it is ErrCorrupt, the rest stays readable, and once its range
// is deleted it can be written and read anew, also after a restart.
func TestDamagedPrefixIsRebuilt(t *testing.T) {
	dir := t.TempDir()
	d := open(t, vfs.OS(), dir)
	if err := d.Apply([]Op{put("raft/1", "kept")}, true); err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{1})
	var ops []Op
	for i := range 2000 {
		value := make([]byte, 1<<10)
		random.Read(value)
		ops = append(ops, Op{Key: fmt.Appendf(nil, "group/%04d", i), Value: value})
	}
	if err := d.Apply(ops, false); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, name := range tables {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// The middle of the file is a value; its ends are what opening it needs.
		for i := len(data) / 3; i < len(data)/3+64; i++ {
			data[i] ^= 0xff
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	d = open(t, vfs.OS(), dir)
	err = d.Scan([]byte("group/"), func(_, _ []byte) bool { return true })
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("scan of a damaged prefix: %v", err)
	}
	if v, ok, err := d.Get([]byte("raft/1")); err != nil || !ok || string(v) != "kept" {
		t.Fatalf("the other prefix: %q, %v, %v", v, ok, err)
	}
	drop := Op{Key: []byte("group/"), End: PrefixEnd([]byte("group/")), Delete: true}
	if err := d.Apply([]Op{drop, put("group/0001", "new")}, true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := contents(t, d, "group/"); got != "group/0001=new" {
			t.Fatalf("after it was dropped: %q", got)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, vfs.OS(), dir)
	}
}

// A store that is only read stays as it is, and one that is not there is not made.
func TestOpenReadOnly(t *testing.T) {
	mem := vfs.NewMem()
	for _, dir := range []string{"/none", "/empty"} {
		if err := mem.MkdirAll("/empty", 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenReadOnly(mem, dir, quiet); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	d := open(t, mem, "/kv")
	if err := d.Apply([]Op{put("a", "1"), put("b", "2")}, true); err != nil {
		t.Fatal(err)
	}
	mem.Kill() // with a log that was not flushed into tables
	before := mem.Ops()
	r, err := OpenReadOnly(mem, "/kv", quiet)
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, r, ""); got != "a=1 b=2" {
		t.Errorf("it holds %q", got)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := mem.Ops() - before; n != 0 {
		t.Errorf("%d changes of the disk", n)
	}
}
