package api

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// fakeCoordinator answers with the codes it was given, in turn, and notes what it
// was asked.
type fakeCoordinator struct {
	Transactions

	mu    sync.Mutex
	codes []*kerr.Error
	asked []string
	// before runs before each answer.
	before func()
}

func (f *fakeCoordinator) VerifyOrAdd(id string, producerID int64, epoch int16, partitions []storage.TopicPartition, add bool, done func(map[storage.TopicPartition]*kerr.Error)) {
	if f.before != nil {
		f.before()
	}
	f.mu.Lock()
	f.asked = append(f.asked, fmt.Sprint(id, " ", producerID, "/", epoch, " ", partitions, " add=", add))
	var code *kerr.Error
	if len(f.codes) > 0 {
		code, f.codes = f.codes[0], f.codes[1:]
	}
	f.mu.Unlock()
	answer := map[storage.TopicPartition]*kerr.Error{}
	for _, tp := range partitions {
		answer[tp] = code
	}
	go done(answer)
}

func (f *fakeCoordinator) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

// newVerifyingBroker has a topic that wants its transactional appends verified.
func newVerifyingBroker(t *testing.T) (*dataBroker, *fakeCoordinator, metadata.TopicID) {
	d, f := newDataBroker(t), &fakeCoordinator{}
	d.h.Transactions = f
	id := d.make("orders", 3, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Log.VerifyTransactions = true })
	return d, f, id
}

func txnRequest(topic string, id metadata.TopicID, records ...[]byte) *kmsg.ProduceRequest {
	r := produceRequest(topic, id, 0, -1, records[0])
	r.TransactionID = kmsg.StringPtr("tx")
	for i, b := range records[1:] {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i+1), b
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, p)
	}
	return r
}

func codesOf(resp *kmsg.ProduceResponse) (codes []string) {
	for _, row := range resp.Topics[0].Partitions {
		s := "ok"
		var e *kerr.Error
		if errors.As(kerr.ErrorForCode(row.ErrorCode), &e) {
			s = e.Message
		}
		codes = append(codes, s)
	}
	return codes
}

// TestProduceVerifies asks the coordinator for the first batch of a transaction in a
// partition, and not again until its marker.
func TestProduceVerifies(t *testing.T) {
	for version := int16(3); version <= 13; version++ {
		d, f, id := newVerifyingBroker(t)
		c := d.dial("client")
		send := func(epoch int16, sequence int32) {
			t.Helper()
			resp := askAs[*kmsg.ProduceResponse](c, version, txnRequest("orders", id, txnBatch(7, epoch, sequence, "a"), txnBatch(7, epoch, sequence, "b")))
			if got := codesOf(resp); got[0] != "ok" || got[1] != "ok" {
				t.Fatalf("v%d: %v", version, got)
			}
		}
		expect := func(want ...string) {
			t.Helper()
			if got := f.take(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("v%d: asked %q, not %q", version, got, want)
			}
		}
		send(0, 0)
		expect(fmt.Sprint("tx 7/0 [orders-0 orders-1] add=", version >= 12))
		send(0, 1)
		expect()
		d.endTxn("orders", 7, 0, true)
		send(0, 2)
		expect(fmt.Sprint("tx 7/0 [orders-0] add=", version >= 12))
	}
}

// TestProduceVerificationErrors is how each answer of the coordinator reaches a
// client.
func TestProduceVerificationErrors(t *testing.T) {
	for _, test := range []struct {
		code *kerr.Error
		// want are the codes of versions 10, 11 and 12.
		want [3]*kerr.Error
	}{
		{kerr.TransactionAbortable, [3]*kerr.Error{kerr.InvalidTxnState, kerr.TransactionAbortable, kerr.TransactionAbortable}},
		{kerr.InvalidTxnState, [3]*kerr.Error{kerr.InvalidTxnState, kerr.InvalidTxnState, kerr.InvalidTxnState}},
		{kerr.ProducerFenced, [3]*kerr.Error{kerr.InvalidProducerEpoch, kerr.InvalidProducerEpoch, kerr.InvalidProducerEpoch}},
		{kerr.InvalidProducerIDMapping, [3]*kerr.Error{kerr.InvalidProducerIDMapping, kerr.InvalidProducerIDMapping, kerr.InvalidProducerIDMapping}},
		{kerr.NotCoordinator, [3]*kerr.Error{kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas}},
		{kerr.CoordinatorNotAvailable, [3]*kerr.Error{kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas}},
		{kerr.CoordinatorLoadInProgress, [3]*kerr.Error{kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas}},
	} {
		for i, want := range test.want {
			d, f, id := newVerifyingBroker(t)
			f.codes = []*kerr.Error{test.code}
			resp := askAs[*kmsg.ProduceResponse](d.dial("client"), int16(10+i), txnRequest("orders", id, txnBatch(7, 0, 0, "a")))
			row := resp.Topics[0].Partitions[0]
			if row.ErrorCode != want.Code || row.BaseOffset != -1 || row.LogStartOffset != -1 {
				t.Errorf("v%d, %s: answered with %+v", 10+i, test.code.Message, row)
			}
			if mark := d.partition("orders", 0).HighWatermark(); mark != 0 {
				t.Errorf("v%d, %s: the records were appended", 10+i, test.code.Message)
			}
		}
	}
}

