package group

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestMachine runs the scripts of testdata: events in, records and answers out.
func TestMachine(t *testing.T) {
	datadriven.Walk(t, "testdata/machine", func(t *testing.T, path string) {
		h := newHarness(DefaultConfig())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			h.out.Reset()
			h.run(t, d)
			if h.out.Len() == 0 {
				return "ok\n"
			}
			return h.out.String()
		})
	})
}

func (h *harness) run(t *testing.T, d *datadriven.TestData) {
	group := "g"
	scan(t, d, "g", &group)
	switch d.Cmd {
	case "config":
		h.configure(t, d)
	case "join":
		h.call(arg(t, d, "client", "c"), h.joinRequest(t, d, group))
	case "sync":
		h.call("c", syncRequest(t, d, group))
	case "heartbeat":
		r := kmsg.NewPtrHeartbeatRequest()
		r.Version, r.Group, r.MemberID, r.Generation = 4, group, arg(t, d, "m", ""), int32(num(t, d, "gen", 0))
		r.InstanceID = optional(t, d, "instance")
		h.call("c", r)
	case "leave":
		h.call("c", leaveRequest(t, d, group))
	case "commit":
		h.call("c", commitRequest(t, d, group))
	case "fetch":
		h.call("c", FetchOffsets{Group: fetchRequest(t, d, group), RequireStable: d.HasArg("stable")})
	case "import":
		h.call("c", ImportOffsets{importOf(t, d, group)})
	case "export":
		for _, e := range h.m.Export() {
			h.printf("%s type=%q gen=%d emptySince=%d pending=%d\n", e.Group, e.ProtocolType, e.Generation, e.EmptySinceMs, e.Pending)
			for _, r := range e.Offsets {
				h.printf("  %s\n", describeRecord(r))
			}
		}
	case "txn-commit":
		h.call("c", txnCommitRequest(t, d, group))
	case "marker":
		h.mark(int64(num(t, d, "pid", 1)), !d.HasArg("abort"))
	case "offset-delete":
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group = group
		for _, p := range partitions(t, d) {
			rt := kmsg.NewOffsetDeleteRequestTopic()
			rt.Topic = p.topic
			rt.Partitions = append(rt.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p.partition})
			r.Topics = append(r.Topics, rt)
		}
		h.call("c", r)
	case "describe":
		h.call("c", DescribeGroup{Group: group, Version: int16(num(t, d, "v", 6))})
	case "list":
		h.call("c", ListGroups{States: NewFilter(words(t, d, "states")), Types: NewFilter(words(t, d, "types"))})
	case "delete":
		h.call("c", DeleteGroup{Group: group})
	case "topics-deleted":
		var deleted []DeletedTopic
		for _, name := range words(t, d, "topics") {
			deleted = append(deleted, DeletedTopic{Name: name, ID: [16]byte{15: byte(num(t, d, "id", 0))}})
		}
		h.event(Event{Request: TopicsDeleted{Topics: deleted}})
		h.tick(0)
	case "tick":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		h.tick(by)
	case "reload":
		h.reload()
	case "timers":
		h.printTimers()
	case "waiting":
		for _, c := range sortedCalls(h.calls) {
			h.printf("call %d\n", c)
		}
	default:
		h.runConsumer(t, d, group)
	}
}

