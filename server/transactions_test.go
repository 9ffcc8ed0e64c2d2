package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// transact produces values to topics in turn and ends the transaction.
func transact(t *testing.T, cl *kgo.Client, end kgo.TransactionEndTry, topics []string, values ...string) {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if err := cl.ProduceSync(within(t), &kgo.Record{Topic: topics[i%len(topics)], Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.EndTransaction(within(t), end); err != nil {
		t.Fatal(err)
	}
}

// committed reads what a topic has for read_committed consumers.
func committed(t *testing.T, n *Node, topic string, want ...string) {
	t.Helper()
	cl := client(t, n, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	wantValues(t, consume(t, cl, len(want)), want)
}

// oldTransactions makes a client that does not know transaction version 2.
func oldTransactions() kgo.Opt { return kgo.MaxVersions(kversion.V3_9_0()) }

func TestTransactionsCommitAndAbort(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []kgo.Opt
		// epoch is that of the producer after three transactions.
		epoch int16
	}{{"transaction version 2", nil, 3}, {"a client before it", []kgo.Opt{oldTransactions()}, 0}} {
		t.Run(tc.name, func(t *testing.T) {
			fsys := vfs.NewMem()
			n := start(t, fsys, load(t, testDir))
			cl := client(t, n, append(tc.opts, kgo.TransactionalID("tx"))...)
			both := []string{"orders", "payments"}
			transact(t, cl, kgo.TryCommit, both, "a", "b", "c", "d")
			transact(t, cl, kgo.TryAbort, both, "e", "f")
			transact(t, cl, kgo.TryCommit, both, "g", "h")
			committed(t, n, "orders", "a", "c", "g")
			committed(t, n, "payments", "b", "d", "h")
			if epoch := describes(t, n, "tx", "CompleteCommit"); epoch != tc.epoch {
				t.Errorf("the producer has epoch %d after three transactions, want %d", epoch, tc.epoch)
			}

			// What is open at a stop is open after it, until its time-out; another
			// producer ends it at once.
			if err := cl.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			produce(t, cl, "orders", "never")
			if err := stop(n); err != nil {
				t.Fatal(err)
			}
			n = start(t, fsys, load(t, testDir))
			describes(t, n, "tx", "Ongoing")
			next := client(t, n, append(tc.opts, kgo.TransactionalID("tx"))...)
			transact(t, next, kgo.TryCommit, both, "i", "j")
			committed(t, n, "orders", "a", "c", "g", "i")
			describes(t, n, "tx", "CompleteCommit")
		})
	}
}

// describes waits until a transactional id has a state, which the coordinator notes
// after readers have seen the markers, and returns its epoch.
func describes(t *testing.T, n *Node, id, state string) (epoch int16) {
	t.Helper()
	adm := kadm.NewClient(client(t, n))
	eventually(t, id+" is in the state "+state, func() bool {
		got, err := adm.DescribeTransactions(within(t), id)
		if err != nil || got[id].Err != nil {
			t.Fatalf("describe %s: %v, %v", id, err, got[id].Err)
		}
		epoch = got[id].ProducerEpoch
		return got[id].State == state
	})
	return epoch
}

// A consumer that transforms: input offsets and output records are committed
// together, through aborts and a restart of the broker.
func TestGroupTransactSession(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir))
	produce(t, client(t, n), "in", numbered(0, 30)...)
	run := func(from, upTo int) {
		s, err := kgo.NewGroupTransactSession(
			kgo.SeedBrokers(n.Addrs()[0].String()), kgo.TransactionalID("copier"), kgo.ConsumerGroup("copiers"), kgo.ConsumeTopics("in"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.AllowAutoTopicCreation())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for turn := 0; from < upTo; turn++ {
			fetches := s.PollRecords(within(t), 4)
			if err := fetches.Err(); err != nil {
				t.Fatal(err)
			}
			if err := s.Begin(); err != nil {
				t.Fatal(err)
			}
			done := 0
			fetches.EachRecord(func(r *kgo.Record) {
				done++
				s.Produce(within(t), &kgo.Record{Topic: "out", Value: r.Value}, nil)
			})
			end := kgo.TransactionEndTry(turn%3 != 1)
			committed, err := s.End(within(t), end)
			if err != nil || committed != bool(end) {
				t.Fatalf("end: committed %v, want %v, %v", committed, end, err)
			}
			if committed {
				from += done
			}
		}
	}
	run(0, 12)
	if err := stop(n); err != nil {
		t.Fatal(err)
	}
	n = start(t, fsys, load(t, testDir))
	run(12, 30)
	committed(t, n, "out", numbered(0, 30)...)
}

// The topic of the transactions is made on its first use, with Kafka's settings.
func TestTransactionTopic(t *testing.T) {
	n := start(t, vfs.NewMem(), load(t, testDir, "transaction.state.log.num.partitions=7", "transaction.state.log.segment.bytes=1048576"))
	cl := client(t, n, kgo.TransactionalID("tx"))
	transact(t, cl, kgo.TryCommit, []string{"t"}, "a")
	img := n.images.Current()
	made, ok := img.Topic("__transaction_state")
	if !ok || len(made.Partitions) != 7 || !made.Internal {
		t.Fatalf("made %+v", made)
	}
	var configs []string
	for k, v := range img.TopicConfig("__transaction_state") {
		configs = append(configs, k+"="+v)
	}
	slices.Sort(configs)
	want := "[cleanup.policy=compact compression.type=uncompressed min.insync.replicas=2 segment.bytes=1048576 unclean.leader.election.enable=false]"
	if got := fmt.Sprint(configs); got != want {
		t.Errorf("configs %s, want %s", got, want)
	}
}

// A topic that is deleted under a transaction does not hold it up.
func TestDeletedTopicEndsNoTransaction(t *testing.T) {
	n := start(t, vfs.NewMem(), load(t, testDir))
	cl := client(t, n, kgo.TransactionalID("tx"))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "kept", "a")
	produce(t, cl, "gone", "b")
	if _, err := kadm.NewClient(client(t, n)).DeleteTopic(within(t), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := cl.EndTransaction(within(t), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	committed(t, n, "kept", "a")
	eventually(t, "the transaction is complete", func() bool {
		got, err := kadm.NewClient(client(t, n)).DescribeTransactions(within(t), "tx")
		return err == nil && got["tx"].State == "CompleteCommit"
	})
}

// As in Kafka, the topic of the transactional ids may be deleted under a transaction,
// which hangs from then on. The log names it, and the marker that tools write for a
// hanging transaction ends it.
func TestDeletedTransactionTopicIsToldOf(t *testing.T) {
	var log lines
	env := testEnv(vfs.NewMem())
	env.Log = slog.New(slog.NewTextHandler(&log, nil))
	n, err := Start(env, load(t, testDir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop(n) })
	cl := client(t, n, kgo.TransactionalID("tx"))
	transact(t, client(t, n, kgo.TransactionalID("done")), kgo.TryCommit, []string{"orders"}, "a")
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "orders", "b")
	produce(t, client(t, n), "orders", "c")
	adm := kadm.NewClient(client(t, n))
	if _, err := adm.DeleteTopic(within(t), "__transaction_state"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log names the transaction", func() bool {
		return strings.Contains(log.String(), "transactions=1 transactionalIds=[tx] partitions=[orders-0]")
	})
	var orders kadm.TopicsSet
	orders.Add("orders", 0)
	described, err := adm.DescribeProducers(within(t), orders)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range described["orders"].Partitions[0].ActiveProducers {
		if p.CurrentTxnStartOffset < 0 {
			continue
		}
		marker := kadm.TxnMarkers{ProducerID: p.ProducerID, ProducerEpoch: p.ProducerEpoch, CoordinatorEpoch: p.CoordinatorEpoch, Topics: orders}
		if _, err := adm.WriteTxnMarkers(within(t), marker); err != nil {
			t.Fatal(err)
		}
	}
	committed(t, n, "orders", "a", "c")
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// laterClock is the system's clock, but for the time that a test lets pass at once.
type laterClock struct {
	clock.Clock
	by atomic.Int64
}

func (c *laterClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.by.Load())) }

// A transaction that nobody ends is aborted when its time has passed, and readers
// go on.
func TestTransactionTimesOut(t *testing.T) {
	now := &laterClock{Clock: clock.Real()}
	env := testEnv(vfs.NewMem())
	env.Clock = now
	n, err := Start(env, load(t, testDir, "transaction.abort.timed.out.transaction.cleanup.interval.ms=20"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop(n) })
	cl := client(t, n, kgo.TransactionalID("tx"), kgo.TransactionTimeout(5*time.Minute))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "orders", "late")
	produce(t, client(t, n), "orders", "after")
	describes(t, n, "tx", "Ongoing")
	now.by.Store(int64(6 * time.Minute))
	committed(t, n, "orders", "after")
	describes(t, n, "tx", "CompleteAbort")
	err = cl.EndTransaction(within(t), kgo.TryCommit)
	if !errors.Is(err, kerr.InvalidTxnState) && !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Fatalf("a commit that comes too late: %v", err)
	}
}

// eventually waits for what another goroutine of the broker brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !ok() {
		if ctx.Err() != nil {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
