package api

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// txnBatch is one transactional batch.
func txnBatch(id int64, epoch int16, sequence int32, vs ...string) []byte {
	b := batch.NewBuilder(batch.BuilderOptions{Producer: &batch.ProducerStamp{ID: id, Epoch: epoch, BaseSequence: sequence}, Transactional: true})
	for _, v := range vs {
		b.Add(1_700_000_000_000, nil, []byte(v))
	}
	return b.Build()
}

func (d *dataBroker) partition(topic string, index int32) *replica.Partition {
	d.t.Helper()
	p, ok := d.m.Partition(topic, index)
	if !ok {
		d.t.Fatalf("no partition %s-%d", topic, index)
	}
	return p
}

// appendTxn appends to a transaction behind the produce handler.
func (d *dataBroker) appendTxn(topic string, records []byte) {
	d.t.Helper()
	if _, err := d.partition(topic, 0).Append(records, replica.AppendOptions{Acks: 1, LeaderEpoch: -1}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *dataBroker) endTxn(topic string, id int64, epoch int16, commit bool) {
	d.t.Helper()
	_, err := d.partition(topic, 0).AppendMarker(replica.Marker{ProducerID: id, ProducerEpoch: epoch, Commit: commit}, replica.AppendOptions{Acks: 1, LeaderEpoch: -1})
	if err != nil {
		d.t.Fatal(err)
	}
}

func committedRequest(topic string, id metadata.TopicID, offset int64) *kmsg.FetchRequest {
	r := fetchRequest(topic, id, 0, offset)
	r.IsolationLevel = readCommitted
	return r
}

func abortedOf(row *kmsg.FetchResponseTopicPartition) string {
	if row.AbortedTransactions == nil {
		return "null"
	}
	s := ""
	for _, a := range row.AbortedTransactions {
		s += fmt.Sprintf("(%d from %d)", a.ProducerID, a.FirstOffset)
	}
	return s
}

// TestFetchCommitted reads one log in every version at both isolation levels: two
// transactions, of which one is aborted, and a third that is open.
func TestFetchCommitted(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("orders", 1, nil)
	c := d.dial("127.0.0.1")
	c.mustProduce("orders", 0, "plain")
	d.appendTxn("orders", txnBatch(5, 0, 0, "aborted", "aborted too"))
	d.appendTxn("orders", txnBatch(6, 0, 0, "committed"))
	d.endTxn("orders", 5, 0, false)
	d.endTxn("orders", 6, 0, true)
	c.mustProduce("orders", 0, "plain again")
	d.appendTxn("orders", txnBatch(6, 0, 1, "open"))
	c.mustProduce("orders", 0, "hidden")
	for version := int16(4); version <= kmsg.NewPtrFetchRequest().MaxVersion(); version++ {
		row := &askAs[*kmsg.FetchResponse](c, version, committedRequest("orders", id, 0)).Topics[0].Partitions[0]
		got := fmt.Sprint(row.HighWatermark, row.LastStableOffset, abortedOf(row), len(contents(t, row.RecordBatches)))
		if want := fmt.Sprint(9, 7, "(5 from 1)", 7); row.ErrorCode != 0 || got != want {
			t.Errorf("v%d, read_committed: %s, not %s", version, got, want)
		}
		row = &askAs[*kmsg.FetchResponse](c, version, fetchRequest("orders", id, 0, 0)).Topics[0].Partitions[0]
		got = fmt.Sprint(row.HighWatermark, row.LastStableOffset, abortedOf(row), len(contents(t, row.RecordBatches)))
		if want := fmt.Sprint(9, 7, "null", 9); row.ErrorCode != 0 || got != want {
			t.Errorf("v%d, read_uncommitted: %s, not %s", version, got, want)
		}
	}
	for _, q := range []struct {
		level int8
		want  int64
	}{{0, 9}, {readCommitted, 7}} {
		r := listOffsetsRequest("orders", replica.TimestampLatest)
		r.IsolationLevel = q.level
		if row := askAs[*kmsg.ListOffsetsResponse](c, 8, r).Topics[0].Partitions[0]; row.Offset != q.want {
			t.Errorf("ListOffsets latest at isolation level %d: %d, not %d", q.level, row.Offset, q.want)
		}
	}
}

// TestFetchCommittedWakes parks read_committed readers behind an open transaction
// that holds more than they wait for.
func TestFetchCommittedWakes(t *testing.T) {
	for _, commit := range []bool{true, false} {
		d := newDataBroker(t)
		id := d.make("orders", 1, nil)
		reader, writer := d.dial("127.0.0.1"), d.dial("127.0.0.1")
		d.appendTxn("orders", txnBatch(5, 0, 0, string(make([]byte, 5000))))
		r := committedRequest("orders", id, 0)
		r.MinBytes, r.MaxWaitMillis = 2000, 1<<30
		got := later[*kmsg.FetchResponse](reader, 12, r)
		d.parked(1)
		writer.mustProduce("orders", 0, string(make([]byte, 3000)))
		d.pool.WaitIdle()
		if len(got) != 0 {
			t.Fatal("a read_committed reader was answered while the transaction was open")
		}
		d.endTxn("orders", 5, 0, commit)
		row := &soon(t, got).Topics[0].Partitions[0]
		if n := len(contents(t, row.RecordBatches)); n != 3 || row.LastStableOffset != 3 {
			t.Fatalf("%d records, last stable offset %d", n, row.LastStableOffset)
		}
	}
}

// TestFetchCommittedInSession moves only the last stable offset between two
// requests of a session.
func TestFetchCommittedInSession(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("orders", 1, nil)
	c := d.dial("127.0.0.1")
	d.appendTxn("orders", txnBatch(5, 0, 0, "a"))
	first := committedRequest("orders", id, 0)
	first.SessionEpoch, first.MaxWaitMillis = 0, 0
	resp := askAs[*kmsg.FetchResponse](c, 12, first)
	if row := resp.Topics[0].Partitions[0]; resp.SessionID == 0 || row.LastStableOffset != 0 || len(row.RecordBatches) != 0 || abortedOf(&row) != "" {
		t.Fatalf("session %d: %+v", resp.SessionID, row)
	}
	next := func(epoch int32) *kmsg.FetchResponse {
		r := kmsg.NewPtrFetchRequest()
		r.SessionID, r.SessionEpoch, r.MaxBytes, r.MinBytes, r.IsolationLevel = resp.SessionID, epoch, 1<<20, 1, readCommitted
		return askAs[*kmsg.FetchResponse](c, 12, r)
	}
	if again := next(1); len(again.Topics) != 0 {
		t.Fatalf("nothing has changed: %+v", again)
	}
	d.endTxn("orders", 5, 0, false)
	again := next(2)
	if len(again.Topics) != 1 {
		t.Fatalf("the end of the transaction is no news: %+v", again)
	}
	row := &again.Topics[0].Partitions[0]
	if got := contents(t, row.RecordBatches); len(got) != 2 || abortedOf(row) != "(5 from 0)" || row.LastStableOffset != 2 {
		t.Fatalf("%q, aborted %s, last stable offset %d", got, abortedOf(row), row.LastStableOffset)
	}
}

// TestDeleteRecordsMovesTheStableOffset deletes the records of an open transaction.
func TestDeleteRecordsMovesTheStableOffset(t *testing.T) {
	d := newDataBroker(t)
	id := d.make("orders", 1, nil)
	reader, writer := d.dial("127.0.0.1"), d.dial("127.0.0.1")
	d.appendTxn("orders", txnBatch(5, 0, 0, "a"))
	writer.mustProduce("orders", 0, "b")
	r := committedRequest("orders", id, 1)
	r.MaxWaitMillis = 1 << 30
	got := later[*kmsg.FetchResponse](reader, 12, r)
	d.parked(1)
	if low, err := d.partition("orders", 0).DeleteRecords(1); err != nil || low != 1 {
		t.Fatal(low, err)
	}
	writer.mustProduce("orders", 0, "c")
	d.endTxn("orders", 5, 0, true)
	row := &soon(t, got).Topics[0].Partitions[0]
	if vs := contents(t, row.RecordBatches); !reflect.DeepEqual(vs[:2], []string{"b", "c"}) {
		t.Fatalf("%q", vs)
	}
}

// TestNoLostWakeUpsCommitted lets read_committed consumers with an endless wait
// follow transactions and plain records of the same partition. The clock stands
// still, so a wake-up that gets lost is never made up for.
func TestNoLostWakeUpsCommitted(t *testing.T) {
	const rounds, writers, consumers = 100, 3, 3
	d := newDataBroker(t)
	d.make("t", 1, nil)
	p := d.partition("t", 0)
	var wg sync.WaitGroup
	var mu sync.Mutex
	committed := map[string]bool{}
	for w := range int64(writers) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			sequence := int32(0)
			for n := range rounds {
				v, commit := fmt.Sprintf("%d-%d", w, n), r.IntN(2) == 0
				mu.Lock()
				committed[v] = commit
				mu.Unlock()
				records := txnBatch(w, 0, sequence, v)
				if w == 0 { // plain
					records, commit = values(1, v), true
				}
				sequence++
				if _, err := p.Append(records, replica.AppendOptions{Acks: 1, LeaderEpoch: -1}); err != nil {
					t.Error(err)
				}
				if w == 0 {
					mu.Lock()
					committed[v] = true
					mu.Unlock()
					continue
				}
				m := replica.Marker{ProducerID: w, Commit: commit}
				if _, err := p.AppendMarker(m, replica.AppendOptions{Acks: 1, LeaderEpoch: -1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	const total = rounds * (1 + 2*(writers-1)) // the log's end
	for range consumers {
		c := d.dial("consumer")
		wg.Go(func() {
			seen := map[string]bool{}
			for next := int64(0); next < total; {
				row := c.fetch(committedRequest("t", metadata.TopicID{}, next)).Topics[0].Partitions[0]
				if row.ErrorCode != 0 || row.LastStableOffset > row.HighWatermark {
					t.Errorf("%+v", row)
					return
				}
				next = showCommitted(t, &row, seen)
			}
			mu.Lock()
			defer mu.Unlock()
			for v, commit := range committed {
				if seen[v] != commit {
					t.Errorf("%s: committed %t, seen %t", v, commit, seen[v])
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	soon(t, done)
}

// showCommitted is what a client makes of a read_committed answer; it returns the
// next offset.
func showCommitted(t *testing.T, row *kmsg.FetchResponseTopicPartition, seen map[string]bool) (next int64) {
	aborted := map[int64]bool{}
	queue := row.AbortedTransactions
	slices.SortFunc(queue, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	for rest := row.RecordBatches; len(rest) > 0; {
		v, after, err := batch.Next(rest)
		if err != nil {
			break // cut
		}
		for len(queue) > 0 && queue[0].FirstOffset <= v.LastOffset() {
			aborted[queue[0].ProducerID], queue = true, queue[1:]
		}
		switch {
		case v.IsControl():
			delete(aborted, v.ProducerID())
		case !v.IsTransactional() || !aborted[v.ProducerID()]:
			for _, value := range contents(t, v) {
				if seen[value] {
					t.Errorf("%s was read twice", value)
				}
				seen[value] = true
			}
		}
		next, rest = v.NextOffset(), after
	}
	return next
}
