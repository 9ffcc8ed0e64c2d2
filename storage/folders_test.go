package storage

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

func TestDelete(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 1)
	if err := w.store.Delete(testTopic); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(AppendRequest{Batches: makeBatch(1, "x", 1, nil)}); !errors.Is(err, ErrClosed) {
		t.Fatalf("an append to a deleted log: %v", err)
	}
	if _, err := l.Read(ReadRequest{Offset: 0, Limit: 1, MaxBytes: 1}); err == nil {
		t.Fatal("a read of a deleted log")
	}
	l.WhenFlushed(1, func(err error) {
		if err == nil {
			t.Error("a deleted log was flushed")
		}
	})
	w.settle()
	again, err := w.store.OpenLog(testTopic, TopicID{7}, testLogConfig())
	if err != nil || again.LogEndOffset() != 0 {
		t.Fatalf("the re-created topic inherits: %v", err)
	}
	kinds := func() (n map[folderKind]int) {
		n = map[folderKind]int{}
		entries, err := w.fs.ReadDir("/data")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if kind, _ := parseFolder(e.Name()); e.IsDir() {
				n[kind]++
			}
		}
		return n
	}
	if n := kinds(); n[folderDeleted] != 1 || n[folderPartition] != 1 {
		t.Fatalf("folders %v", n)
	}
	w.clock.Advance(3 * time.Second)
	if n := kinds(); n[folderDeleted] != 0 {
		t.Fatalf("folders %v after file.delete.delay.ms", n)
	}
	// What a stop leaves is removed by the next start.
	if err := w.store.Delete(testTopic); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	w.clock.Advance(2 * time.Second)
	if n := kinds(); n[folderDeleted] != 0 {
		t.Fatalf("folders %v after a restart", n)
	}
}

func TestFoldersOfOtherTopics(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 1)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	strays := w.store.Strays(func(_ TopicPartition, id TopicID) bool { return id != testID })
	if len(strays) != 1 || strays[0].TopicID != testID || strays[0].TopicPartition != testTopic {
		t.Fatalf("strays %+v", strays)
	}
	other, err := w.store.OpenLog(testTopic, TopicID{9}, testLogConfig())
	if err != nil || other.LogEndOffset() != 0 {
		t.Fatalf("a topic of the same name inherits: %v", err)
	}
	entries, err := w.fs.ReadDir("/data")
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	for _, e := range entries {
		if kind, _ := parseFolder(e.Name()); kind == folderStray {
			kept = true
		}
	}
	if !kept {
		t.Fatal("the other topic's folder is gone")
	}
	if _, err := w.store.OpenLog(testTopic, testID, testLogConfig()); err == nil {
		t.Fatal("one log was opened for two topics")
	}
}

func TestDiscardStray(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 1)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	for _, stray := range w.store.Strays(func(TopicPartition, TopicID) bool { return false }) {
		if err := w.store.DiscardStray(stray); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Advance(2 * time.Second)
	if _, err := w.fs.Stat("/data/orders-0"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the folder is still there: %v", err)
	}
}

func TestFolderNames(t *testing.T) {
	for name, want := range map[string]TopicPartition{
		"a-0": {"a", 0}, "a-b.c_d-12": {"a-b.c_d", 12}, "-1-2": {"-1", 2},
		"a": {}, "-5": {}, "a-": {}, "a-x": {}, "a-01": {}, "a--1": {"a-", 1}, "a-99999999999": {},
	} {
		if tp, ok := ParseFolderName(name); tp != want || ok != (want != TopicPartition{}) {
			t.Errorf("%s: %v, %v", name, tp, ok)
		}
	}
	w, _ := opened(t)
	long := TopicPartition{strings.Repeat("t", 249), 123}
	for _, suffix := range []string{deleteSuffix, straySuffix} {
		name := w.store.uniqueFolder(long, suffix)
		kind, _ := parseFolder(name)
		if len(name) > maxFileName || kind == folderPartition || kind == folderOther {
			t.Errorf("%s: %d characters, kind %d", name, len(name), kind)
		}
	}
}

// TestRemovedDirectory has the directory removed under the store, which must neither
// go on as if nothing had happened nor make it anew.
func TestRemovedDirectory(t *testing.T) {
	w, _ := opened(t)
	w.clock.Advance(healthEvery)
	w.settle()
	if w.store.removed() {
		t.Fatal("the directory is there")
	}
	if err := w.fs.RemoveAll("/data"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.OpenLog(TopicPartition{Topic: "new"}, testID, LogConfig{}); err == nil {
		t.Fatal("a new log in a directory that is gone")
	}
	if _, err := w.fs.Stat("/data"); err == nil {
		t.Fatal("the directory was made anew")
	}
	w, _ = opened(t)
	if err := w.fs.RemoveAll("/data"); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(healthEvery)
	w.settle()
	select {
	case <-w.store.Removed():
	default:
		t.Fatal("nobody was told")
	}
}

// TestReplacedDirectory has another broker's directory in the place of the store's,
// which must not write there, neither while it runs nor when it stops.
func TestReplacedDirectory(t *testing.T) {
	w, l := opened(t)
	put(t, l, 1, 3)
	if err := w.store.writeCheckpoints(); err != nil {
		t.Fatal(err)
	}
	if err := w.fs.Rename("/data", "/moved"); err != nil {
		t.Fatal(err)
	}
	const others = "/data/" + lockFile
	if err := w.fs.MkdirAll("/data", 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := w.fs.OpenFile(others, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	put(t, l, 1, 1)
	w.clock.Advance(healthEvery)
	w.settle()
	if !w.store.removed() {
		t.Error("nobody was told")
	}
	w.store.checkpointRun()
	if err := w.close(); err == nil {
		t.Error("it stopped cleanly")
	}
	entries, err := w.fs.ReadDir("/data")
	if err != nil || len(entries) != 1 {
		t.Errorf("in the other's directory: %v, %v", entries, err)
	}
}