// TestProduceConcurrentTransactions is a coordinator that has waited in vain for an
// earlier transaction to end.
func TestProduceConcurrentTransactions(t *testing.T) {
	for version, want := range map[int16]*kerr.Error{11: kerr.NotEnoughReplicas, 12: kerr.ConcurrentTransactions} {
		d, f, id := newVerifyingBroker(t)
		f.codes = []*kerr.Error{kerr.ConcurrentTransactions}
		got := codesOf(askAs[*kmsg.ProduceResponse](d.dial("client"), version, txnRequest("orders", id, txnBatch(7, 0, 0, "a"))))
		if got[0] != want.Message {
			t.Errorf("v%d: %v", version, got)
		}
	}
}

// TestProduceMarkersWhileAdding is a coordinator that first waits for the transaction
// before: the marker of that one comes after the verification has begun.
func TestProduceMarkersWhileAdding(t *testing.T) {
	d, f, id := newVerifyingBroker(t)
	c := d.dial("client")
	send := func() string {
		return codesOf(askAs[*kmsg.ProduceResponse](c, 12, txnRequest("orders", id, txnBatch(7, 1, 0, "a"))))[0]
	}
	once := sync.OnceFunc(func() { d.endTxn("orders", 7, 1, true) })
	f.before = once
	if got := send(); got != "ok" {
		t.Fatal(got)
	}
	if asked := f.take(); len(asked) != 2 {
		t.Fatalf("asked %v", asked)
	}
	// It does not go on for ever.
	d.endTxn("orders", 7, 1, true)
	f.before = func() { d.endTxn("orders", 7, 1, true) }
	if got := send(); got != kerr.ConcurrentTransactions.Message {
		t.Fatal(got)
	}
}

// TestProduceMarkerDuringVerification lets a marker come between the coordinator's
// answer and the append: the records would begin a transaction that nobody ends.
func TestProduceMarkerDuringVerification(t *testing.T) {
	d, f, id := newVerifyingBroker(t)
	f.before = func() { d.endTxn("orders", 7, 0, false) }
	resp := askAs[*kmsg.ProduceResponse](d.dial("client"), 11, txnRequest("orders", id, txnBatch(7, 0, 0, "a")))
	if got := codesOf(resp); got[0] != kerr.InvalidTxnState.Message {
		t.Fatal(got)
	}
}

// TestProduceTransactionalRequest refuses what is wrong with a request as a whole.
func TestProduceTransactionalRequest(t *testing.T) {
	d, f, id := newVerifyingBroker(t)
	c := d.dial("client")
	r := txnRequest("orders", id, txnBatch(7, 0, 0, "a"), values(0, "plain"))
	r.TransactionID = nil
	if got := codesOf(askAs[*kmsg.ProduceResponse](c, 9, r)); got[0] != kerr.TransactionalIDAuthorizationFailed.Message || got[1] != got[0] {
		t.Errorf("without a transactional id: %v", got)
	}
	r = txnRequest("orders", id, txnBatch(7, 0, 0, "a"), txnBatch(8, 0, 0, "b"), values(0, "plain"))
	if got := codesOf(askAs[*kmsg.ProduceResponse](c, 9, r)); got[0] != kerr.InvalidProducerIDMapping.Message || got[2] != got[0] {
		t.Errorf("two producers: %v", got)
	}
	r = txnRequest("orders", id, values(0, "plain"))
	if got := codesOf(askAs[*kmsg.ProduceResponse](c, 9, r)); got[0] != "ok" || len(f.take()) != 0 {
		t.Errorf("plain records with a transactional id: %v", got)
	}
	// One partition is refused, the others are not.
	d.endTxn("orders", 9, 5, true)
	r = txnRequest("orders", id, txnBatch(9, 4, 0, "a"), txnBatch(9, 4, 0, "b"), []byte("no batch"))
	if got := codesOf(askAs[*kmsg.ProduceResponse](c, 9, r)); got[0] != kerr.InvalidProducerEpoch.Message || got[1] != "ok" || got[2] == "ok" {
		t.Errorf("an old epoch in one partition: %v", got)
	}
	if got := f.take(); fmt.Sprint(got) != "[tx 9/4 [orders-1] add=false]" {
		t.Errorf("asked %v", got)
	}
}