func sortedCalls(m map[uint64]bool) (ids []uint64) {
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (h *harness) printTimers() {
	var lines []string
	for key, at := range h.timers {
		kind, group, member := "expiry", "", ""
		if key != timerExpiry {
			kind, group, member = splitTimerKey(key)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%v %s %s %s", at.Sub(time.UnixMilli(0)), kind, group, member)))
	}
	sort.Strings(lines)
	h.printf("%s\n", strings.Join(lines, "\n"))
}

func (h *harness) configure(t *testing.T, d *datadriven.TestData) {
	for _, a := range d.CmdArgs {
		if h.configureConsumer(t, a) {
			continue
		}
		n, err := strconv.Atoi(a.Vals[0])
		if err != nil {
			t.Fatal(err)
		}
		switch a.Key {
		case "delay":
			h.cfg.InitialRebalanceDelayMs = int32(n)
		case "max-size":
			h.cfg.MaxSize = n
		case "max-batch":
			h.cfg.MaxBatchBytes = n
		case "metadata":
			h.cfg.OffsetMetadataMaxBytes = n
		default:
			t.Fatalf("unknown setting %s", a.Key)
		}
	}
	h.reload()
}

func (h *harness) joinRequest(t *testing.T, d *datadriven.TestData, group string) *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group = int16(num(t, d, "v", 9)), group
	r.MemberID = arg(t, d, "m", "")
	r.InstanceID = optional(t, d, "instance")
	r.SessionTimeoutMillis = int32(num(t, d, "session", 10_000))
	r.RebalanceTimeoutMillis = int32(num(t, d, "rebalance", 30_000))
	r.ProtocolType = arg(t, d, "type", "consumer")
	for _, p := range strings.Split(arg(t, d, "protocols", "range:t"), ",") {
		if p == "" {
			continue
		}
		name, topics, _ := strings.Cut(p, ":")
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: subscription(topics, ownedArg(t, d)...)})
	}
	return r
}

// subscription is a consumer's metadata for topics joined by "+", and for what it
// has; "!" is one that is no subscription.
func subscription(topics string, owned ...kmsg.ConsumerMemberMetadataOwnedPartition) []byte {
	if topics == "!" {
		return []byte("!")
	}
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = strings.Split(topics, "+")
	if len(owned) > 0 {
		m.Version, m.OwnedPartitions = 1, owned
	}
	return m.AppendTo(nil)
}

func syncRequest(t *testing.T, d *datadriven.TestData, group string) *kmsg.SyncGroupRequest {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.Group = int16(num(t, d, "v", 5)), group
	r.MemberID, r.Generation = arg(t, d, "m", ""), int32(num(t, d, "gen", 1))
	r.InstanceID = optional(t, d, "instance")
	protocolType, protocol := arg(t, d, "type", "consumer"), arg(t, d, "protocol", "range")
	r.ProtocolType, r.Protocol = &protocolType, &protocol
	if d.HasArg("no-protocol") {
		r.ProtocolType = nil
	}
	for _, a := range words(t, d, "assign") {
		m, what, _ := strings.Cut(a, ":")
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m, MemberAssignment: []byte(what)})
	}
	return r
}

func leaveRequest(t *testing.T, d *datadriven.TestData, group string) *kmsg.LeaveGroupRequest {
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Version, r.Group = int16(num(t, d, "v", 5)), group
	members := words(t, d, "m")
	if r.Version < batchLeaveVersion {
		r.MemberID = members[0]
		return r
	}
	for _, w := range members {
		m := kmsg.NewLeaveGroupRequestMember()
		id, instance, static := strings.Cut(w, "/")
		m.MemberID = id
		if static {
			m.InstanceID = &instance
		}
		r.Members = append(r.Members, m)
	}
	return r
}

// spec is one partition of an argument like p=(t-0:5:meta,t-1:7).
type spec struct {
	topic     string
	partition int32
	rest      []string
}

func partitions(t *testing.T, d *datadriven.TestData) (out []spec) {
	for _, w := range words(t, d, "p") {
		parts := strings.Split(w, ":")
		i := strings.LastIndex(parts[0], "-")
		n, err := strconv.Atoi(parts[0][i+1:])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, spec{topic: parts[0][:i], partition: int32(n), rest: parts[1:]})
	}
	return out
}

