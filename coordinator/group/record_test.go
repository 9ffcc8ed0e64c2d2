package group

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The values are those of Java's String.hashCode, as Kafka uses it.
func TestPartitionFor(t *testing.T) {
	for _, tc := range []struct {
		group string
		want  int32
	}{
		{"", 0},
		{"a", 97 % 50},
		{"orders", 1008770331 % 50},  // negative in Java: its absolute value
		{"polygenelubricants", 0},    // hashes to MIN_VALUE, which has no absolute value
		{"é", 233 % 50},              // one UTF-16 unit
		{"\U0001F600", 1772899 % 50}, // a surrogate pair
		{"console-consumer-1", 35782224 % 50},
	} {
		if got := PartitionFor(tc.group, 50); got != tc.want {
			t.Errorf("PartitionFor(%q) = %d, want %d", tc.group, got, tc.want)
		}
	}
}

func TestDecodeOlderVersions(t *testing.T) {
	for version := range int16(offsetValueMaxVersion + 1) {
		k := kmsg.OffsetCommitKey{Version: version % 2, Group: "g", Topic: "t", Partition: 3}
		v := kmsg.OffsetCommitValue{Version: version, Offset: 5, LeaderEpoch: 2, Metadata: "m", CommitTimestamp: 7, ExpireTimestamp: 9}
		r, ok, err := Codec{}.Decode(k.AppendTo(nil), v.AppendTo(nil))
		if err != nil || !ok {
			t.Fatalf("offset v%d: ok %v, %v", version, ok, err)
		}
		wantEpoch, wantExpire := int32(-1), int64(-1)
		if version >= 3 {
			wantEpoch = 2
		}
		if version == 1 {
			wantExpire = 9
		}
		o := r.Offset
		if r.Group != "g" || r.Topic != "t" || r.Partition != 3 || o.Offset != 5 || o.LeaderEpoch != wantEpoch || o.Metadata != "m" || o.CommitTimestamp != 7 || o.ExpireTimestamp != wantExpire {
			t.Errorf("offset v%d: got %+v %+v", version, r, *o)
		}
	}
	protocol := "range"
	for version := range int16(groupValueMaxVersion + 1) {
		k := kmsg.GroupMetadataKey{Version: keyGroupMetadata, Group: "g"}
		v := kmsg.GroupMetadataValue{Version: version, ProtocolType: "consumer", Generation: 4, Protocol: &protocol, Leader: &protocol, CurrentStateTimestamp: 8}
		v.Members = []kmsg.GroupMetadataValueMember{{MemberID: "m", RebalanceTimeoutMillis: 20, SessionTimeoutMillis: 10, Subscription: []byte("s"), Assignment: []byte("a")}}
		r, ok, err := Codec{}.Decode(k.AppendTo(nil), v.AppendTo(nil))
		if err != nil || !ok {
			t.Fatalf("group v%d: ok %v, %v", version, ok, err)
		}
		wantRebalance, wantTimestamp := int32(10), int64(-1)
		if version >= 1 {
			wantRebalance = 20
		}
		if version >= 2 {
			wantTimestamp = 8
		}
		m := r.Metadata.Members[0]
		if m.RebalanceTimeoutMillis != wantRebalance || r.Metadata.CurrentStateTimestamp != wantTimestamp || string(m.Assignment) != "a" {
			t.Errorf("group v%d: got %+v", version, *r.Metadata)
		}
	}
}

