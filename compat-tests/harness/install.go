package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// CacheDir is where clients are installed: COMPAT_CACHE, or .cache of compat-tests.
func CacheDir() string {
	if dir := os.Getenv("COMPAT_CACHE"); dir != "" {
		return dir
	}
	return filepath.Join(Root(), ".cache")
}

// isolated is set in a program that runs in a network of its own, where no registry can be reached.
const isolated = "COMPAT_ISOLATED"

// Install makes the folder name of the cache hold what recipe describes: fill is called with a new folder unless the
// recipe is there already. Why it failed is remembered for the part of the run that has no network.
func Install(name, recipe string, fill func(dir string) error) (string, error) {
	dir := filepath.Join(CacheDir(), name)
	ready, failed := dir+".ready", dir+".failed"
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if have, err := os.ReadFile(ready); err == nil && string(have) == recipe {
		return dir, nil
	}
	if os.Getenv(isolated) != "" {
		if why, err := os.ReadFile(failed); err == nil {
			return "", errors.New(string(why))
		}
		return "", fmt.Errorf("%s is not installed", name)
	}
	if err := os.RemoveAll(ready); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "compat: installing %s\n", name)
	if err := fillNew(dir, fill); err != nil {
		err = fmt.Errorf("install %s: %w", name, err)
		_ = os.WriteFile(failed, []byte(err.Error()), 0o644)
		return "", err
	}
	_ = os.Remove(failed)
	return dir, os.WriteFile(ready, []byte(recipe), 0o644)
}

// fillNew calls fill with a new folder. Under CI, where nobody starts the run again, it does so up to three times: a
// registry may fail once.
func fillNew(dir string, fill func(dir string) error) error {
	var waits []time.Duration
	if os.Getenv("CI") != "" {
		waits = []time.Duration{10 * time.Second, 30 * time.Second}
	}
	for {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return err
		}
		err := fill(dir)
		if err == nil || len(waits) == 0 {
			return err
		}
		fmt.Fprintf(os.Stderr, "compat: %v; once more in %v\n", err, waits[0])
		time.Sleep(waits[0])
		waits = waits[1:]
	}
}

// lockFile keeps rows that run side by side from installing the same thing twice.
func lockFile(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// Command runs a step of an installation in dir and says what it printed when it fails.
func Command(dir string, env []string, name string, args ...string) error {
	const limit = 25 * time.Minute // the native builds on two busy cores
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		text := out.String()
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(text[max(0, len(text)-2000):]))
	}
	return nil
}

// Isolate starts the program again in a network of its own, where every port is free, if this machine allows it.
func Isolate() {
	if os.Getenv(isolated) != "" || os.Getenv("BROKER_ADDR") != "" {
		return
	}
	if exec.Command("unshare", "-n", "ip", "link", "set", "lo", "up").Run() != nil {
		return
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return
	}
	args := append([]string{"unshare", "-n", "sh", "-c", `ip link set lo up && exec "$@"`, "sh"}, os.Args...)
	err = syscall.Exec(unshare, args, append(os.Environ(), isolated+"=1"))
	fmt.Fprintln(os.Stderr, "unshare:", err)
}
