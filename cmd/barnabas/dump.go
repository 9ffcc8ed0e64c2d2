package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// dumpBatchMaxBytes bounds what one batch may unpack to.
const dumpBatchMaxBytes = 1 << 30

func dumpCommand() *cli.Command {
	return &cli.Command{
		Name: "dump", Usage: "print any file of a data folder, readable", ArgsUsage: "FILE...", Action: dump,
		Description: "Files: .log, .index, .timeindex, .snapshot, the checkpoints, partition.metadata, meta.properties. A partition's\n" +
			"folder prints all of its files, a data folder also those of its partitions, the folder kv the metadata log. Only for kv the broker must be stopped.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "records", Aliases: []string{"r"}, Usage: "print the records of a .log too; those of __consumer_offsets and __transaction_state are decoded"},
		},
	}
}

func dump(c *cli.Context) error {
	files, err := names(c, "file")
	if err != nil {
		return err
	}
	var failed []string
	for _, name := range files {
		if err := dumpPath(c, name, len(files) > 1); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return failures("dump", failed)
}

func dumpPath(c *cli.Context, name string, titled bool) error {
	info, err := os.Stat(name)
	if err != nil {
		return rootOfPath(err)
	}
	if !info.IsDir() {
		if err := vfs.CheckRegular(info); err != nil {
			return err
		}
		return dumpFile(c, name, titled)
	}
	if filepath.Base(filepath.Clean(name)) == "kv" {
		return dumpStore(c, name)
	}
	ours, err := holdsData(name, true)
	if err != nil {
		return rootOfPath(err)
	}
	if !ours {
		return errors.New("it is neither a data folder nor the folder of a partition: no file in it is one of theirs")
	}
	return dumpFolder(c, name, true)
}

// holdsData says whether a folder, or one of the partitions' folders in it, has a
// file that dump knows.
func holdsData(folder string, partitions bool) (bool, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && storage.IsDataFile(e.Name()) {
			return true, nil
		}
		if partitions && e.IsDir() {
			// One that cannot be read is no reason to refuse the others.
			if ours, _ := holdsData(filepath.Join(folder, e.Name()), false); ours {
				return true, nil
			}
		}
	}
	return false, nil
}

