package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// leftBehind is a folder as a killed broker leaves it: its lock is free.
func leftBehind(t *testing.T, temp string) string {
	t.Helper()
	data, remove, err := makeEphemeral(temp)
	if err != nil {
		t.Fatal(err)
	}
	held := filepath.Dir(data)
	left := filepath.Join(temp, ephemeralPrefix+filepath.Base(held)[len(ephemeralPrefix):]+"left")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{ephemeralLock: "", ephemeralMark: ephemeralText} {
		write(t, filepath.Join(left, name), text)
	}
	if err := os.MkdirAll(filepath.Join(left, ephemeralData, "orders-0"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(left, ephemeralData, "orders-0", "00000000000000000000.log"), "records")
	remove()
	return left
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// What killed brokers left goes, and what a running one has stays.
func TestEphemeralSweep(t *testing.T) {
	temp := t.TempDir()
	left := leftBehind(t, temp)
	data, remove, err := makeEphemeral(temp)
	if err != nil {
		t.Fatal(err)
	}
	if n := sweepEphemeral(temp); n != 1 || exists(left) || !exists(data) {
		t.Errorf("%d removed; left behind: %v, running: %v", n, exists(left), exists(data))
	}
	remove()
	remove()
	if entries, err := os.ReadDir(temp); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A folder stays unless everything about it says that it is one of ours.
func TestEphemeralSweepIsCautious(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, temp, folder string){
		"without the mark":    func(t *testing.T, _, folder string) { os.Remove(filepath.Join(folder, ephemeralMark)) },
		"with another mark":   func(t *testing.T, _, folder string) { write(t, filepath.Join(folder, ephemeralMark), "mine\n") },
		"without the lock":    func(t *testing.T, _, folder string) { os.Remove(filepath.Join(folder, ephemeralLock)) },
		"with something else": func(t *testing.T, _, folder string) { write(t, filepath.Join(folder, "notes.txt"), "mine\n") },
		"with another name": func(t *testing.T, temp, folder string) {
			os.Rename(folder, filepath.Join(temp, "barnabas-data"))
		},
		"open to others": func(t *testing.T, _, folder string) {
			if runtime.GOOS == "windows" {
				t.Skip("no such modes")
			}
			os.Chmod(folder, 0o770)
		},
		"a link": func(t *testing.T, temp, folder string) {
			real := filepath.Join(temp, "real")
			os.Rename(folder, real)
			if err := os.Symlink(real, folder); err != nil {
				t.Skip(err)
			}
		},
		"with data that is a link": func(t *testing.T, temp, folder string) {
			data := filepath.Join(folder, ephemeralData)
			os.Rename(data, filepath.Join(temp, "real"))
			if err := os.Symlink(filepath.Join(temp, "real"), data); err != nil {
				t.Skip(err)
			}
		},
		"with a lock that is held": func(t *testing.T, _, folder string) {
			lock, err := vfs.OS().Lock(filepath.Join(folder, ephemeralLock))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { lock.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			change(t, temp, leftBehind(t, temp))
			if n := sweepEphemeral(temp); n != 0 {
				t.Errorf("%d removed", n)
			}
			var logs int
			filepath.WalkDir(temp, func(path string, _ os.DirEntry, _ error) error { //nolint:errcheck // what is counted counts
				if filepath.Ext(path) == ".log" {
					logs++
				}
				return nil
			})
			if logs != 1 {
				t.Errorf("%d logs are there", logs)
			}
		})
	}
}
