package api

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/storage"
)

// coordinatedBroker is a dataBroker with both coordinators on its own partitions.
type coordinatedBroker struct {
	*dataBroker
	groups *group.Coordinator
	txns   *txn.Coordinator
}

func newCoordinatedBroker(t *testing.T) *coordinatedBroker {
	t.Helper()
	b := &coordinatedBroker{dataBroker: newDataBroker(t)}
	log := slog.New(slog.DiscardHandler)
	partitions := func(topic string) func() int32 {
		return func() int32 {
			made, ok := b.image.Load().Topic(topic)
			if !ok {
				return 0
			}
			return int32(len(made.Partitions))
		}
	}
	open := func(topic string) func(int32) (runtime.Log, error) {
		return func(p int32) (runtime.Log, error) { return b.m.CoordinatorLog(topic, p) }
	}
	b.groups = group.NewCoordinator(group.Options{
		Config: group.DefaultConfig(), Clock: b.clk, Log: log, NewID: func() string { return "id" },
		Open: open(group.Topic), Partitions: partitions(group.Topic),
	})
	b.txns = txn.NewCoordinator(txn.Options{
		Config: txn.DefaultConfig(), Clock: b.clk, Log: log, Open: open(txn.Topic), Partitions: partitions(txn.Topic),
		PartitionFor: group.PartitionFor, Level: func() int16 { return 2 },
		ProducerIDs: b.h.ProducerIDs.Next, Markers: b, Work: b.pool.Go,
	})
	t.Cleanup(b.groups.Close)
	t.Cleanup(b.txns.Close)
	b.h.Groups, b.h.Transactions, b.h.Controller = b.groups, b.txns, b
	b.h.InternalTopic = func(name string) InternalTopic {
		n := int32(50)
		if name == txn.Topic {
			n = 2
		}
		return InternalTopic{Partitions: n, ReplicationFactor: 1}
	}
	made := make(chan error, 1)
	b.h.ensureTopic(group.Topic, func(err error) { made <- err })
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	return b
}

// WriteMarker implements txn.Markers.
func (b *coordinatedBroker) WriteMarker(tp storage.TopicPartition, m replica.Marker, done func(error)) {
	b.h.writeMarker(tp, m, done)
}

// Handle implements Controller: it makes topics.
func (b *coordinatedBroker) Handle(req kmsg.Request, done func(kmsg.Response, error)) {
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	for _, t := range req.(*kmsg.CreateTopicsRequest).Topics {
		b.make(t.Topic, int(t.NumPartitions), nil)
		for p := range t.NumPartitions {
			switch t.Topic {
			case group.Topic:
				b.groups.OnElected(p, 0)
			case txn.Topic:
				b.txns.OnElected(p, 0)
			}
		}
		resp.Topics = append(resp.Topics, kmsg.CreateTopicsResponseTopic{Topic: t.Topic})
	}
	go done(resp, nil)
}

// settle waits until no transaction is between Prepare and Complete.
func (b *coordinatedBroker) settle() {
	b.t.Helper()
	r := kmsg.NewPtrListTransactionsRequest()
	r.StateFilters = []string{"PrepareCommit", "PrepareAbort"}
	until(b.t, "the markers", func() bool {
		left := make(chan int, 1)
		b.txns.List(r, func(resp *kmsg.ListTransactionsResponse) {
			left <- len(resp.TransactionStates) + int(resp.ErrorCode)
		})
		return <-left == 0
	})
}

// TestTransactionsAnswerAsKafka plays transcripts: requests, and what Apache Kafka
// 4.4 answered to them, with producer ids by the order in which they appear.
func TestTransactionsAnswerAsKafka(t *testing.T) {
	files, err := filepath.Glob("testdata/transactions/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b := newCoordinatedBroker(t)
			s := &txnScript{b: b, c: b.dial("client"), masks: map[int64]string{-1: "-1"}, ids: map[string]int64{}}
			for i, line := range strings.Split(string(text), "\n") {
				command, want, ok := strings.Cut(line, "=>")
				if !ok {
					continue
				}
				if got := s.run(strings.Fields(command)); got != strings.TrimSpace(want) {
					t.Errorf("%s:%d: %s=> %s, Kafka: %s", file, i+1, command, got, strings.TrimSpace(want))
				}
				b.settle()
				b.clk.Advance(time.Millisecond)
			}
		})
	}
}

// txnScript runs the commands of a transcript.
type txnScript struct {
	b *coordinatedBroker
	c *testClient
	// masks has each producer id's name, in the order of their appearance, ids the
	// way back.
	masks map[int64]string
	ids   map[string]int64
}

func (s *txnScript) mask(id int64) string {
	if _, ok := s.masks[id]; !ok {
		name := fmt.Sprintf("P%d", len(s.masks))
		s.masks[id], s.ids[name] = name, id
	}
	return s.masks[id]
}

// scriptArgs are a command's name=value pairs.
type scriptArgs map[string]string

