// Command dumplog has the broker write a data folder that is not trivial, and has Apache Kafka's DumpLogSegments read
// every file of it. One complaint fails it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func main() {
	dir := flag.String("dir", "", "a folder to use and keep; without it a temporary one, kept on failure")
	kind := flag.String("broker", string(harness.Barnabas), "barnabas or kafka, to see that the check passes on Kafka's own files")
	flag.Parse()
	libs, err := harness.JavaLibs()
	if errors.Is(err, harness.ErrNoJVM) && os.Getenv("CI") == "" {
		fmt.Println("dumplog: not run:", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dumplog:", err)
		os.Exit(1)
	}
	keep := *dir != ""
	if !keep {
		if *dir, err = os.MkdirTemp(os.Getenv("COMPAT_TMP"), "dumplog-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	if err := run(context.Background(), libs, *dir, harness.Kind(*kind)); err != nil {
		fmt.Fprintf(os.Stderr, "dumplog: FAILED: %v\nthe files are in %s\n", err, *dir)
		os.Exit(1)
	}
	if !keep {
		_ = os.RemoveAll(*dir)
	}
}

func run(ctx context.Context, libs, dir string, kind harness.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	data, err := write(ctx, dir, kind)
	if err != nil {
		return err
	}
	files, err := find(data)
	if err != nil {
		return err
	}
	deep, err := dump(ctx, libs, "--deep-iteration", files.all())
	if err != nil {
		return err
	}
	if err := dumpCompacted(ctx, libs, files.compacted); err != nil {
		return err
	}
	sane, err := dump(ctx, libs, "--index-sanity-check", files.indexes)
	if err != nil {
		return err
	}
	if err := allSane(sane, files.indexes); err != nil {
		return err
	}
	offsets, err := dump(ctx, libs, "--offsets-decoder", files.offsets)
	if err != nil {
		return err
	}
	state, err := dump(ctx, libs, "--transaction-log-decoder", files.states)
	if err != nil {
		return err
	}
	if err := errors.Join(notTrivial(deep, offsets, files), transactional(deep, state, files)); err != nil {
		return err
	}
	fmt.Printf("dumplog: ok: %d logs and %d cleaned ones, %d indexes, %d transaction indexes, %d snapshots, %d logs of %s and %d of %s, %d lines without a complaint\n",
		len(files.logs), len(files.compacted), len(files.indexes), len(files.txns), len(files.snapshots), len(files.offsets), offsetsTopic, len(files.states), txnState,
		strings.Count(deep, "\n")+strings.Count(offsets, "\n")+strings.Count(state, "\n"))
	return nil
}

// fileSet is what a data folder has for the tool to read.
type fileSet struct{ logs, indexes, snapshots, offsets, states, txns, compacted []string }

func (f *fileSet) all() []string {
	return slices.Concat(f.logs, f.indexes, f.snapshots, f.txns)
}

const offsetsTopic = "__consumer_offsets"

func internal(folder string) bool { return strings.HasPrefix(folder, "__") }

var partitionFolder = regexp.MustCompile(`-[0-9]+$`)

func find(data string) (*fileSet, error) {
	files := &fileSet{}
	err := filepath.WalkDir(data, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		folder := filepath.Base(filepath.Dir(path))
		if !partitionFolder.MatchString(folder) || strings.HasPrefix(folder, "__cluster_metadata") {
			return nil
		}
		switch filepath.Ext(path) {
		case ".log":
			info, err := entry.Info()
			if err != nil {
				return err
			}
			if info.Size() == 0 && internal(folder) {
				return nil // fifty folders, of which a few are used
			}
			if strings.HasPrefix(folder, compactedTopic) {
				files.compacted = append(files.compacted, path)
				return nil
			}
			files.logs = append(files.logs, path)
			if strings.HasPrefix(folder, offsetsTopic) {
				files.offsets = append(files.offsets, path)
			}
			if strings.HasPrefix(folder, txnState) {
				files.states = append(files.states, path)
			}
		case ".index", ".timeindex", ".txnindex":
			log := strings.TrimSuffix(path, filepath.Ext(path)) + ".log"
			if info, err := os.Stat(log); err != nil || (info.Size() == 0 && internal(folder)) {
				return err
			}
			if filepath.Ext(path) == ".txnindex" {
				files.txns = append(files.txns, path)
			} else {
				files.indexes = append(files.indexes, path)
			}
		case ".snapshot":
			files.snapshots = append(files.snapshots, path)
		}
		return nil
	})
	return files, err
}
