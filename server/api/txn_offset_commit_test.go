package api

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/storage"
)

// oneTransaction answers for the transactional id "tx".
type oneTransaction struct {
	Transactions
	producerID int64
	epoch      int16
	partitions map[storage.TopicPartition]bool
	asked      int
}

func (o *oneTransaction) VerifyOrAdd(id string, producerID int64, epoch int16, partitions []storage.TopicPartition, add bool, done func(map[storage.TopicPartition]*kerr.Error)) {
	o.asked++
	codes := map[storage.TopicPartition]*kerr.Error{}
	for _, tp := range partitions {
		switch {
		case id != "tx" || producerID != o.producerID:
			codes[tp] = kerr.InvalidProducerIDMapping
		case epoch != o.epoch:
			codes[tp] = kerr.ProducerFenced
		case add:
			o.partitions[tp] = true
		case !o.partitions[tp]:
			codes[tp] = kerr.TransactionAbortable
		}
	}
	done(codes)
}

// txnBroker is a dataBroker with a group coordinator on its own partitions.
type txnBroker struct {
	*dataBroker
	txn    *oneTransaction
	groups *group.Coordinator
	c      *testClient
}

func newTxnBroker(t *testing.T) *txnBroker { return newTxnBrokerWith(t, true) }

// newTxnBrokerWith sets transaction.partition.verification.enable.
func newTxnBrokerWith(t *testing.T, verification bool) *txnBroker {
	d := newDataBroker(t)
	b := &txnBroker{dataBroker: d, txn: &oneTransaction{producerID: 9, partitions: map[storage.TopicPartition]bool{}}}
	d.make(group.Topic, 50, func(cfg *replica.TopicConfig, _ *metadata.Partition) { cfg.Log.VerifyTransactions = verification })
	d.make("t", 2, nil)
	b.groups = group.NewCoordinator(group.Options{
		Config: group.DefaultConfig(), Clock: d.clk, Log: slog.New(slog.DiscardHandler), NewID: func() string { return "id" },
		Open:       func(p int32) (runtime.Log, error) { return d.m.CoordinatorLog(group.Topic, p) },
		Partitions: func() int32 { return 50 },
	})
	t.Cleanup(b.groups.Close)
	for p := range int32(50) {
		b.groups.OnElected(p, 0)
	}
	d.h.Groups, d.h.Transactions = b.groups, b.txn
	b.c = d.dial("client")
	return b
}

// txnCommit is a request of the open transaction for t-0; change may spoil it.
func txnCommit(change func(*kmsg.TxnOffsetCommitRequest)) *kmsg.TxnOffsetCommitRequest {
	r := kmsg.NewPtrTxnOffsetCommitRequest()
	r.TransactionalID, r.Group, r.ProducerID = "tx", "g", 9
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Offset = 5
	r.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
	if change != nil {
		change(r)
	}
	return r
}