func importOf(t *testing.T, d *datadriven.TestData, group string) Exported {
	e := Exported{Group: group, ProtocolType: arg(t, d, "type", ""), Generation: int32(num(t, d, "gen", 0)), EmptySinceMs: int64(num(t, d, "empty-since", 0))}
	for _, p := range partitions(t, d) {
		v := kmsg.NewOffsetCommitValue()
		v.Version, v.CommitTimestamp, v.ExpireTimestamp = 3, int64(num(t, d, "at", 0)), -1
		v.Offset, _ = strconv.ParseInt(p.rest[0], 10, 64)
		if at := num(t, d, "expires", 0); at > 0 {
			v.Version, v.ExpireTimestamp = offsetValueVersionExpires, int64(at)
		}
		e.Offsets = append(e.Offsets, Record{IsOffset: true, Group: group, Topic: p.topic, Partition: p.partition, Offset: &v})
	}
	return e
}

func txnCommitRequest(t *testing.T, d *datadriven.TestData, group string) CommitPending {
	r := kmsg.NewPtrTxnOffsetCommitRequest()
	r.Version, r.Group, r.TransactionalID = int16(num(t, d, "v", 5)), group, "tx"
	r.ProducerID, r.ProducerEpoch = int64(num(t, d, "pid", 1)), int16(num(t, d, "epoch", 0))
	r.MemberID, r.Generation = arg(t, d, "m", ""), int32(num(t, d, "gen", -1))
	r.InstanceID = optional(t, d, "instance")
	for _, p := range partitions(t, d) {
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Partition = p.partition
		rp.Offset, _ = strconv.ParseInt(p.rest[0], 10, 64)
		if len(p.rest) > 1 {
			rp.Metadata = &p.rest[1]
		}
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = p.topic, [16]byte{15: byte(num(t, d, "id", 0))}
		rt.Partitions = append(rt.Partitions, rp)
		r.Topics = append(r.Topics, rt)
	}
	return CommitPending{Request: r}
}

func commitRequest(t *testing.T, d *datadriven.TestData, group string) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group = int16(num(t, d, "v", 9)), group
	r.MemberID, r.Generation = arg(t, d, "m", ""), int32(num(t, d, "gen", -1))
	r.InstanceID = optional(t, d, "instance")
	r.RetentionTimeMillis = int64(num(t, d, "retention", -1))
	id := byte(num(t, d, "id", 0))
	for _, p := range partitions(t, d) {
		offset, err := strconv.Atoi(p.rest[0])
		if err != nil {
			t.Fatal(err)
		}
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset = p.partition, int64(offset)
		rp.Timestamp = int64(num(t, d, "timestamp", -1))
		if len(p.rest) > 1 {
			rp.Metadata = &p.rest[1]
		}
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = p.topic, [16]byte{15: id}
		rt.Partitions = append(rt.Partitions, rp)
		r.Topics = append(r.Topics, rt)
	}
	return r
}

func fetchRequest(t *testing.T, d *datadriven.TestData, group string) *kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	g.MemberID, g.MemberEpoch = optional(t, d, "m"), int32(num(t, d, "epoch", -1))
	id := byte(num(t, d, "id", 0))
	for _, p := range partitions(t, d) {
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{
			Topic: p.topic, TopicID: [16]byte{15: id}, Partitions: []int32{p.partition},
		})
	}
	return &g
}

func scan(t *testing.T, d *datadriven.TestData, key string, into *string) {
	if d.HasArg(key) {
		d.ScanArgs(t, key, into)
		*into = strings.Trim(*into, `"`)
	}
}

func arg(t *testing.T, d *datadriven.TestData, key, or string) string {
	scan(t, d, key, &or)
	return or
}

func optional(t *testing.T, d *datadriven.TestData, key string) *string {
	if !d.HasArg(key) {
		return nil
	}
	v := arg(t, d, key, "")
	return &v
}

// num reads a number, or a duration in milliseconds.
func num(t *testing.T, d *datadriven.TestData, key string, or int) int {
	if !d.HasArg(key) {
		return or
	}
	v := arg(t, d, key, "")
	if n, err := strconv.Atoi(v); err == nil {
		return n
	}
	by, err := time.ParseDuration(v)
	if err != nil {
		t.Fatal(err)
	}
	return int(by.Milliseconds())
}

func words(t *testing.T, d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}
