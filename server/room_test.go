package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Someone else fills the disk to the last byte: the broker stays up, refuses what
// needs room by name, and goes on by itself once there is room again.
func TestBrokerOutlivesAFullDisk(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir, "barnabas.admin.listener=127.0.0.1:0"))
	cl := client(t, n)
	adm := kadm.NewClient(cl)
	produce(t, cl, "orders", numbered(0, 5)...)
	if got := get(t, n, "/readyz", http.StatusOK); got != "ready\n" {
		t.Errorf("/readyz says %q", got)
	}
	commit := kadm.Offsets{}
	commit.AddOffset("orders", 0, 5, -1)
	if err := adm.CommitAllOffsets(within(t), "billing", commit); err != nil {
		t.Fatal(err)
	}

	fsys.SetCapacity(1)
	eventually(t, "/readyz says that the disk is full", func() bool {
		return strings.Contains(get(t, n, "/readyz", http.StatusOK), "ready, but the disk is full: produce requests are refused")
	})
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
	eventually(t, "/readyz says nothing more", func() bool { return get(t, n, "/readyz", http.StatusOK) == "ready\n" })
	if err := n.Err(); err != nil {
		t.Fatal(err)
	}
}

// On a disk whose reserve is touched, a coordinator refuses what it would have to
// write and goes on with what it knows; it does not start over each time.
func TestCoordinatorsReadOnWithoutRoom(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir))
	cl := client(t, n, kgo.MaxVersions(kversion.V3_5_0()))
	produce(t, cl, "orders", numbered(0, 5)...)
	b := cl.Broker(1)
	commit := func(offset int64) error {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group, r.Generation = "billing", -1
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic, topic.Partitions = "orders", []kmsg.OffsetCommitRequestTopicPartition{{Offset: offset, LeaderEpoch: -1}}
		r.Topics = append(r.Topics, topic)
		resp, err := b.Request(within(t), r)
		if err != nil {
			t.Fatal(err)
		}
		return kerr.ErrorForCode(resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode)
	}
	known := kadm.Offsets{}
	known.AddOffset("orders", 0, 1, -1)
	if err := kadm.NewClient(cl).CommitAllOffsets(within(t), "billing", known); err != nil {
		t.Fatal(err)
	}
	fsys.SetCapacity(200 << 20)
	last := int64(1)
	for commit(last+1) == nil {
		last++ // until the broker notices
	}
	for i := range 3 {
		if err := commit(0); !errors.Is(err, kerr.NotCoordinator) {
			t.Fatalf("commit %d without room: %v", i, err)
		}
		fetch := kmsg.NewPtrOffsetFetchRequest()
		fetch.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "billing", MemberEpoch: -1}}
		resp, err := b.Request(within(t), fetch)
		if err != nil {
			t.Fatal(err)
		}
		g := resp.(*kmsg.OffsetFetchResponse).Groups[0]
		if g.ErrorCode != 0 || len(g.Topics) != 1 || g.Topics[0].Partitions[0].Offset != last {
			t.Fatalf("after commit %d: %v, %v, want offset %d", i, kerr.ErrorForCode(g.ErrorCode), g.Topics, last)
		}
	}
	fsys.SetCapacity(0)
	for commit(last) != nil {
	}
}

// Without a reserve the metadata log may fail for want of room: the broker says what
// to do, and that holds.
func TestFullDiskWithoutAReserveIsExplained(t *testing.T) {
	fsys := vfs.NewMem()
	static := load(t, testDir, "barnabas.storage.reserve.bytes=0")
	n := start(t, fsys, static)
	adm := kadm.NewClient(client(t, n))
	if _, err := adm.CreateTopic(within(t), 1, 1, nil, "kept"); err != nil {
		t.Fatal(err)
	}
	fsys.SetCapacity(1)
	for i := range 100 { // the embedded store's log may have some room of its own
		_, _ = adm.CreateTopic(within(t), 1, 1, nil, fmt.Sprint(i, strings.Repeat("x", 200)))
		if n.Err() != nil {
			break
		}
	}
	<-n.Failed()
	for _, want := range []string{testDir + " is full", "make room and start the broker again", "barnabas.storage.reserve.bytes=0"} {
		if err := n.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	_ = stop(n) // there is no room for a clean one
	if _, err := Start(testEnv(fsys), static); err == nil || !strings.Contains(err.Error(), "make room and start the broker again") {
		t.Errorf("a start on the full disk: %v", err)
	}
	fsys.SetCapacity(0)
	if topics, err := topicsOf(t, fsys); err != nil || !slices.Contains(topics, "kept") {
		t.Errorf("after there was room: %v, %v", topics, err)
	}
}
