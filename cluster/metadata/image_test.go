package metadata

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func withCRC(body []byte) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(body), crc32.Checksum(body, castagnoli))
}

// sample is an image with something of everything.
func sample() *Image {
	return New("cluster").Apply(
		&RegisterBrokerRecord{BrokerID: 1, IncarnationID: [16]byte{1}, Endpoints: []Endpoint{{Listener: "PLAINTEXT", Host: "h", Port: 1}}},
		&TopicRecord{Name: "a.b", ID: id(1)},
		&PartitionRecord{TopicID: id(1), Partition: Partition{Replicas: []int32{1}, ISR: []int32{1}, Leader: 1}},
		&PartitionRecord{TopicID: id(1), Partition: Partition{Index: 1, Replicas: []int32{1}, ISR: []int32{1}, Leader: 1}},
		&TopicRecord{Name: "gone", ID: id(2)},
		&PartitionRecord{TopicID: id(2), Partition: Partition{Replicas: []int32{1}, ISR: []int32{1}, Leader: 1}},
		&ConfigRecord{Resource: TopicResource("a.b"), Name: "k", Value: new("v")},
		&ConfigRecord{Resource: TopicResource("gone"), Name: "k", Value: new("v")},
		&ConfigRecord{Resource: BrokerResource(1), Name: "k", Value: new("w")},
		&FeatureLevelRecord{Name: "metadata.version", Level: 7},
		&FeatureLevelRecord{Name: "group.version", Level: 0},
		&ProducerIDsRecord{BrokerID: 1, Next: 1000},
		&ClientQuotaRecord{Entity: quotaOf("u", ""), Key: "a", Value: new(1.5)},
		&ClientQuotaRecord{Entity: quotaOf("u", ""), Key: "b", Value: new(2.0)},
		&ClientQuotaRecord{Entity: quotaOf("", "c"), Key: "a", Value: new(3.0)},
		&ScramCredentialRecord{User: "u", Mechanism: ScramSHA256, Credential: &ScramCredential{Salt: []byte("s"), StoredKey: []byte("k"), Iterations: 4096}},
	).Apply(
		&RemoveTopicRecord{ID: id(2)},
		&PartitionChangeRecord{TopicID: id(1), Index: 1, Leader: new(int32(1))},
		&BrokerChangeRecord{BrokerID: 1, InShutdown: new(true)},
	)
}

func TestImageAccessors(t *testing.T) {
	img := sample()
	if img.Offset != 1 || img.ClusterID != "cluster" || img.TopicCount() != 1 || img.PartitionCount() != 2 {
		t.Fatalf("%+v", img)
	}
	topic, ok := img.Topic("a.b")
	if byID, ok2 := img.TopicByID(id(1)); !ok || !ok2 || byID != topic {
		t.Fatal("a.b is not found by name and id")
	}
	if _, ok := img.Topic("gone"); ok {
		t.Fatal("gone is still there")
	}
	if gone, ok := img.RemovedTopic(id(2)); !ok || gone.Name != "gone" || gone.Offset != 1 || !slices.Equal(gone.Holders, []int32{1}) {
		t.Fatalf("removed topic: %+v", gone)
	}
	p, ok := img.Partition("a.b", 1)
	if !ok || p.LeaderEpoch != 1 || p.PartitionEpoch != 1 || p.Leader != 1 {
		t.Fatalf("%+v", p)
	}
	for _, index := range []int32{-1, 2} {
		if _, ok := topic.Partition(index); ok {
			t.Fatalf("partition %d exists", index)
		}
	}
	if got := img.TopicConfig("a.b")["k"]; got != "v" {
		t.Fatalf("config %q", got)
	}
	if img.TopicConfig("gone") != nil {
		t.Fatal("a deleted topic keeps its configs")
	}
	if level, off := img.Features()["group.version"]; level != 0 || !off {
		t.Fatal("a feature that was switched off is forgotten")
	}
	want := []ConfigResource{TopicResource("a.b"), BrokerResource(1)}
	if got := img.ConfigResources(); !slices.Equal(got, want) {
		t.Fatalf("config resources %v", got)
	}
	if b, _ := img.Broker(1); b.Live() || b.Epoch != 0 || len(img.LiveBrokers()) != 0 {
		t.Fatalf("broker %+v", b)
	}
	if got := img.Collisions("a_b"); !slices.Equal(got, []string{"a.b"}) {
		t.Fatalf("collisions %v", got)
	}
	if img.Feature("metadata.version") != 7 || img.NextProducerID() != 1000 {
		t.Fatal("features or producer ids")
	}
}

