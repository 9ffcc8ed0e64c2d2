package server

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/lifecycle"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/storage"
)

// TestCoordinatorsLoadCompactedTopics has the groups' and transactions' topics
// compacted while they are written to, takes the checkpoints away, and wants to
// find everything again from what is left of the logs.
func TestCoordinatorsLoadCompactedTopics(t *testing.T) {
	fsys := vfs.NewMem()
	settings := []string{
		"log.cleaner.backoff.ms=2", "offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1",
		"log.cleaner.min.cleanable.ratio=0.1", "log.cleaner.delete.retention.ms=1",
	}
	n := start(t, fsys, load(t, testDir, settings...))
	cl := client(t, n)
	produce(t, cl, "orders", numbered(0, 10)...)
	want := commitUntilCompacted(t, n, cl)
	producers := transactUntilCompacted(t, n, cl)
	cl.Close()
	if err := stop(n); err != nil {
		t.Fatal(err)
	}
	dropCheckpoints(t, fsys)

	n = start(t, fsys, load(t, testDir, settings...))
	cl = client(t, n)
	for g, at := range want {
		got, err := kadm.NewClient(cl).FetchOffsets(within(t), g)
		if err != nil {
			t.Fatal(err)
		}
		o, ok := got.Lookup("orders", 0)
		if at < 0 && ok || at >= 0 && (!ok || o.At != at || o.Metadata != fmt.Sprint("at ", at)) {
			t.Errorf("group %s: %+v, %v, it had committed %d", g, o, ok, at)
		}
	}
	for id, before := range producers {
		if now := initProducer(t, cl, id); now.ProducerID != before.ProducerID || now.ProducerEpoch != before.ProducerEpoch+1 {
			t.Errorf("%s is producer %d in epoch %d, it was %d in %d", id, now.ProducerID, now.ProducerEpoch, before.ProducerID, before.ProducerEpoch)
		}
	}
}

// compacted says that more of a log was compacted than its first segments, which it
// makes smaller than the configuration allows.
func compacted(n *Node, topic string) bool {
	l, ok := n.store.Log(storage.TopicPartition{Topic: topic})
	if !ok {
		return false
	}
	cfg := l.Config()
	cfg.SegmentBytes = 3000
	l.Reconfigure(cfg)
	state, ok := l.Compaction()
	return ok && state.CleanedTo > 100
}

// commitUntilCompacted commits offsets of groups, deletes some, and returns what
// each has committed last, -1 for nothing.
func commitUntilCompacted(t *testing.T, n *Node, cl *kgo.Client) map[string]int64 {
	t.Helper()
	adm := kadm.NewClient(cl)
	want := map[string]int64{}
	for i := int64(0); !compacted(n, group.Topic) || i < 200; i++ {
		g := fmt.Sprint("group-", i%7)
		if i%29 == 28 {
			resp, err := adm.DeleteGroup(within(t), g)
			if err != nil || resp.Err != nil {
				t.Fatal(g, err, resp.Err)
			}
			want[g] = -1
			continue
		}
		commit(t, adm, g, i)
		want[g] = i
	}
	return want
}

func commit(t *testing.T, adm *kadm.Client, g string, at int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "orders", Partition: 0, At: at, Metadata: fmt.Sprint("at ", at)})
	resp, err := adm.CommitOffsets(within(t), g, offsets)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// transactUntilCompacted has some transactional ids end transactions, and returns
// the producers of the last ones.
func transactUntilCompacted(t *testing.T, n *Node, cl *kgo.Client) map[string]*kmsg.InitProducerIDResponse {
	t.Helper()
	last := map[string]*kmsg.InitProducerIDResponse{}
	for i := 0; !compacted(n, txn.Topic) || i < 50; i++ {
		id := fmt.Sprint("txn-", i%5)
		last[id] = initProducer(t, cl, id)
	}
	return last
}

func initProducer(t *testing.T, cl *kgo.Client, id string) *kmsg.InitProducerIDResponse {
	t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &id, 60_000
	resp, err := req.RequestWith(within(t), cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		t.Fatal(id, err)
	}
	return resp
}

// dropCheckpoints takes away what the coordinators keep beside their logs.
func dropCheckpoints(t *testing.T, fsys vfs.FS) {
	t.Helper()
	db, err := kv.Open(fsys, lifecycle.StoreDir(testDir), telemetry.Discard())
	if err != nil {
		t.Fatal(err)
	}
	var ops []kv.Op
	for _, prefix := range []string{"group/" + group.Topic, "group/" + txn.Topic} {
		before := len(ops)
		if err := db.Scan([]byte(prefix), func(key, _ []byte) bool {
			ops = append(ops, kv.Op{Key: append([]byte{}, key...), Delete: true})
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if len(ops) == before {
			t.Fatalf("no checkpoint under %s", prefix)
		}
	}
	if err := db.Apply(ops, true); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
