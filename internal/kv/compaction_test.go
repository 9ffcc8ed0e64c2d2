package kv

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestOverwritesAreCompacted writes the same keys again and again: what is left
// on disk must stay near what they hold, though nothing looks for compactions
// from time to time.
func TestOverwritesAreCompacted(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := Open(fsys, "/kv", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const keys, rounds, valueBytes = 500, 200, 1024
	value := []byte(strings.Repeat("x", valueBytes))
	for round := range rounds {
		var ops []Op
		for k := range keys {
			ops = append(ops, Op{Key: fmt.Appendf(nil, "group/%d", k), Value: append(fmt.Appendf(nil, "%d", round), value...)})
		}
		if err := db.Apply(ops, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := fsys.ReadDir("/kv")
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if written := int64(keys * rounds * valueBytes); total > written/4 {
		t.Fatalf("%d bytes on disk of %d written: compactions do not run", total, written)
	}
	t.Logf("%d files, %d bytes", len(entries), total)
}