func TestApplyRefuses(t *testing.T) {
	for _, c := range []struct {
		says string
		rec  Record
	}{
		{"exists already", &TopicRecord{Name: "a.b", ID: id(9)}},
		{"taken or zero", &TopicRecord{Name: "n", ID: id(1)}},
		{"taken or zero", &TopicRecord{Name: "n"}},
		{"follows 2 partitions", &PartitionRecord{TopicID: id(1), Partition: Partition{Index: 3}}},
		{"not known", &PartitionRecord{TopicID: id(8)}},
		{"not known", &PartitionChangeRecord{TopicID: id(8)}},
		{"no partition 5", &PartitionChangeRecord{TopicID: id(1), Index: 5}},
		{"not known", &RemoveTopicRecord{ID: id(2)}},
		{"not registered", &UnregisterBrokerRecord{BrokerID: 2}},
		{"not registered", &BrokerChangeRecord{BrokerID: 2}},
		{"go back", &ProducerIDsRecord{Next: 999}},
	} {
		img := sample()
		before := img.Hash()
		if _, _, err := img.Next(2, []Record{&NoOpRecord{}, c.rec}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%T %+v: error %v does not say %q", c.rec, c.rec, err, c.says)
		}
		if img.Hash() != before {
			t.Errorf("%T changed the image that it was refused on", c.rec)
		}
	}
}