func TestDecodeLeavesOtherKinds(t *testing.T) {
	for kind := byte(3); kind < 30; kind++ {
		if recordKind(kind).known() {
			continue
		}
		if _, ok, err := (Codec{}).Decode([]byte{0, kind, 1, 2}, nil); ok || err != nil {
			t.Errorf("kind %d: ok %v, %v", kind, ok, err)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	offsetKey, _ := Codec{}.Encode(Record{IsOffset: true, Group: "g", Topic: "t"})
	groupKey, _ := Codec{}.Encode(Record{Group: "g"})
	for _, tc := range []struct {
		name       string
		key, value []byte
	}{
		{"no key", nil, nil},
		{"cut offset key", offsetKey[:len(offsetKey)-1], nil},
		{"cut group key", groupKey[:len(groupKey)-1], nil},
		{"offset without version", offsetKey, []byte{0}},
		{"offset of the future", offsetKey, []byte{0, 5, 0, 0}},
		{"group of the future", groupKey, []byte{0, 9, 0, 0}},
		{"negative version", groupKey, []byte{255, 255}},
		{"cut offset", offsetKey, []byte{0, 3, 0, 0}},
		{"many members", groupKey, []byte{0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 127, 255, 255, 255}},
	} {
		if _, _, err := (Codec{}).Decode(tc.key, tc.value); err == nil {
			t.Errorf("%s: no error", tc.name)
		}
	}
}

func TestEncodedBytesIsEnough(t *testing.T) {
	h := newHarness(DefaultConfig())
	h.quiet = true
	protocol, instance := "range", "instance"
	g := newClassic("group")
	g.protocolType, g.protocol = "consumer", &protocol
	for range 3 {
		g.members = append(g.members, &member{
			id: "member", instanceID: &instance, clientID: "client", clientHost: "/127.0.0.1",
			protocols: []kmsg.JoinGroupRequestProtocol{{Name: protocol, Metadata: subscription("t")}}, assignment: make([]byte, 100),
		})
	}
	g.leader = "member"
	offset := kmsg.OffsetCommitValue{Version: 4, Metadata: "metadata", TopicID: [16]byte{1}}
	for _, r := range []Record{g.metadataRecord(), {Group: "g"}, {IsOffset: true, Group: "g", Topic: "t", Offset: &offset}, offsetTombstone("g", "t", 1)} {
		key, value := Codec{}.Encode(r)
		if n := encodedBytes(r); n < len(key)+len(value) {
			t.Errorf("%+v takes %d bytes, guessed %d", r, len(key)+len(value), n)
		}
	}
}

// Strings that a request may have and a record may not are refused: a log with
// them could not be loaded again.
func TestLongStrings(t *testing.T) {
	long := strings.Repeat("x", 1<<15)
	join := func(change func(*kmsg.JoinGroupRequest)) *kmsg.JoinGroupRequest {
		r := kmsg.NewPtrJoinGroupRequest()
		r.Version, r.Group, r.ProtocolType, r.SessionTimeoutMillis = 3, "g", "consumer", 10_000
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
		change(r)
		return r
	}
	commit := func(group, metadata string) *kmsg.OffsetCommitRequest {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group = group
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Metadata = &metadata
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		return r
	}
	for _, tc := range []struct {
		name, client string
		req          any
		want         string
	}{
		{"client", long[:1<<15-1], join(func(r *kmsg.JoinGroupRequest) {}), "join INVALID_REQUEST"},
		{"group", "c", join(func(r *kmsg.JoinGroupRequest) { r.Group = long }), "join INVALID_GROUP_ID"},
		{"instance", "c", join(func(r *kmsg.JoinGroupRequest) { r.InstanceID = &long }), "join INVALID_REQUEST"},
		{"protocol", "c", join(func(r *kmsg.JoinGroupRequest) { r.Protocols[0].Name = long }), "join INVALID_REQUEST"},
		{"protocol type", "c", join(func(r *kmsg.JoinGroupRequest) { r.ProtocolType = long }), "join INVALID_REQUEST"},
		{"commit's group", "c", commit(long, ""), "commit t-0 INVALID_GROUP_ID"},
		{"commit's metadata", "c", commit("g", long), "commit t-0 OFFSET_METADATA_TOO_LARGE"},
		{"longest client", long[:maxString], join(func(r *kmsg.JoinGroupRequest) {}), "join gen=1"},
	} {
		cfg := DefaultConfig()
		cfg.OffsetMetadataMaxBytes = 1 << 20
		h := newHarness(cfg)
		h.call(tc.client, tc.req)
		if got := h.out.String(); !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %.200s, want %s", tc.name, got, tc.want)
		}
		h.reload()
	}
}

// Many protocols cost what it takes to read them.
func TestManyProtocols(t *testing.T) {
	h := newHarness(DefaultConfig())
	h.quiet = true
	for i := range 3 {
		r := kmsg.NewPtrJoinGroupRequest()
		r.Version, r.Group, r.ProtocolType, r.SessionTimeoutMillis = 3, "g", "consumer", 10_000
		for j := range 20_000 {
			r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: fmt.Sprint(i, j)})
		}
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: "range"}, kmsg.JoinGroupRequestProtocol{Name: "range"})
		h.call("c", r)
	}
	if got := h.m.soft.groups["g"].selectProtocol(); got != "range" {
		t.Errorf("selected %q", got)
	}
}