func (b *txnBroker) commit(version int16, change func(*kmsg.TxnOffsetCommitRequest)) *kerr.Error {
	topic, _ := b.image.Load().Topic("t")
	r := txnCommit(func(r *kmsg.TxnOffsetCommitRequest) {
		r.Topics[0].TopicID = topic.ID
		if change != nil {
			change(r)
		}
	})
	resp := askAs[*kmsg.TxnOffsetCommitResponse](b.c, version, r)
	if resp.Topics[0].Topic != r.Topics[0].Topic && version < 6 || resp.Topics[0].TopicID != r.Topics[0].TopicID && version >= 6 {
		b.t.Errorf("v%d answers for topic %q %x", version, resp.Topics[0].Topic, resp.Topics[0].TopicID)
	}
	return kerr.TypedErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

// TestTxnOffsetCommitUnverified is transaction.partition.verification.enable=false: the
// coordinator is asked only by requests that add the group's partition, as in Kafka.
func TestTxnOffsetCommitUnverified(t *testing.T) {
	for version := int16(0); version <= 6; version++ {
		b := newTxnBrokerWith(t, false)
		b.want(fmt.Sprintf("v%d without AddOffsetsToTxn", version), b.commit(version, nil), nil)
		if asked := b.txn.asked > 0; asked != (version >= txnCommitAdds) {
			t.Errorf("v%d: the coordinator was asked: %v", version, asked)
		}
	}
}

func (b *txnBroker) want(what string, got, want *kerr.Error) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// mark ends the transaction in the partition of a group.
func (b *txnBroker) mark(groupID string, epoch int16, coordinatorEpoch int32, commit bool) *kerr.Error {
	done := make(chan error, 1)
	b.groups.CompleteTransaction(group.PartitionFor(groupID, 50), replica.Marker{
		ProducerID: 9, ProducerEpoch: epoch, CoordinatorEpoch: coordinatorEpoch, Commit: commit,
	}, func(err error) { done <- err })
	return typed(<-done)
}

// What Apache Kafka 4.4 answered to the same requests, one after the other.
func TestTxnOffsetCommitVersions(t *testing.T) {
	type commit = *kmsg.TxnOffsetCommitRequest
	for version := int16(0); version <= 6; version++ {
		b := newTxnBroker(t)
		notAdded := map[bool]*kerr.Error{true: kerr.TransactionAbortable, false: kerr.InvalidTxnState}[version >= 4]
		missing := notAdded
		if version >= 5 {
			notAdded, missing = nil, map[bool]*kerr.Error{true: kerr.GroupIDNotFound, false: kerr.IllegalGeneration}[version >= 6]
		} else {
			b.want("no transaction", b.commit(version, nil), notAdded)
			b.txn.partitions[storage.TopicPartition{Topic: group.Topic, Partition: group.PartitionFor("g", 50)}] = true
		}
		for _, tc := range []struct {
			what   string
			want   *kerr.Error
			since  int16
			change func(r commit)
		}{
			{"good", nil, 0, nil},
			{"unknown topic", map[bool]*kerr.Error{true: kerr.UnknownTopicID, false: kerr.UnknownTopicOrPartition}[version >= 6], 0,
				func(r commit) { r.Topics[0].Topic, r.Topics[0].TopicID = "nope", [16]byte{1} }},
			{"no id, another group", kerr.InvalidRequest, 0, func(r commit) { r.TransactionalID, r.Group = "", "i" }},
			{"no id, open in the partition", nil, 0, func(r commit) { r.TransactionalID = "" }},
			{"unknown partition", kerr.UnknownTopicOrPartition, 0, func(r commit) { r.Topics[0].Partitions[0].Partition = 2 }},
			{"negative partition", kerr.UnknownTopicOrPartition, 0, func(r commit) { r.Topics[0].Partitions[0].Partition = -1 }},
			{"negative offset", nil, 0, func(r commit) { r.Topics[0].Partitions[0].Offset = -5 }},
			{"long metadata", kerr.OffsetMetadataTooLarge, 0, func(r commit) { r.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(string(make([]byte, 5000))) }},
			{"no group", kerr.InvalidGroupID, 0, func(r commit) { r.Group = "" }},
			{"another id, open in the partition", nil, 0, func(r commit) { r.TransactionalID = "other" }},
			{"another id, another group", kerr.InvalidProducerIDMapping, 0, func(r commit) { r.TransactionalID, r.Group = "other", "h" }},
			{"another producer", kerr.InvalidProducerIDMapping, 0, func(r commit) { r.ProducerID++ }},
			{"newer epoch", kerr.InvalidProducerEpoch, 0, func(r commit) { r.ProducerEpoch++ }},
			{"older epoch", kerr.InvalidProducerEpoch, 0, func(r commit) { r.ProducerEpoch-- }},
			{"another group, a generation", missing, 3,
				func(r commit) { r.Group, r.Generation, r.MemberID = "h", 1, "m" }},
			{"another group, a member", notAdded, 3, func(r commit) { r.Group, r.MemberID = "h", "m" }},
			{"a member without generation", nil, 3, func(r commit) { r.MemberID = "m" }},
			{"a member with generation", kerr.UnknownMemberID, 3, func(r commit) { r.MemberID, r.Generation = "m", 1 }},
			{"a group that is not added", notAdded, 0, func(r commit) { r.Group = "k" }},
		} {
			if version >= tc.since {
				b.want(tc.what, b.commit(version, tc.change), tc.want)
			}
			if t.Failed() {
				t.Fatalf("in version %d", version)
			}
		}
		if resp := askAs[*kmsg.TxnOffsetCommitResponse](b.c, version, txnCommit(func(r commit) { r.Topics = nil })); len(resp.Topics) != 0 {
			t.Errorf("v%d, no topics: %+v", version, resp)
		}
	}
}

// Offsets of an open transaction are an error for who asks for stable ones, and
// count after the marker.
func TestOffsetFetchRequireStable(t *testing.T) {
	b := newTxnBroker(t)
	b.want("commit", b.commit(5, nil), nil)
	fetch := func(version int16, stable bool) string {
		r := kmsg.NewPtrOffsetFetchRequest()
		r.RequireStable, r.Group = stable, "g"
		r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0, 1}}}
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = "g"
		topic, _ := b.image.Load().Topic("t")
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: topic.ID, Partitions: []int32{0, 1}}}
		r.Groups = []kmsg.OffsetFetchRequestGroup{g}
		resp := askAs[*kmsg.OffsetFetchResponse](b.c, version, r)
		if version < fetchGroups {
			p := resp.Topics[0].Partitions
			return offsetOf(p[0].Offset, p[0].ErrorCode) + " " + offsetOf(p[1].Offset, p[1].ErrorCode)
		}
		p := resp.Groups[0].Topics[0].Partitions
		return offsetOf(p[0].Offset, p[0].ErrorCode) + " " + offsetOf(p[1].Offset, p[1].ErrorCode)
	}
	for version := int16(1); version <= 10; version++ {
		want := "-1 UNSTABLE_OFFSET_COMMIT -1"
		if version < 7 {
			want = "-1 -1"
		}
		if got := fetch(version, true); got != want {
			t.Errorf("v%d, stable: %s, want %s", version, got, want)
		}
		if got := fetch(version, false); got != "-1 -1" {
			t.Errorf("v%d: %s", version, got)
		}
	}
	b.want("marker of an older epoch", b.mark("g", -1, 0, true), kerr.InvalidProducerEpoch)
	b.want("marker", b.mark("g", 0, 7, true), nil)
	b.want("marker of an older coordinator", b.mark("g", 0, 6, false), kerr.TransactionCoordinatorFenced)
	b.want("marker again", b.mark("g", 0, 7, true), nil)
	for version := int16(1); version <= 10; version++ {
		if got := fetch(version, true); got != "5 -1" {
			t.Errorf("v%d after the commit: %s", version, got)
		}
	}
}

