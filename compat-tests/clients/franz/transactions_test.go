//go:build !old

package franz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// TestTransactions lets several producers commit and abort at random and reads what a committed reader sees: all that
// was committed, once and in order, and nothing else.
func TestTransactions(t *testing.T) {
	const producers, rounds, partitions = 4, 25, 3
	name := topic(t, partitions, nil)
	ctx := harness.Context(t, 2*time.Minute)
	var mu sync.Mutex
	var committed, aborted []string
	var wait sync.WaitGroup
	for p := range producers {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(p), 7))
			cl := client(t, kgo.TransactionalID(name+fmt.Sprint(p)), kgo.DefaultProduceTopic(name), kgo.ProducerLinger(0))
			for round := range rounds {
				values, err := transaction(ctx, cl, r, fmt.Sprintf("%d/%d", p, round))
				if err != nil {
					t.Errorf("producer %d, round %d: %v", p, round, err)
					return
				}
				end := kgo.TransactionEndTry(r.IntN(3) > 0)
				if err := cl.EndTransaction(ctx, end); err != nil {
					t.Errorf("producer %d, end of round %d: %v", p, round, err)
					return
				}
				mu.Lock()
				if end {
					committed = append(committed, values...)
				} else {
					aborted = append(aborted, values...)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		return
	}
	slices.Sort(committed)
	if got := readTopic(t, name, kgo.ReadCommitted()); !slices.Equal(got, committed) {
		t.Fatalf("a committed reader sees %d records, %d were committed", len(got), len(committed))
	}
	all := append(aborted, committed...)
	slices.Sort(all)
	if got := readTopic(t, name, kgo.ReadUncommitted()); !slices.Equal(got, all) {
		t.Fatalf("an uncommitted reader sees %d records of %d", len(got), len(all))
	}
}

// transaction begins one and writes to it.
func transaction(ctx context.Context, cl *kgo.Client, r *rand.Rand, name string) (values []string, err error) {
	if err := cl.BeginTransaction(); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	for i := range 1 + r.IntN(20) {
		v := fmt.Sprintf("%s/%03d", name, i)
		values = append(values, v)
		cl.Produce(ctx, &kgo.Record{Key: []byte(v), Value: []byte(v)}, func(_ *kgo.Record, e error) {
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, e)
		})
		if r.IntN(5) == 0 {
			if e := cl.Flush(ctx); e != nil {
				return nil, e
			}
		}
	}
	if e := cl.Flush(ctx); e != nil {
		return nil, e
	}
	mu.Lock()
	defer mu.Unlock()
	return values, err
}

// readTopic reads a topic, in which no transaction is open any more, to its end.
func readTopic(t *testing.T, name string, level kgo.IsolationLevel) (values []string) {
	t.Helper()
	ctx := harness.Context(t, time.Minute)
	ends := settledEnds(t, ctx, name)
	cl := client(t, kgo.ConsumeTopics(name), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords())
	left := len(ends[name])
	for _, end := range ends[name] {
		if end.Offset == 0 {
			left--
		}
	}
	for done := map[int32]bool{}; left > len(done); {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
			if r.Offset+1 >= ends[name][r.Partition].Offset {
				done[r.Partition] = true
			}
		})
	}
	slices.Sort(values)
	return values
}

// settledEnds waits until a reader with read_committed is given all of a topic: the end of a transaction is answered
// before its markers are written.
func settledEnds(t *testing.T, ctx context.Context, name string) (ends kadm.ListedOffsets) {
	t.Helper()
	adm := admin(t)
	await(t, ctx, func() error {
		stable, err := adm.ListCommittedOffsets(ctx, name)
		if err != nil {
			return err
		}
		if ends, err = adm.ListEndOffsets(ctx, name); err != nil {
			return err
		}
		for p, end := range ends[name] {
			if stable[name][p].Err != nil || end.Err != nil || stable[name][p].Offset != end.Offset {
				return fmt.Errorf("partition %d is stable up to %+v of %+v", p, stable[name][p], end)
			}
		}
		return nil
	})
	return ends
}

