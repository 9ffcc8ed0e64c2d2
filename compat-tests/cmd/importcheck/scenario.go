package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// folders are the two log.dirs of the source, in the order in which they are given.
func folders(dir string) []string {
	return []string{filepath.Join(dir, "data"), filepath.Join(dir, "data2")}
}

// kafka are the options of a Kafka with two log dirs that compacts at once.
func kafka(kind harness.Kind, dir string) harness.Options {
	return harness.Options{Kind: kind, Dir: dir, Properties: map[string]string{
		"log.dirs":                     strings.Join(folders(dir), ","),
		"log.cleaner.backoff.ms":       "200",
		"log.segment.delete.delay.ms":  "100",
		"offsets.topic.num.partitions": "5",
	}}
}

func (s scenario) run(ctx context.Context, dir string) (said string, err error) {
	source, again := filepath.Join(dir, s.name, "source"), filepath.Join(dir, s.name, "again")
	options := kafka(s.kind, source)
	b, err := harness.Start(ctx, options)
	if err != nil {
		return "", err
	}
	f := &filler{addr: b.Addr(), older: s.kind == harness.KafkaOlder}
	if err := f.fill(ctx); err != nil {
		b.Kill()
		return "", fmt.Errorf("fill Kafka: %w", err)
	}
	target := filepath.Join(dir, s.name, "barnabas", "data")
	if err := refusesRunning(source, target); err != nil {
		b.Kill()
		return "", err
	}
	if s.killed {
		b.Kill()
	} else if err := b.Stop(ctx); err != nil {
		return "", err
	}
	if f.older {
		if err := f.oldFormats(source); err != nil {
			return "", err
		}
	}
	before, err := checksums(source)
	if err != nil {
		return "", err
	}
	for _, from := range folders(source) {
		to := filepath.Join(again, filepath.Base(from))
		if out, err := exec.Command("cp", "-a", "--", from, mkdir(filepath.Dir(to))).CombinedOutput(); err != nil {
			return "", fmt.Errorf("copy: %w: %s", err, out)
		}
	}
	report, err := importAll(ctx, source, target)
	if err != nil {
		return "", err
	}
	after, err := checksums(source)
	if err != nil {
		return "", err
	}
	if before != after {
		return "", errors.New("the original's checksum has changed")
	}
	if err := os.WriteFile(filepath.Join(dir, s.name, "report.txt"), []byte(report), 0o644); err != nil {
		return "", err
	}
	if err := f.expectNotes(report); err != nil {
		return "", err
	}
	return compare(ctx, kafka(s.kind, again), target, f)
}

func mkdir(dir string) string {
	_ = os.MkdirAll(dir, 0o755)
	return dir
}

// barnabas runs a command of the binary.
func barnabas(args ...string) (string, error) {
	bin, err := harness.Binary()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

func importArgs(source, target string, more ...string) []string {
	args := []string{"import", "--data", target}
	for _, f := range folders(source) {
		args = append(args, "--from", f)
	}
	return append(args, more...)
}

// refusesRunning wants the folder of a running broker refused, and no target made.
func refusesRunning(source, target string) error {
	out, err := barnabas(importArgs(source, target)...)
	if err == nil || !strings.Contains(out, "in use") {
		return fmt.Errorf("a folder in use: %v: %s", err, out)
	}
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a refused import made %s: %v", target, err)
	}
	return nil
}

// importAll looks first, then imports with kills in between, and once more to the end.
func importAll(ctx context.Context, source, target string) (report string, err error) {
	out, err := barnabas(importArgs(source, target, "--dry-run")...)
	if err != nil {
		return "", fmt.Errorf("dry run: %w: %s", err, out)
	}
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("a dry run made %s: %v", target, err)
	}
	bin, err := harness.Binary()
	if err != nil {
		return "", err
	}
	kills := 0
	for after := 20 * time.Millisecond; after < 2*time.Second; after += 35 * time.Millisecond {
		cmd := exec.CommandContext(ctx, bin, importArgs(source, target, "--topic", "killed*")...)
		if err := cmd.Start(); err != nil {
			return "", err
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case err := <-done:
			if err != nil {
				return "", fmt.Errorf("an import after %d kills: %w", kills, err)
			}
			after = time.Hour
		case <-time.After(after):
			_ = cmd.Process.Kill()
			<-done
			kills++
		}
	}
	out, err = barnabas(importArgs(source, target)...)
	if err != nil {
		return "", fmt.Errorf("import: %w: %s", err, out)
	}
	again, err := barnabas(importArgs(source, target)...)
	if err != nil || !strings.Contains(again, "0 topics") || !strings.Contains(again, "is there already") {
		return "", fmt.Errorf("import again: %v: %s", err, again)
	}
	return fmt.Sprintf("%d kills\n%s", kills, out), nil
}

// checksums is one sum over names, modes and contents of a folder.
func checksums(dir string) (string, error) {
	sum := sha256.New()
	for _, folder := range folders(dir) {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(sum, "%s %v %v\n", path, info.Mode(), info.ModTime().UnixNano())
			if entry.IsDir() {
				return nil
			}
			b, err := os.ReadFile(path)
			fmt.Fprintf(sum, "%d %x\n", len(b), sha256.Sum256(b))
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}