func offsetOf(offset int64, code int16) string {
	if code != 0 {
		return "-1 " + kerr.TypedErrorForCode(code).Message
	}
	return map[int64]string{-1: "-1", 5: "5"}[offset]
}

// The transaction coordinator is asked once per transaction and partition, and a
// verification that a marker overtook does not count (KIP-890).
func TestTxnOffsetCommitVerification(t *testing.T) {
	b := newTxnBroker(t)
	for range 3 {
		b.want("commit", b.commit(5, nil), nil)
	}
	if b.txn.asked != 1 {
		t.Errorf("the coordinator was asked %d times", b.txn.asked)
	}
	b.want("abort", b.mark("g", 0, 0, false), nil)
	guard := make(chan storage.VerificationGuard, 1)
	b.groups.StartVerification("g", storage.Verification{ProducerID: 9, BaseSequence: -1}, func(_ int32, g storage.VerificationGuard, err error) {
		if err != nil {
			t.Error(err)
		}
		guard <- g
	})
	late := group.CommitPending{Request: txnCommit(nil), Guard: <-guard}
	b.want("marker", b.mark("g", 0, 0, false), nil)
	got := make(chan int16, 1)
	b.groups.CommitTransactionalOffsets(group.Client{}, late, func(r *kmsg.TxnOffsetCommitResponse) {
		got <- r.Topics[0].Partitions[0].ErrorCode
	})
	if code := <-got; code != kerr.InvalidTxnState.Code {
		t.Errorf("under the guard from before the marker: %v", kerr.ErrorForCode(code))
	}
}