// TestTransactionIsInvisible holds a committed reader back at an open transaction.
func TestTransactionIsInvisible(t *testing.T) {
	name := topic(t, 1, nil)
	ctx := harness.Context(t, time.Minute)
	cl := client(t, kgo.TransactionalID(name), kgo.DefaultProduceTopic(name))
	if _, err := transaction(ctx, cl, rand.New(rand.NewPCG(1, 1)), "open"); err != nil {
		t.Fatal(err)
	}
	plain := client(t, kgo.DefaultProduceTopic(name))
	if err := plain.ProduceSync(ctx, kgo.StringRecord("plain")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	ends, err := admin(t).ListCommittedOffsets(ctx, name)
	if err != nil || ends[name][0].Offset != 0 {
		t.Fatalf("the last stable offset is %+v, %v", ends[name][0], err)
	}
	reader := client(t, kgo.ConsumeTopics(name), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if f := reader.PollFetches(short); f.NumRecords() > 0 {
		t.Fatalf("%d records of an open transaction were read", f.NumRecords())
	}
	if err := cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	if f := reader.PollFetches(ctx); f.NumRecords() != 1 || string(f.Records()[0].Value) != "plain" {
		t.Fatalf("after the abort: %d records, %v", f.NumRecords(), f.Err0())
	}
}

// TestTransactionalIDFences lets a second producer with the id of the first take over.
func TestTransactionalIDFences(t *testing.T) {
	name := topic(t, 1, nil)
	ctx := harness.Context(t, time.Minute)
	r := rand.New(rand.NewPCG(1, 2))
	old := client(t, kgo.TransactionalID(name), kgo.DefaultProduceTopic(name))
	if _, err := transaction(ctx, old, r, "old"); err != nil {
		t.Fatal(err)
	}
	fresh := client(t, kgo.TransactionalID(name), kgo.DefaultProduceTopic(name))
	want, err := transaction(ctx, fresh, r, "new")
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	err = old.ProduceSync(ctx, kgo.StringRecord("late")).FirstErr()
	if err == nil {
		err = old.EndTransaction(ctx, kgo.TryCommit)
	}
	if !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidTxnState) {
		t.Fatalf("the old producer went on: %v", err)
	}
	slices.Sort(want)
	if got := readTopic(t, name, kgo.ReadCommitted()); !slices.Equal(got, want) {
		t.Fatalf("read %q, not %q", got, want)
	}
}

// TestConsumeTransformProduce copies a topic in transactions that take the consumed offsets with them. Some abort, and
// the copiers are replaced in the middle: each record is in the copy once.
func TestConsumeTransformProduce(t *testing.T) {
	const count, partitions = 1500, 3
	in, out := topic(t, partitions, nil), topic(t, partitions, nil)
	ctx := harness.Context(t, 2*time.Minute)
	var want []string
	source := client(t, kgo.DefaultProduceTopic(in))
	for i := range count {
		v := fmt.Sprintf("%05d", i)
		want = append(want, v)
		source.Produce(ctx, &kgo.Record{Key: []byte(v), Value: []byte(v)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := source.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for life := range 3 {
		var wait sync.WaitGroup
		for worker := range 2 {
			all := int64(0)
			if life == 2 {
				all = count
			}
			wait.Go(func() { copyRecords(ctx, t, in, out, fmt.Sprintf("%s-%d", out, worker), all) })
		}
		wait.Wait()
	}
	if got := readTopic(t, out, kgo.ReadCommitted()); !slices.Equal(got, want) {
		t.Fatalf("the copy has %d records, the original %d", len(got), len(want))
	}
}

// committedOf is how many records a group has committed, over the partitions of its only topic.
func committedOf(ctx context.Context, cl *kgo.Client, group string) (n int64, err error) {
	committed, err := kadm.NewClient(cl).FetchOffsets(ctx, group)
	committed.Each(func(o kadm.OffsetResponse) { n += max(o.At, 0) })
	return n, err
}

// copyRecords copies a few batches or, with all, until the group has committed that many records: that nothing has come
// for a while does not say that nothing is left.
func copyRecords(ctx context.Context, t *testing.T, in, out, id string, all int64) {
	s, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(harness.Shared.Addr()), kgo.DisableClientMetrics(), kgo.ConsumeTopics(in), kgo.ConsumerGroup(out), kgo.TransactionalID(id),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DefaultProduceTopic(out),
	)
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	r := rand.New(rand.NewPCG(5, uint64(len(id))))
	for n := 0; all > 0 || n < 4; n++ {
		wait, cancel := context.WithTimeout(ctx, 3*time.Second)
		fetches := s.PollRecords(wait, 50)
		cancel()
		if fetches.NumRecords() == 0 {
			if err := fetches.Err0(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
				return
			}
			done, err := committedOf(ctx, s.Client(), out)
			if err != nil {
				t.Error(err)
				return
			}
			if done >= all {
				return
			}
			continue
		}
		if err := s.Begin(); err != nil {
			t.Error(err)
			return
		}
		promise := kgo.AbortingFirstErrPromise(s.Client())
		fetches.EachRecord(func(r *kgo.Record) {
			s.Produce(ctx, &kgo.Record{Key: r.Key, Value: r.Value}, promise.Promise())
		})
		if _, err := s.End(ctx, kgo.TransactionEndTry(promise.Err() == nil && r.IntN(4) > 0)); err != nil {
			t.Error(err)
			return
		}
	}
}