// TestProduceUnverified is transaction.partition.verification.enable=false: only
// clients whose Produce adds the partition still need the coordinator.
func TestProduceUnverified(t *testing.T) {
	d, f, _ := newVerifyingBroker(t)
	id := d.make("free", 1, nil)
	c := d.dial("client")
	for version, want := range map[int16]int{11: 0, 12: 1} {
		if got := codesOf(askAs[*kmsg.ProduceResponse](c, version, txnRequest("free", id, txnBatch(int64(version), 0, 0, "a")))); got[0] != "ok" {
			t.Fatal(got)
		}
		if got := f.take(); len(got) != want {
			t.Errorf("v%d: asked %v", version, got)
		}
	}
}

// TestProduceNewTransactionSequence wants the first batch of a producer in a
// partition to have sequence number 0 where every transaction has its epoch.
func TestProduceNewTransactionSequence(t *testing.T) {
	for version, want := range map[int16]string{11: "ok", 12: kerr.OutOfOrderSequenceNumber.Message} {
		d, _, id := newVerifyingBroker(t)
		if got := codesOf(askAs[*kmsg.ProduceResponse](d.dial("client"), version, txnRequest("orders", id, txnBatch(7, 0, 4, "a")))); got[0] != want {
			t.Errorf("v%d: %v", version, got)
		}
	}
}

// TestDescribeProducers tells of idempotent and transactional producers.
func TestDescribeProducers(t *testing.T) {
	d := newDataBroker(t)
	d.make("orders", 1, nil)
	c := d.dial("client")
	for sequence := int32(0); sequence < 2; sequence++ {
		if row := c.produceTo("orders", 0, stampedValues(5, 1, sequence, "a")); row.ErrorCode != 0 {
			t.Fatal(kerr.ErrorForCode(row.ErrorCode))
		}
	}
	d.appendTxn("orders", txnBatch(6, 0, 0, "b", "c"))
	d.appendTxn("orders", txnBatch(7, 0, 0, "d"))
	d.endTxn("orders", 7, 2, true)
	req := kmsg.NewPtrDescribeProducersRequest()
	req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "orders", Partitions: []int32{0, 9}}, {Topic: "missing", Partitions: []int32{0}}}
	resp := askAs[*kmsg.DescribeProducersResponse](c, 0, req)
	got := ""
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			got += fmt.Sprintf("%s-%d code %d\n", topic.Topic, p.Partition, p.ErrorCode)
			for _, a := range p.ActiveProducers {
				got += fmt.Sprintf(" producer %d epoch %d sequence %d time %d coordinator %d open from %d\n",
					a.ProducerID, a.ProducerEpoch, a.LastSequence, a.LastTimestamp, a.CoordinatorEpoch, a.CurrentTxnStartOffset)
			}
		}
	}
	want := `orders-0 code 0
 producer 5 epoch 1 sequence 1 time 1700000000000 coordinator -1 open from -1
 producer 6 epoch 0 sequence 1 time 1700000000000 coordinator -1 open from 2
 producer 7 epoch 2 sequence -1 time 1700000000000 coordinator 0 open from -1
orders-9 code 3
missing-0 code 3
`
	if got != want {
		t.Fatalf("got\n%swant\n%s", got, want)
	}
}

func stampedValues(id int64, epoch int16, sequence int32, v string) []byte {
	b := batch.NewBuilder(batch.BuilderOptions{Producer: &batch.ProducerStamp{ID: id, Epoch: epoch, BaseSequence: sequence}})
	b.Add(1_700_000_000_000, nil, []byte(v))
	return b.Build()
}
