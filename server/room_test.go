package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Someone else fills the disk to the last byte: the broker stays up, refuses what
// needs room by name, and goes on by itself once there is room again.
func TestBrokerOutlivesAFullDisk(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir))
	cl := client(t, n)
	adm := kadm.NewClient(cl)
	produce(t, cl, "orders", numbered(0, 5)...)
	commit := kadm.Offsets{}
	commit.AddOffset("orders", 0, 5, -1)
	if err := adm.CommitAllOffsets(within(t), "billing", commit); err != nil {
		t.Fatal(err)
	}

	fsys.SetCapacity(1)
	for i := range 20 {
		name := fmt.Sprint(i, strings.Repeat("x", 200))
		if _, err := adm.CreateTopic(within(t), 1, 1, nil, name); !errors.Is(err, kerr.KafkaStorageError) {
			t.Fatalf("create: %v", err)
		}
	}
	if _, err := adm.DeleteTopic(within(t), "orders"); !errors.Is(err, kerr.KafkaStorageError) {
		t.Fatalf("delete: %v", err)
	}
	read := client(t, n, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	wantValues(t, consume(t, read, 5), numbered(0, 5))

	fsys.SetCapacity(0)
	if _, err := adm.CreateTopic(within(t), 1, 1, nil, "later"); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "orders", numbered(5, 6)...)
	if err := n.Err(); err != nil {
		t.Fatal(err)
	}
}
