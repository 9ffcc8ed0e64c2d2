package group

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
	"github.com/barnabas-mq/barnabas/protocol/wire"
)

type rawRecord struct{ key, value []byte }

// kafkaRecords are those that Apache Kafka wrote.
func kafkaRecords(t *testing.T) (out []rawRecord) {
	text, err := os.ReadFile("testdata/kafka-consumer-records.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		var r rawRecord
		if r.key, err = hex.DecodeString(key); err != nil {
			t.Fatal(err)
		}
		if value != "" {
			if r.value, err = hex.DecodeString(value); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, r)
	}
	return out
}

// Kafka's records are read, and written again as they were, but for the order of
// topics.
func TestKafkasConsumerRecords(t *testing.T) {
	kinds := map[recordKind]bool{}
	records := kafkaRecords(t)
	for i, raw := range records {
		r, ok, err := Codec{}.Decode(raw.key, raw.value)
		if err != nil || !ok {
			t.Fatalf("record %d: ok %v, %v", i, ok, err)
		}
		kinds[r.Consumer.kind] = true
		key, value := Codec{}.Encode(r)
		if !bytes.Equal(key, raw.key) || len(value) != len(raw.value) || (value == nil) != (raw.value == nil) {
			t.Errorf("record %d: %x %x, Kafka wrote %x %x", i, key, value, raw.key, raw.value)
		}
		if again, _, err := (Codec{}).Decode(key, value); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("record %d is %s at first and %s then (%v)", i, describeRecord(r), describeRecord(again), err)
		}
		topics := 0
		switch v := r.Consumer.value.(type) {
		case *targetValue:
			topics = len(v.partitions)
		case *currentValue:
			topics = len(v.assigned)
		}
		if topics < 2 && !bytes.Equal(value, raw.value) {
			t.Errorf("record %d: value %x, Kafka wrote %x", i, value, raw.value)
		}
	}
	if len(kinds) != 6 {
		t.Errorf("only kinds %v", kinds)
	}
	// What was left of the group in the end, when all had gone.
	h := newHarness(DefaultConfig())
	for _, raw := range records {
		h.log = append(h.log, logged{key: raw.key, value: raw.value})
	}
	h.reload()
	g := h.m.consumer("C236231rec")
	if g == nil || g.state() != Empty || g.epoch != 7 || g.targetEpoch != 7 || len(g.owners)+len(g.target)+len(g.regexes) != 0 {
		t.Errorf("the group is %+v", g)
	}
}

// Kafka 4.0 wrote about the topics of a group; that record is removed when there
// is something to write.
func TestPartitionMetadataOfKafka40(t *testing.T) {
	h := newHarness(DefaultConfig())
	h.topic("t", 1)
	key, value := Codec{}.Encode(Record{Group: "g", Consumer: &ConsumerRecord{kind: kindPartitions, value: partitionsValue{}}})
	h.log = append(h.log, logged{key: key, value: value})
	h.reload()
	if g := h.m.consumer("g"); g == nil || !g.oldPartitions {
		t.Fatalf("the group is %+v", g)
	}
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.RebalanceTimeoutMillis = 1, "g", "a", 1000
	r.SubscribedTopicNames, r.Topics = []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	h.call("c", r)
	if g := h.m.consumer("g"); g.oldPartitions || len(g.members) != 1 {
		t.Errorf("the group is %+v", g)
	}
}

// A state that a later version wrote makes the member join anew.
func TestUnknownMemberState(t *testing.T) {
	v := &currentValue{epoch: 3, state: 9, assigned: owned{{1}: {0: 2}}}
	var w wire.Writer
	v.append(&w)
	got := readCurrent(wire.NewReader(w.Buf))
	if got.state != stateUnknown || !got.assigned.equal(v.assigned) {
		t.Errorf("read %+v", got)
	}
}

// Epochs of partitions that do not fit the partitions are not used.
func TestOwnedWithoutEpochs(t *testing.T) {
	var w, field wire.Writer
	w.Count(1)
	w.ID(assignor.TopicID{7})
	w.Int32s([]int32{4, 5})
	field.Int32s([]int32{1})
	w.Tag(field.Buf)
	got := readOwned(wire.NewReader(w.Buf), 6)
	if !got.equal(owned{{7}: {4: 6, 5: 6}}) {
		t.Errorf("read %v", got)
	}
}

// Whatever the bytes are, reading them ends with a record or an error.
func TestDecodeConsumerHostile(t *testing.T) {
	records := kafkaRecords(t)
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SampledFrom(records).Draw(t, "record")
		key, value := bytes.Clone(raw.key), bytes.Clone(raw.value)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			b := &key
			if len(value) > 0 && rapid.IntRange(0, 4).Draw(t, "which") > 0 {
				b = &value
			}
			if len(*b) == 0 {
				continue
			}
			at := rapid.IntRange(0, len(*b)-1).Draw(t, "at")
			if rapid.Bool().Draw(t, "cut") {
				*b = (*b)[:at]
			} else {
				(*b)[at] = rapid.Byte().Draw(t, "byte")
			}
		}
		r, ok, err := Codec{}.Decode(key, value)
		if err == nil && ok && r.Consumer != nil {
			New(DefaultConfig(), nil).Replay(0, r)
			Codec{}.Encode(r)
		}
	})
}

// Records are shown to people by `barnabas dump`.
func TestConsumerRecordText(t *testing.T) {
	name := "i"
	m := newConsumerMember("a")
	m.memberMetadata = memberMetadata{clientID: "c", clientHost: "/h", topics: []string{"t", "u"}, regex: "x.*", instanceID: &name, assignor: &name, classic: &classicMetadata{}}
	m.currentValue = currentValue{epoch: 3, previousEpoch: 2, state: stateUnrevoked, assigned: owned{{1}: {0: 2, 4: 3}}}
	for _, c := range []struct {
		record *ConsumerRecord
		want   string
	}{
		{m.metadataRecord(), `member "a": client c at /h, topics t u, expression "x.*", instance i, assignor i, classic protocol`},
		{m.currentRecord(), `current "a": epoch 3, before 2, unrevoked, has AQAAAAAAAAAAAAAAAAAAAA[0 4], gives back nothing`},
		{&ConsumerRecord{kind: kindEpoch, value: &epochValue{epoch: 4}}, "epoch: 4"},
		{&ConsumerRecord{kind: kindTargetEpoch, value: &targetEpochValue{epoch: 4}}, "target-epoch: 4"},
		{&ConsumerRecord{kind: kindTarget, name: "a", value: &targetValue{}}, `target "a": nothing`},
		{&ConsumerRecord{kind: kindRegex, name: "x", value: &regexValue{topics: []string{"t", "u"}}}, `regex "x": t u`},
		{&ConsumerRecord{kind: kindPartitions, value: partitionsValue{}}, "partitions"},
		{&ConsumerRecord{kind: kindMember, name: "a"}, `member "a" deleted`},
	} {
		if got := c.record.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