func (s *txnScript) number(a scriptArgs, name string, missing int64) int64 {
	v, ok := a[name]
	if !ok {
		return missing
	}
	if id, ok := s.ids[v]; ok {
		return id
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		s.b.t.Fatal(err)
	}
	return n
}

// partitions parses p=t-0,u-1.
func (a scriptArgs) partitions() (out []storage.TopicPartition) {
	for _, name := range strings.FieldsFunc(a["p"], func(r rune) bool { return r == ',' }) {
		at := strings.LastIndexByte(name, '-')
		n, _ := strconv.Atoi(name[at+1:])
		out = append(out, storage.TopicPartition{Topic: name[:at], Partition: int32(n)})
	}
	return out
}

func (s *txnScript) run(fields []string) string {
	a := scriptArgs{}
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		a[name] = value
	}
	version := int16(s.number(a, "v", 0))
	p := txn.Producer{TransactionalID: a["id"], ID: s.number(a, "pid", -1), Epoch: int16(s.number(a, "epoch", 0))}
	switch fields[0] {
	case "sleep":
		s.b.clk.Advance(time.Duration(s.number(a, "ms", 0)) * time.Millisecond)
		return ""
	case "create":
		s.b.make(a["t"], int(s.number(a, "n", 1)), nil)
		return "ok"
	case "find":
		return s.find(version, a)
	case "init":
		return s.init(version, a)
	case "add":
		return s.add(version, p, a.partitions())
	case "addb":
		_, verify := a["verify"]
		return s.addBatched(version, p, a.partitions(), verify)
	case "addo":
		r := kmsg.NewPtrAddOffsetsToTxnRequest()
		r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Group = p.TransactionalID, p.ID, p.Epoch, a["g"]
		return codeName(askAs[*kmsg.AddOffsetsToTxnResponse](s.c, version, r).ErrorCode)
	case "commit", "abort":
		resp := s.end(version, p, fields[0] == "commit")
		return fmt.Sprintf("%s %s/%d", codeName(resp.ErrorCode), s.mask(resp.ProducerID), resp.ProducerEpoch)
	case "exhaust":
		return s.exhaust(p)
	case "describe":
		return s.describe(p.TransactionalID)
	case "list":
		return s.list(version, a)
	case "markers":
		return s.markers(version, p, a)
	}
	s.b.t.Fatalf("command %s", fields[0])
	return ""
}

// exhaust aborts nothing until the epochs are used up. It leaves out the network,
// which would take most of the time.
func (s *txnScript) exhaust(p txn.Producer) string {
	r := kmsg.NewPtrEndTxnRequest()
	r.SetVersion(5)
	r.TransactionalID, r.ProducerID, r.ProducerEpoch = p.TransactionalID, p.ID, p.Epoch
	got := make(chan txn.Produced, 1)
	for r.ProducerEpoch < 32766 {
		s.b.txns.EndTxn(r, func(p txn.Produced) { got <- p })
		switch p := <-got; p.Err {
		case nil:
			r.ProducerEpoch = p.Epoch
		case kerr.ConcurrentTransactions:
			s.b.pool.WaitIdle()
		default:
			return p.Err.Message
		}
	}
	return fmt.Sprintf("epoch %d", r.ProducerEpoch)
}

func codeName(code int16) string {
	if code == 0 {
		return "ok"
	}
	return kerr.TypedErrorForCode(code).Message
}

func (s *txnScript) find(version int16, a scriptArgs) string {
	r := kmsg.NewPtrFindCoordinatorRequest()
	r.CoordinatorType, r.CoordinatorKey, r.CoordinatorKeys = 1, a["id"], []string{a["id"]}
	resp := askAs[*kmsg.FindCoordinatorResponse](s.c, version, r)
	code, node, msg := resp.ErrorCode, resp.NodeID, resp.ErrorMessage
	if version >= findBatchVersion {
		f := resp.Coordinators[0]
		code, node, msg = f.ErrorCode, f.NodeID, f.ErrorMessage
	}
	text := "null"
	if msg != nil {
		text = strconv.Quote(*msg)
	}
	return fmt.Sprintf("%s node %d msg %s", codeName(code), node, text)
}

func (s *txnScript) init(version int16, a scriptArgs) string {
	r := kmsg.NewPtrInitProducerIDRequest()
	r.TransactionalID = kmsg.StringPtr(a["id"])
	r.TransactionTimeoutMillis = int32(s.number(a, "timeout", 60_000))
	r.ProducerID, r.ProducerEpoch = s.number(a, "pid", -1), int16(s.number(a, "epoch", -1))
	resp := askAs[*kmsg.InitProducerIDResponse](s.c, version, r)
	return fmt.Sprintf("%s %s/%d", codeName(resp.ErrorCode), s.mask(resp.ProducerID), resp.ProducerEpoch)
}