// Members of a consumer group that still use the classic protocol are held against
// a newcomer's protocols in the time that it takes to read them: with as many as a
// request can have, comparing each with each takes minutes.
func TestManyProtocolsInAConsumerGroup(t *testing.T) {
	const many = 80_000
	named := func(prefix string) (list []kmsg.JoinGroupRequestProtocol) {
		for i := range many {
			list = append(list, kmsg.JoinGroupRequestProtocol{Name: fmt.Sprint(prefix, i)})
		}
		return append(list, kmsg.JoinGroupRequestProtocol{Name: "range"}, kmsg.JoinGroupRequestProtocol{Name: "range"})
	}
	g := newConsumerGroup()
	g.members["new"] = newConsumerMember("new")
	c := &change{g: g}
	r := &kmsg.JoinGroupRequest{ProtocolType: protocolConsumer, Protocols: named("c")}
	if !c.supportsClassic(r) {
		t.Error("a group without classic members refuses one")
	}
	for _, id := range []string{"a", "b"} {
		g.members[id] = newConsumerMember(id)
		g.members[id].classic = &classicMetadata{protocols: named(id)}
	}
	began := time.Now()
	if !c.supportsClassic(r) {
		t.Error("range is not found")
	}
	r.Protocols = r.Protocols[:many]
	if c.supportsClassic(r) {
		t.Error("what no other member knows is supported")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// What a newcomer knows is held against what all know without looking at the
// members again.
func TestProtocolsAreCounted(t *testing.T) {
	named := func(names ...string) (list []kmsg.JoinGroupRequestProtocol) {
		for _, n := range names {
			list = append(list, kmsg.JoinGroupRequestProtocol{Name: n})
		}
		return list
	}
	g := newClassic("g")
	g.state = Stable
	lists := [][]kmsg.JoinGroupRequestProtocol{named("a", "b", "a"), named("b", "a", "c"), named("c", "b", "b"), named("a", "b")}
	check := func(when string) {
		t.Helper()
		for _, name := range []string{"a", "b", "c", "d"} {
			want := true
			for _, m := range g.members {
				_, knows := m.metadata(name)
				want = want && knows
			}
			if g.common.has(name) != want {
				t.Errorf("%s: all know %s: %v", when, name, !want)
			}
		}
	}
	for i, l := range lists {
		g.add(&member{id: fmt.Sprint(i), protocols: l}, protocolConsumer)
		check(fmt.Sprint("with ", i))
	}
	h := newHarness(DefaultConfig())
	s := &step{Machine: h.m}
	s.updateMember(Event{}, &kmsg.JoinGroupRequest{Protocols: lists[1]}, g, g.members[2])
	check("updated")
	if n := testing.AllocsPerRun(10, func() { g.supports(protocolConsumer, lists[3]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	for i := range lists {
		g.drop(fmt.Sprint(i))
		check(fmt.Sprint("without ", i))
	}
	if len(g.common.known) > 0 || g.common.members != 0 {
		t.Errorf("%v is left", g.common)
	}
}

func TestPendingMembersAreBounded(t *testing.T) {
	h := newHarness(DefaultConfig())
	h.quiet = true
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.ProtocolType, r.SessionTimeoutMillis = 4, "g", "consumer", 10_000
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	for range maxPendingMembers + 10 {
		h.call("c", r)
	}
	if n := len(h.m.soft.groups["g"].pendingJoin); n != maxPendingMembers {
		t.Errorf("%d ids are pending", n)
	}
}

// TestMemberBytesAreBounded fills a partition with members in groups of their own: one
// more has to wait, one that comes again does not, and there is room when one has left.
func TestMemberBytesAreBounded(t *testing.T) {
	const metadataBytes, members = 1000, 5
	cfg := DefaultConfig()
	cfg.MaxMemberBytes = members*(metadataBytes+protocolBytes+len("range")) + 100
	h := newHarness(cfg)
	h.quiet = true
	var code int16
	h.onAnswer = func(_ uint64, resp any) {
		if r, ok := resp.(*kmsg.JoinGroupResponse); ok {
			code = r.ErrorCode
		}
	}
	join := func(group, memberID string, sizeBytes int) *kerr.Error {
		r := kmsg.NewPtrJoinGroupRequest()
		r.Version, r.Group, r.MemberID, r.ProtocolType, r.SessionTimeoutMillis = 3, group, memberID, "consumer", 10_000
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, sizeBytes)}}
		h.call("c", r)
		clear(r.Protocols[0].Metadata) // the request's bytes are not the member's
		return kerr.TypedErrorForCode(code)
	}
	for i := range members {
		if err := join(fmt.Sprint(i), "", metadataBytes); err != nil {
			t.Fatalf("member %d: %v", i, err)
		}
	}
	want := func(what string, got, want *kerr.Error) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	want("one too many", join("more", "", metadataBytes), kerr.CoordinatorLoadInProgress)
	if h.m.soft.groups["more"] != nil || h.m.groups["more"] != nil {
		t.Error("a group that was refused is there")
	}
	want("the same again", join("0", "c-1", metadataBytes), nil)
	want("the same with more", join("0", "c-1", metadataBytes+101), kerr.CoordinatorLoadInProgress)
	want("another within what is left", join("small", "", 10), nil)
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = "1", "c-2"
	h.call("c", leave)
	want("after one has left", join("more", "", metadataBytes), nil)
}

// FuzzDecode: any bytes are an error or a record that is written as it was read.
func FuzzDecode(f *testing.F) {
	h := newHarness(DefaultConfig())
	h.quiet = true
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.ProtocolType, r.SessionTimeoutMillis = 3, "g", "consumer", 10_000
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription("t")}}
	h.call("c", r)
	s := kmsg.NewPtrSyncGroupRequest()
	s.Version, s.Group, s.MemberID, s.Generation = 3, "g", "c-1", 1
	h.call("c", s)
	c := kmsg.NewPtrOffsetCommitRequest()
	c.Group, c.Generation, c.MemberID = "g", 1, "c-1"
	c.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", TopicID: [16]byte{1}, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 5}}}}
	h.call("c", c)
	for _, l := range h.log {
		f.Add(l.key, l.value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r, ok, err := Codec{}.Decode(key, value)
		if err != nil || !ok {
			return
		}
		m := New(DefaultConfig(), func() string { return "" })
		m.Replay(0, r)
		m.Handle(h.now, Event{Request: Loaded{}})
		k2, v2 := Codec{}.Encode(r)
		r2, ok, err := Codec{}.Decode(k2, v2)
		if err != nil || !ok {
			t.Fatalf("cannot read %x %x, written for %x %x: %v", k2, v2, key, value, err)
		}
		k3, v3 := Codec{}.Encode(r2)
		if !bytes.Equal(k2, k3) || !bytes.Equal(v2, v3) {
			t.Fatalf("%x %x was read and written as %x %x", k2, v2, k3, v3)
		}
	})
}

// FuzzReadSubscription: any bytes end without a panic.
func FuzzReadSubscription(f *testing.F) {
	f.Add(subscription("t+u"))
	f.Add([]byte{0, 1, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		topics := map[string]struct{}{}
		if readSubscription(b, topics) && len(topics) > len(b) {
			t.Fatalf("%d topics in %d bytes", len(topics), len(b))
		}
	})
}
