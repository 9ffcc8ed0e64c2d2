package storage

import (
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func TestDbg(t *testing.T) {
	w := newWorld(t, 1)
	w.logger = slog.New(slog.NewTextHandler(os.Stdout, nil))
	r := newWorkload(w, true)
	k := int64(224)
	w.fs.SetFault(func(op vfs.Op) error {
		if op.Kind.Changes() && op.N < 300 && op.N > 205 {
			fmt.Println(op)
		}
		if op.N == k {
			fmt.Println("FAIL")
			return syscall.EIO
		}
		return nil
	})
	r.run()
	fmt.Println("RUN DONE", r.failures)
	w.clock.Advance(3 * time.Second)
	w.settle()
	w.abandonIfOpen()
	fmt.Println("CRASH")
	w.fs.Crash(uint64(k))
	if err := r.reopened(func(a appended) bool { return a.durable }); err != nil {
		t.Fatal(err)
	}
}
