package kv

import (
	"log/slog"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func BenchmarkOpenEmpty(b *testing.B) {
	for range b.N {
		d, err := Open(vfs.OS(), b.TempDir(), slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Apply([]Op{{Key: []byte("raft/a"), Value: []byte("x")}}, true); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		d.Close()
		b.StartTimer()
	}
}

func BenchmarkReopen(b *testing.B) {
	dir := b.TempDir()
	for range b.N {
		d, err := Open(vfs.OS(), dir, slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Apply([]Op{{Key: []byte("raft/a"), Value: []byte("x")}}, true); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		d.Close()
		b.StartTimer()
	}
}