// dumpFolder prints the files of a folder and, for a data folder, those of its
// partitions.
func dumpFolder(c *cli.Context, folder string, partitions bool) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return rootOfPath(err)
	}
	var errs []error
	for _, e := range entries {
		name := filepath.Join(folder, e.Name())
		var err error
		switch {
		case e.Type().IsRegular() && !slices.Contains(notDumped, e.Name()):
			err = dumpFile(c, name, true)
		case e.IsDir() && e.Name() == "kv":
			_, err = fmt.Fprintf(c.App.Writer, "== %s is the metadata log: stop the broker and name it by itself\n", name)
		case e.IsDir() && partitions:
			err = dumpFolder(c, name, false)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// notDumped are the files of a data folder with nothing to read in them.
var notDumped = []string{".lock", "barnabas.reserve"}

// rootOfPath drops the name from a file's error, where the caller gives it.
func rootOfPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func dumpFile(c *cli.Context, name string, titled bool) error {
	f, err := os.Open(name)
	if err != nil {
		return rootOfPath(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return rootOfPath(err)
	}
	if titled {
		fmt.Fprintf(c.App.Writer, "== %s, %s\n", name, sizeText(info.Size()))
	}
	w := &countingWriter{w: c.App.Writer}
	if offset, suffix, ok := segment.ParseFileName(filepath.Base(name)); ok && suffix == segment.LogSuffix && c.Bool("records") {
		err = dumpRecords(w, name, f, offset, info.Size())
	} else {
		err = storage.Dump(w, name, f, info.Size())
	}
	if err == nil && w.written == 0 {
		_, err = fmt.Fprintln(c.App.Writer, "empty")
	}
	return err
}

// countingWriter knows whether anything was printed.
type countingWriter struct {
	w       io.Writer
	written int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.written += int64(n)
	return n, err
}

// dumpRecords prints every batch and its records.
func dumpRecords(w io.Writer, name string, r io.ReaderAt, baseOffset, sizeBytes int64) error {
	text := recordText(filepath.Base(filepath.Dir(name)))
	sc := segment.NewScanner(r, name, 0, sizeBytes, baseOffset, true)
	for sc.Next() {
		h := sc.Header()
		if err := segment.DumpBatch(w, h); err != nil {
			return err
		}
		whole := make([]byte, h.SizeBytes())
		if _, err := r.ReadAt(whole, h.Position); err != nil {
			return fmt.Errorf("read the batch at byte %d: %w", h.Position, err)
		}
		err := batch.Records(batch.View(whole), dumpBatchMaxBytes, func(rec batch.Record) error {
			if h.IsControl() {
				return dumpRecord(w, rec, markerText(whole))
			}
			return dumpRecord(w, rec, text)
		})
		if err != nil {
			return fmt.Errorf("the batch at byte %d: %w", h.Position, err)
		}
	}
	return sc.Err()
}

// recordText is how the records of a partition's folder are told, where they are
// a coordinator's.
func recordText(folder string) func(batch.Record) (string, bool) {
	switch {
	case strings.HasPrefix(folder, group.Topic+"-"):
		return func(rec batch.Record) (string, bool) {
			r, ok, err := group.Codec{}.Decode(rec.Key, rec.Value)
			return groupRecordText(r), ok && err == nil
		}
	case strings.HasPrefix(folder, txn.Topic+"-"):
		return func(rec batch.Record) (string, bool) {
			r, ok, err := txn.Codec{}.Decode(rec.Key, rec.Value)
			return txnRecordText(r), ok && err == nil
		}
	}
	return nil
}

// markerText is how the record of a control batch is told.
func markerText(v batch.View) func(batch.Record) (string, bool) {
	return func(batch.Record) (string, bool) {
		m, ok, err := batch.ParseMarker(v)
		verdict := "ABORT"
		if m.Commit {
			verdict = "COMMIT"
		}
		return fmt.Sprintf("marker: %s coordinatorEpoch: %d", verdict, m.CoordinatorEpoch), ok && err == nil
	}
}

func dumpRecord(w io.Writer, rec batch.Record, text func(batch.Record) (string, bool)) error {
	if text != nil {
		if told, ok := text(rec); ok {
			_, err := fmt.Fprintf(w, "  | offset: %d %s\n", rec.Offset, told)
			return err
		}
	}
	fmt.Fprintf(w, "  | offset: %d timestamp: %d key: %s value: %s", rec.Offset, rec.TimestampMs, quoted(rec.Key), quoted(rec.Value))
	for _, h := range rec.Headers {
		fmt.Fprintf(w, " %s=%s", h.Key, quoted(h.Value))
	}
	_, err := fmt.Fprintln(w)
	return err
}

func groupRecordText(r group.Record) string {
	switch {
	case r.Consumer != nil:
		return fmt.Sprintf("group: %s %s", r.Group, r.Consumer)
	case r.IsOffset && r.Offset == nil:
		return fmt.Sprintf("group: %s topic: %s partition: %d deleted", r.Group, r.Topic, r.Partition)
	case r.IsOffset:
		return fmt.Sprintf("group: %s topic: %s partition: %d committed: %d metadata: %q", r.Group, r.Topic, r.Partition, r.Offset.Offset, r.Offset.Metadata)
	case r.Metadata == nil:
		return fmt.Sprintf("group: %s deleted", r.Group)
	}
	return fmt.Sprintf("group: %s generation: %d members: %d", r.Group, r.Metadata.Generation, len(r.Metadata.Members))
}

func txnRecordText(r txn.Record) string {
	if r.Transaction == nil {
		return fmt.Sprintf("transactional id: %s deleted", r.TransactionalID)
	}
	return fmt.Sprintf("transactional id: %s %v", r.TransactionalID, r.Transaction)
}

// quoted is bytes as Go quotes them; null is not empty.
func quoted(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}
