package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"reflect"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/quorum"
	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/storage"
)

// dumpStore prints the metadata log of a stopped broker.
func dumpStore(c *cli.Context, dir string) error {
	db, err := kv.OpenReadOnly(vfs.OS(), dir, slog.New(slog.DiscardHandler))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("%w (stop the broker first)", err)
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no metadata log in it")
	case err != nil:
		return err
	}
	err = quorum.Visit(db,
		func(data []byte, index, term uint64) error { return dumpImage(c.App.Writer, data, index, term) },
		func(index, term uint64, committed bool, data []byte) error {
			return dumpEntry(c.App.Writer, index, term, committed, data)
		})
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	return err
}

func dumpImage(w io.Writer, data []byte, index, term uint64) error {
	if len(data) == 0 {
		return nil
	}
	img, err := metadata.Decode(data)
	if err != nil {
		return fmt.Errorf("snapshot at %d: %w", index, err)
	}
	_, err = fmt.Fprintf(w, "snapshot index: %d term: %d clusterId: %s brokers: %d topics: %d partitions: %d\n",
		index, term, img.ClusterID, len(img.Brokers()), img.TopicCount(), img.PartitionCount())
	return err
}

func dumpEntry(w io.Writer, index, term uint64, committed bool, data []byte) error {
	_, records, err := metadata.DecodeBatch(data)
	if err != nil {
		return fmt.Errorf("entry %d: %w", index, err)
	}
	fmt.Fprintf(w, "index: %d term: %d committed: %t records: %d\n", index, term, committed, len(records))
	for _, r := range records {
		v := reflect.ValueOf(r).Elem()
		name := strings.TrimSuffix(v.Type().Name(), "Record")
		if _, err := fmt.Fprintf(w, "  | %s %s\n", name, fieldsText(v)); err != nil {
			return err
		}
	}
	return nil
}

// fieldsText prints a record's fields: ids as Kafka writes them, what pointers
// point to, and nothing for what a record leaves as it is.
func fieldsText(v reflect.Value) string {
	var parts []string
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() != reflect.Pointer || !f.IsNil() {
			parts = append(parts, v.Type().Field(i).Name+": "+valueText(f))
		}
	}
	return strings.Join(parts, " ")
}

func valueText(v reflect.Value) string {
	if id, ok := v.Interface().(metadata.TopicID); ok {
		return storage.FormatID(id)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return valueText(v.Elem())
	case reflect.Struct:
		return "{" + fieldsText(v) + "}"
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = valueText(v.Index(i))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v.Interface())
}