func TestDelta(t *testing.T) {
	img := sample()
	_, d, err := img.Next(2, []Record{
		&RemoveTopicRecord{ID: id(1)},
		&TopicRecord{Name: "z", ID: id(4)},
		&TopicRecord{Name: "a.b", ID: id(3)},
		&PartitionRecord{TopicID: id(3), Partition: Partition{Replicas: []int32{1}}},
		&TopicRecord{Name: "short-lived", ID: id(5)},
		&RemoveTopicRecord{ID: id(5)},
		&ConfigRecord{Resource: TopicResource("a.b"), Name: "k", Value: new("v2")},
		&UnregisterBrokerRecord{BrokerID: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range d.Topics {
		parts := 0
		for range c.Partitions {
			parts++
		}
		got = append(got, fmt.Sprintf("%s/%d created=%v deleted=%v changed=%d", c.Name(), c.ID()[15], c.Created(), c.Deleted(), parts))
	}
	want := []string{
		"a.b/1 created=false deleted=true changed=0",
		"a.b/3 created=true deleted=false changed=1",
		"z/4 created=true deleted=false changed=0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("topics\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(d.Configs, []ConfigResource{TopicResource("a.b")}) || !slices.Equal(d.Brokers, []int32{1}) || d.Features {
		t.Errorf("%+v", d)
	}
	_, d, err = img.Next(2, []Record{&PartitionChangeRecord{TopicID: id(1), Index: 1, ISR: []int32{}}})
	if err != nil || len(d.Topics) != 1 {
		t.Fatal(d, err)
	}
	for old, now := range d.Topics[0].Partitions {
		if now.Index != 1 || old.PartitionEpoch+1 != now.PartitionEpoch || old.LeaderEpoch != now.LeaderEpoch || len(now.ISR) != 0 {
			t.Errorf("partition changed from %+v to %+v", old, now)
		}
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	img := sample()
	data := img.Encode()
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if got.Hash() != img.Hash() || got.Offset != img.Offset || got.PartitionCount() != img.PartitionCount() {
		t.Fatalf("decoded %+v, want %+v", got, img)
	}
	if p, _ := got.Partition("a.b", 1); p.LeaderEpoch != 1 || p.PartitionEpoch != 1 {
		t.Fatalf("epochs are lost: %+v", p)
	}
	if b, _ := got.Broker(1); b.Epoch != 0 || !b.InShutdown {
		t.Fatalf("broker %+v", b)
	}
	if len(got.Collisions("a_b")) != 1 {
		t.Fatal("the index of collisions is lost")
	}
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 0x10
		if _, err := Decode(bad); err == nil {
			t.Fatalf("a flipped bit at %d is not noticed", i)
		}
		if _, err := Decode(data[:i]); err == nil {
			t.Fatalf("a snapshot cut at %d is taken", i)
		}
	}
	if len(got.ClientQuotas()) != 2 || got.ClientQuota(quotaOf("u", ""))["b"] != 2 || len(got.ScramCredentials()) != 1 {
		t.Fatalf("quotas %v, credentials %v", got.ClientQuotas(), got.ScramCredentials())
	}
	body := data[:len(data)-crcBytes]
	for i := range body {
		if _, err := Decode(withCRC(body[:i])); err == nil {
			t.Fatalf("a snapshot cut at %d is taken with a right checksum", i)
		}
	}
}

// TestOldSnapshot: format 0 ends before the quotas.
func TestOldSnapshot(t *testing.T) {
	img := New("c").Apply(&RegisterBrokerRecord{BrokerID: 1}, &FeatureLevelRecord{Name: "f", Level: 2})
	body := img.Encode()
	body = body[:len(body)-crcBytes-2]
	body[0] = 0
	got, err := Decode(withCRC(body))
	if err != nil || got.Hash() != img.Hash() {
		t.Fatalf("%+v, %v", got, err)
	}
}

// quotaOf is an entity of a user and a client id, "" for none and "*" for the
// default.
func quotaOf(user, client string) QuotaEntity {
	name := func(s string) QuotaName {
		return QuotaName{Given: s != "", Default: s == "*", Name: strings.TrimPrefix(s, "*")}
	}
	return QuotaEntity{User: name(user), ClientID: name(client)}
}

func TestQuotasAndCredentials(t *testing.T) {
	quota := func(user, client, key string, value *float64) Record {
		return &ClientQuotaRecord{Entity: quotaOf(user, client), Key: key, Value: value}
	}
	credential := &ScramCredential{Salt: []byte("s"), Iterations: 4096}
	before := New("c").Apply(
		quota("u", "c", "a", new(1.0)), quota("u", "", "a", new(2.0)), quota("*", "", "a", new(3.0)), quota("", "c", "a", new(4.0)),
		&ScramCredentialRecord{User: "z", Mechanism: ScramSHA512, Credential: credential},
		&ScramCredentialRecord{User: "z", Mechanism: ScramSHA256, Credential: credential},
		&ScramCredentialRecord{User: "b", Mechanism: ScramSHA512, Credential: credential},
	)
	after := before.Apply(
		quota("u", "c", "b", new(5.0)), quota("u", "", "a", nil), quota("u", "", "never", nil),
		&ScramCredentialRecord{User: "z", Mechanism: ScramSHA256},
	)
	show := func(img *Image) string {
		return fmt.Sprint(img.ClientQuotas(), img.ScramCredentials())
	}
	none, all := "{false false }", "{true true }"
	u, c := "{true false u}", "{true false c}"
	if got, want := show(before), "["+
		"{{"+none+" "+c+" "+none+"} map[a:4]} {{"+all+" "+none+" "+none+"} map[a:3]} {{"+u+" "+none+" "+none+"} map[a:2]} {{"+u+" "+c+" "+none+"} map[a:1]}"+
		"] [{b 2} {z 1} {z 2}]"; got != want {
		t.Errorf("before\n%s\nwant\n%s", got, want)
	}
	if got, want := show(after), "["+
		"{{"+none+" "+c+" "+none+"} map[a:4]} {{"+all+" "+none+" "+none+"} map[a:3]} {{"+u+" "+c+" "+none+"} map[a:1 b:5]}"+
		"] [{b 2} {z 2}]"; got != want {
		t.Errorf("after\n%s\nwant\n%s", got, want)
	}
}

// TestRemovedTopicsAreForgotten: once every holder has started again, and at the
// latest when there are too many.
func TestRemovedTopicsAreForgotten(t *testing.T) {
	img := New("c").Apply(
		&RegisterBrokerRecord{BrokerID: 1, IncarnationID: [16]byte{1}},
		&RegisterBrokerRecord{BrokerID: 2, IncarnationID: [16]byte{2}},
		&TopicRecord{Name: "t", ID: id(1)},
		&PartitionRecord{TopicID: id(1), Partition: Partition{Replicas: []int32{1, 2}}},
		&RemoveTopicRecord{ID: id(1)},
	)
	img = img.Apply(&RegisterBrokerRecord{BrokerID: 1, IncarnationID: [16]byte{1}})
	if r, _ := img.RemovedTopic(id(1)); !slices.Equal(r.Holders, []int32{1, 2}) {
		t.Fatalf("forgotten by a broker that did not start again: %+v", r)
	}
	img = img.Apply(&RegisterBrokerRecord{BrokerID: 1, IncarnationID: [16]byte{3}})
	if r, _ := img.RemovedTopic(id(1)); !slices.Equal(r.Holders, []int32{2}) {
		t.Fatalf("holders %v", r.Holders)
	}
	img = img.Apply(&RegisterBrokerRecord{BrokerID: 2, IncarnationID: [16]byte{4}})
	if _, ok := img.RemovedTopic(id(1)); ok {
		t.Fatal("remembered after both holders started again")
	}

	number := func(n int) (id TopicID) {
		binary.BigEndian.PutUint32(id[:], uint32(n)+1)
		return id
	}
	for n := range 2*maxRemovedTopics + 1 {
		img = img.Apply(
			&TopicRecord{Name: "t", ID: number(n)},
			&PartitionRecord{TopicID: number(n), Partition: Partition{Replicas: []int32{1}}},
			&RemoveTopicRecord{ID: number(n)},
		)
	}
	if img.removed.size != maxRemovedTopics {
		t.Fatalf("%d deleted topics are remembered, want %d", img.removed.size, maxRemovedTopics)
	}
	if _, ok := img.RemovedTopic(number(2 * maxRemovedTopics)); !ok {
		t.Fatal("the newest deletion is forgotten")
	}
}

// TestShards compares with a plain map, and shows that an edit leaves every
// earlier version as it was.
func TestShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type version struct {
			s shards[int, int]
			m map[int]int
		}
		versions := []version{{m: map[int]int{}}}
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			last := versions[len(versions)-1]
			e := shardEdit[int, int]{now: last.s}
			m := maps.Clone(last.m)
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				key := rapid.IntRange(0, 30).Draw(t, "key")
				if rapid.Bool().Draw(t, "remove") {
					e.remove(key)
					delete(m, key)
				} else {
					value := rapid.Int().Draw(t, "value")
					e.set(key, value)
					m[key] = value
				}
			}
			versions = append(versions, version{e.now, m})
		}
		for i, v := range versions {
			got := map[int]int{}
			for k, value := range v.s.all {
				got[k] = value
			}
			if !maps.Equal(got, v.m) || v.s.size != len(v.m) {
				t.Fatalf("version %d is %v, want %v", i, got, v.m)
			}
			for k := range 31 {
				value, ok := v.s.get(k)
				if want, has := v.m[k]; ok != has || value != want {
					t.Fatalf("version %d: key %d is %d, %v", i, k, value, ok)
				}
			}
		}
	})
}

func BenchmarkCreateAmong10000(b *testing.B) {
	img := New("c").Apply(&RegisterBrokerRecord{BrokerID: 1})
	number := func(n int) (id TopicID) {
		binary.BigEndian.PutUint32(id[:], uint32(n)+1)
		return id
	}
	create := func(n int) {
		img = img.Apply(
			&TopicRecord{Name: fmt.Sprintf("topic-%d", n), ID: number(n)},
			&PartitionRecord{TopicID: number(n), Partition: Partition{Replicas: []int32{1}, ISR: []int32{1}, Leader: 1}},
		)
	}
	for n := range 10_000 {
		create(n)
	}
	b.ResetTimer()
	b.ReportAllocs()
	for n := range b.N {
		create(10_000 + n)
	}
}

func BenchmarkTopic(b *testing.B) {
	img := New("c")
	for n := range 10_000 {
		img = img.Apply(&TopicRecord{Name: fmt.Sprintf("topic-%d", n), ID: TopicID{byte(n >> 8), byte(n), 1}})
	}
	for b.Loop() {
		if _, ok := img.Topic("topic-5000"); !ok {
			b.Fatal("lost")
		}
	}
}
