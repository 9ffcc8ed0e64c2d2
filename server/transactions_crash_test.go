package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// killer ends the life of a broker before the n-th change that it makes to its
// files, and notes when that has happened.
type killer struct {
	left atomic.Int64
	dead chan struct{}
}

func killAt(fsys *vfs.Mem, n int64) *killer {
	k := &killer{dead: make(chan struct{})}
	k.left.Store(n)
	fsys.SetFault(func(op vfs.Op) error {
		if !op.Kind.Changes() {
			if k.left.Load() <= 0 {
				return vfs.ErrCrashed
			}
			return nil
		}
		switch left := k.left.Add(-1); {
		case left == 0:
			close(k.dead)
			return vfs.ErrCrashed
		case left < 0:
			return vfs.ErrCrashed
		}
		return nil
	})
	return k
}

// openTransaction is a transaction with records in three partitions and offsets of
// a group, which nobody has ended.
type openTransaction struct {
	id       string
	producer int64
	epoch    int16
}

func beginOne(t *testing.T, n *Node) openTransaction {
	t.Helper()
	ctx := within(t)
	cl := client(t, n, kgo.TransactionalID("tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	made, err := kadm.NewClient(cl).CreateTopic(ctx, 3, 1, nil, "t")
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for p := range int32(3) {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "t", Partition: p, Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	id, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch, commit.Generation = "tx", "g", id, epoch, -1
	commit.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", TopicID: made.ID, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: 7, LeaderEpoch: -1}}}}
	resp, err := commit.RequestWith(ctx, cl)
	if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("commit offsets: %+v, %v", resp, err)
	}
	return openTransaction{id: "tx", producer: id, epoch: epoch}
}

// end asks to end the transaction until it is told something else than to wait.
func (o openTransaction) end(ctx context.Context, cl *kgo.Client, commit bool) error {
	for {
		r := kmsg.NewPtrEndTxnRequest()
		r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = o.id, o.producer, o.epoch, commit
		resp, err := r.RequestWith(ctx, cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			return err
		}
	}
}

// TestKillWhileATransactionEnds kills the broker before every change to its files
// between the wish to end a transaction and its end: whatever was written, after a
// restart the client that asks again is told that all is well, and all partitions
// and the offsets have the verdict.
func TestKillWhileATransactionEnds(t *testing.T) {
	for _, commit := range []bool{true, false} {
		for at := int64(1); ; at++ {
			if done := killedWhileEnding(t, commit, at); done {
				if at < 6 {
					t.Fatalf("only %d changes: two records of the coordinator, three markers and one of offsets are six", at-1)
				}
				t.Logf("commit %v: killed before each of %d changes", commit, at-1)
				break
			}
		}
	}
}

func killedWhileEnding(t *testing.T, commit bool, at int64) (survived bool) {
	t.Helper()
	what := fmt.Sprintf("commit %v, killed before change %d", commit, at)
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir))
	o := beginOne(t, n)
	cl := client(t, n)
	ctx, cancel := context.WithCancel(within(t))
	k := killAt(fsys, at)
	go func() {
		<-k.dead
		cancel()
	}()
	if err := o.end(ctx, cl, commit); err == nil {
		survived = completes(ctx, kadm.NewClient(cl), o.id)
	}
	fsys.CrashAt(1) // nothing of what the old node does from here on counts
	_ = stop(n)
	fsys.Kill()
	fsys = fsys.Next()
	if !survived {
		select {
		case <-k.dead:
		case <-time.After(patience):
			t.Fatalf("%s: neither killed nor complete", what)
		}
	}

	n = start(t, fsys, load(t, testDir))
	if err := o.end(within(t), client(t, n), commit); err != nil {
		t.Fatalf("%s: asked again: %v", what, err)
	}
	verdict(t, n, what, commit)
	if err := stop(n); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return survived
}

// completes waits until a transaction is complete.
func completes(ctx context.Context, adm *kadm.Client, id string) bool {
	for ctx.Err() == nil {
		if got, err := adm.DescribeTransactions(ctx, id); err == nil && len(got[id].State) > 8 && got[id].State[:8] == "Complete" {
			return true
		}
	}
	return false
}

// verdict checks what read_committed sees of each partition, and of the offsets.
func verdict(t *testing.T, n *Node, what string, commit bool) {
	t.Helper()
	cl := client(t, n)
	adm := kadm.NewClient(cl)
	if !completes(within(t), adm, "tx") {
		t.Fatalf("%s: the transaction is not complete", what)
	}
	stable, err := adm.ListCommittedOffsets(within(t), "t")
	ends, err2 := adm.ListEndOffsets(within(t), "t")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for p := range int32(3) {
		s, _ := stable.Lookup("t", p)
		e, _ := ends.Lookup("t", p)
		if s.Offset != e.Offset {
			t.Fatalf("%s: partition %d is stable up to %d of %d", what, p, s.Offset, e.Offset)
		}
	}
	want := int64(-1)
	if commit {
		want = 7
	}
	offsets, err := adm.FetchOffsets(within(t), "g")
	if err != nil {
		t.Fatal(err)
	}
	got := int64(-1)
	if o, ok := offsets.Lookup("t", 0); ok {
		got = o.At
	}
	if got != want {
		t.Fatalf("%s: the group has offset %d, want %d", what, got, want)
	}
	// A record of now tells where the end is.
	reader := client(t, n, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	plain := client(t, n, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	records := 3
	for p := range int32(3) {
		if err := plain.ProduceSync(within(t), &kgo.Record{Topic: "t", Partition: p, Value: []byte("end")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if commit {
		records = 6
	}
	seen := map[int32][]string{}
	for got := 0; got < records; {
		fetches := reader.PollRecords(within(t), records-got)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%s: %d of %d records are read: %v", what, got, records, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			seen[r.Partition] = append(seen[r.Partition], string(r.Value))
			got++
		})
	}
	for p := range int32(3) {
		want := "[end]"
		if commit {
			want = "[x end]"
		}
		if got := fmt.Sprint(seen[p]); got != want {
			t.Fatalf("%s: partition %d has %s, want %s", what, p, got, want)
		}
	}
}