func (s *txnScript) add(version int16, p txn.Producer, partitions []storage.TopicPartition) string {
	r := kmsg.NewPtrAddPartitionsToTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch = p.TransactionalID, p.ID, p.Epoch
	for _, tp := range partitions {
		r.Topics = append(r.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: tp.Topic, Partitions: []int32{tp.Partition}})
	}
	var out []string
	for _, t := range askAs[*kmsg.AddPartitionsToTxnResponse](s.c, version, r).Topics {
		for _, p := range t.Partitions {
			out = append(out, fmt.Sprintf("%s-%d:%s", t.Topic, p.Partition, codeName(p.ErrorCode)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (s *txnScript) addBatched(version int16, p txn.Producer, partitions []storage.TopicPartition, verify bool) string {
	r := kmsg.NewPtrAddPartitionsToTxnRequest()
	for _, id := range strings.Split(p.TransactionalID, "+") {
		t := kmsg.AddPartitionsToTxnRequestTransaction{TransactionalID: id, ProducerID: p.ID, ProducerEpoch: p.Epoch, VerifyOnly: verify}
		for _, tp := range partitions {
			t.Topics = append(t.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: tp.Topic, Partitions: []int32{tp.Partition}})
		}
		r.Transactions = append(r.Transactions, t)
	}
	resp := askAs[*kmsg.AddPartitionsToTxnResponse](s.c, version, r)
	out := []string{codeName(resp.ErrorCode)}
	for _, x := range resp.Transactions {
		for _, t := range x.Topics {
			for _, p := range t.Partitions {
				out = append(out, fmt.Sprintf("%s %s-%d:%s", x.TransactionalID, t.Topic, p.Partition, codeName(p.ErrorCode)))
			}
		}
	}
	slices.Sort(out[1:])
	return strings.Join(out, " ")
}

func (s *txnScript) end(version int16, p txn.Producer, commit bool) *kmsg.EndTxnResponse {
	r := kmsg.NewPtrEndTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = p.TransactionalID, p.ID, p.Epoch, commit
	return askAs[*kmsg.EndTxnResponse](s.c, version, r)
}

func (s *txnScript) describe(id string) string {
	r := kmsg.NewPtrDescribeTransactionsRequest()
	r.TransactionalIDs = []string{id}
	x := askAs[*kmsg.DescribeTransactionsResponse](s.c, 0, r).TransactionStates[0]
	var partitions []string
	for _, t := range x.Topics {
		for _, p := range t.Partitions {
			partitions = append(partitions, fmt.Sprintf("%s-%d", t.Topic, p))
		}
	}
	slices.Sort(partitions)
	started := "0"
	switch {
	case x.StartTimestamp > 0:
		started = "some time"
	case x.StartTimestamp < 0:
		started = "never"
	}
	return fmt.Sprint(codeName(x.ErrorCode), " ", x.State, " ", s.mask(x.ProducerID), "/", x.ProducerEpoch,
		" timeout ", x.TimeoutMillis, " started ", started, " ", partitions)
}

func (s *txnScript) list(version int16, a scriptArgs) string {
	r := kmsg.NewPtrListTransactionsRequest()
	r.DurationFilterMillis = s.number(a, "older", -1)
	if v := a["states"]; v != "" {
		r.StateFilters = strings.Split(v, ",")
	}
	for _, name := range strings.FieldsFunc(a["pids"], func(r rune) bool { return r == ',' }) {
		r.ProducerIDFilters = append(r.ProducerIDFilters, s.ids[name])
	}
	if v, ok := a["pattern"]; ok {
		v = strings.ReplaceAll(v, "PREFIX", "")
		r.TransactionalIDPattern = &v
	}
	resp := askAs[*kmsg.ListTransactionsResponse](s.c, version, r)
	var out []string
	for _, x := range resp.TransactionStates {
		out = append(out, fmt.Sprintf("%s:%s:%s", x.TransactionalID, s.mask(x.ProducerID), x.TransactionState))
	}
	return fmt.Sprint(codeName(resp.ErrorCode), " unknown ", resp.UnknownStateFilters, " ", out)
}

func (s *txnScript) markers(version int16, p txn.Producer, a scriptArgs) string {
	r := kmsg.NewPtrWriteTxnMarkersRequest()
	m := kmsg.WriteTxnMarkersRequestMarker{
		ProducerID: p.ID, ProducerEpoch: p.Epoch, CoordinatorEpoch: int32(s.number(a, "ce", 0)),
		TransactionVersion: int8(s.number(a, "tv", 0)), Committed: a["commit"] != "",
	}
	for _, tp := range a.partitions() {
		m.Topics = append(m.Topics, kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: tp.Topic, Partitions: []int32{tp.Partition}})
	}
	if a["none"] == "" {
		r.Markers = append(r.Markers, m)
	}
	resp := askAs[*kmsg.WriteTxnMarkersResponse](s.c, version, r)
	var out []string
	for _, m := range resp.Markers {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				out = append(out, fmt.Sprintf("%s %s-%d:%s", s.mask(m.ProducerID), t.Topic, p.Partition, codeName(p.ErrorCode)))
			}
		}
	}
	slices.Sort(out)
	return strings.TrimSpace(fmt.Sprint(len(resp.Markers), " ", strings.Join(out, " ")))
}
