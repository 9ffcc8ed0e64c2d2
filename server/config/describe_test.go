package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

var sourceNames = map[Source]string{
	SourceTopic: "topic", SourceBroker: "broker", SourceDefaultBroker: "all", SourceStatic: "static", SourceDefault: "default",
	SourceClientMetrics: "metrics", SourceGroup: "group",
}

// show writes an entry as `value source type [synonyms]` with what else is set.
func (e Entry) show() string {
	text := func(v *string) string {
		if v == nil {
			return "null"
		}
		return *v
	}
	var synonyms []string
	for _, s := range e.Synonyms {
		synonyms = append(synonyms, fmt.Sprintf("%s=%s@%s", s.Name, text(s.Value), sourceNames[s.Source]))
	}
	line := fmt.Sprintf("%s %s %s [%s]", text(e.Value), sourceNames[e.Source], e.Type, strings.Join(synonyms, " "))
	if e.ReadOnly {
		line += " read-only"
	}
	if e.Sensitive {
		line += " sensitive"
	}
	return line
}

func find(t *testing.T, list []Entry, name string) Entry {
	t.Helper()
	at := slices.IndexFunc(list, func(e Entry) bool { return e.Name == name })
	if at < 0 {
		t.Fatalf("%s is not listed", name)
	}
	return list[at]
}

// What Apache Kafka 4.4 answers for the same settings.
func TestDescribe(t *testing.T) {
	static, _ := load(t, Input{File: "f", FileText: []byte(
		"log.retention.hours=100\nnum.io.threads=2\nmy.custom.key=abc\nssl.key.password=secret\nnode.id=1\n")})
	s := NewSnapshot(static, map[string]string{"log.retention.ms": "-5"},
		map[string]string{"log.cleaner.threads": "2", "message.max.bytes": "2000000", "my.dynamic.key": "x"})
	topic := s.DescribeTopic(map[string]string{"retention.ms": "7000", "cleanup.policy": "compact"})
	broker, all := s.DescribeBroker(), s.DescribeAllBrokers()
	group := s.DescribeGroup(map[string]string{"consumer.session.timeout.ms": "46000"})
	metrics := DescribeClientMetrics(map[string]string{"interval.ms": "100"})
	for _, c := range []struct {
		list []Entry
		name string
		want string
	}{
		{topic, "retention.ms", "7000 topic LONG [retention.ms=7000@topic log.retention.ms=-5@broker log.retention.hours=100@static log.retention.hours=168@default]"},
		{topic, "cleanup.policy", "compact topic LIST [cleanup.policy=compact@topic log.cleanup.policy=delete@default]"},
		{topic, "max.message.bytes", "2000000 all INT [message.max.bytes=2000000@all message.max.bytes=1048588@default]"},
		{topic, "segment.ms", "604800000 default LONG []"},
		{topic, "flush.ms", "9223372036854775807 default LONG []"},
		{topic, "remote.storage.enable", "false default BOOLEAN []"},
		{topic, "leader.replication.throttled.replicas", " default LIST []"},
		{broker, "advertised.listeners", "null default LIST [] read-only"},
		{broker, "log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308 default DOUBLE [log.cleaner.io.max.bytes.per.second=1.7976931348623157E308@default]"},
		{broker, "log.retention.ms", "-5 broker LONG [log.retention.ms=-5@broker log.retention.hours=100@static log.retention.hours=168@default]"},
		{broker, "log.retention.minutes", "null default INT [] read-only"},
		{broker, "log.retention.hours", "100 static INT [log.retention.hours=100@static log.retention.hours=168@default] read-only"},
		{broker, "num.io.threads", "2 static INT [num.io.threads=2@static num.io.threads=8@default]"},
		{broker, "broker.id", "1 static INT [broker.id=1@static broker.id=-1@default] read-only"},
		{broker, "my.custom.key", "null static UNKNOWN [my.custom.key=null@static] read-only sensitive"},
		{broker, "my.dynamic.key", "null all UNKNOWN [my.dynamic.key=null@all] read-only sensitive"},
		{broker, "ssl.key.password", "null static PASSWORD [ssl.key.password=null@static] sensitive"},
		{all, "message.max.bytes", "2000000 all INT [message.max.bytes=2000000@all]"},
		{all, "my.dynamic.key", "null all UNKNOWN [my.dynamic.key=null@all] read-only sensitive"},
		{group, "consumer.session.timeout.ms", "46000 group INT [consumer.session.timeout.ms=46000@group group.consumer.session.timeout.ms=45000@default]"},
		{group, "share.auto.offset.reset", "latest default STRING [share.auto.offset.reset=latest@default]"},
		{group, "streams.assignor.name", "sticky default STRING [group.streams.assignors=sticky@default]"},
		{metrics, "interval.ms", "100 metrics INT [interval.ms=100@metrics]"},
		{metrics, "match", " default LIST []"},
	} {
		if got := find(t, c.list, c.name).show(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	if len(topic) != 37 || len(all) != 3 || len(group) != 21 || len(metrics) != 3 {
		t.Errorf("%d topic, %d all, %d group, %d metrics entries", len(topic), len(all), len(group), len(metrics))
	}
	for _, list := range [][]Entry{topic, broker, all, group, metrics} {
		if !slices.IsSortedFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }) {
			t.Error("not sorted by name")
		}
		for _, e := range list {
			if Broker(e.Name) != nil && e.Doc == "" {
				t.Errorf("%s has no documentation", e.Name)
			}
		}
	}
	if hidden := slices.IndexFunc(broker, func(e Entry) bool { return e.Name == "unstable.api.versions.enable" }); hidden >= 0 {
		t.Error("an internal key that is not set is listed")
	}
}

func TestLayers(t *testing.T) {
	static, _ := load(t, Input{Flags: []Setting{given("queued.max.request.bytes", "-1"), given("max.connections.per.ip", "0"), given("max.connections.per.ip.overrides", "::ffff:10.0.0.1:3, [::1]:4,host:5")}})
	s := static.Snapshot()
	limits := s.NetworkLimits()
	if fmt.Sprint(limits.PerIP) != "map[10.0.0.1:3 ::1:4 host:5]" || limits.QueuedRequestBytes != 256<<20 || limits.MaxConnectionsPerIP != -1 {
		t.Errorf("limits %+v", limits)
	}
	overrides := map[string]string{
		"cleanup.policy": "compact,delete", "compression.type": "gzip", "flush.messages": "1", "segment.ms": "5",
		"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2", "retention.bytes": "-7",
		"max.decompressed.message.bytes": "9",
	}
	c := s.Topic("t", overrides)
	if !c.Log.Compact || !c.Log.Delete || c.Log.FlushMessages != 1 || c.Log.SegmentMs != 5 || !c.Log.LogAppendTime || c.Log.RetentionBytes != -1 {
		t.Errorf("log %+v", c.Log)
	}
	if !c.Batch.Compacted || !c.Batch.Recompress || c.Batch.Codec.String() != "gzip" || c.Batch.Level != 0 || c.Batch.MaxDecodedBytes != 9 {
		t.Errorf("batch %+v", c.Batch)
	}
	if c.MinInsyncReplicas != 2 {
		t.Errorf("topic %+v", c)
	}
	if s.Topic("t", overrides) != c {
		t.Error("the same settings were parsed again")
	}
	if other := s.Topic("t", map[string]string{"segment.ms": "6"}); other.Log.SegmentMs != 6 {
		t.Error("new settings were not seen")
	}
	if s.Topic("u", nil) != s.Topic("v", map[string]string{}) {
		t.Error("topics without settings do not share their configuration")
	}
	if c.Log != s.LogConfig(overrides) {
		t.Error("LogConfig and Topic differ")
	}
	none := s.Topic("n", map[string]string{"compression.type": "uncompressed", "cleanup.policy": ""})
	if !none.Batch.Recompress || none.Batch.Codec.String() != "none" || none.Log.Compact || none.Log.Delete {
		t.Errorf("%+v", none)
	}
	if g := s.GroupConfig(); g.InitialRebalanceDelayMs != 0 || g.OffsetsRetentionMs != 7*24*3600*1000 || g.MinSessionTimeoutMs != 6000 {
		t.Errorf("group %+v", g)
	}
	if st := s.StoreConfig(); st.RetentionCheck.Minutes() != 5 || st.RecoveryThreads != 2 {
		t.Errorf("store %+v", st)
	}
}

// A change on this broker or on all is taken over; one on another broker is not.
func TestLive(t *testing.T) {
	live := NewLive(Defaults())
	img, before := metadata.New("c"), live.Snapshot()
	set := func(name, value string) *metadata.Delta {
		t.Helper()
		next, delta, err := img.Next(img.Offset+1, []metadata.Record{&metadata.ConfigRecord{
			Resource: metadata.ConfigResource{Type: metadata.ResourceBroker, Name: name}, Name: "message.max.bytes", Value: &value,
		}})
		if err != nil {
			t.Fatal(err)
		}
		img = next
		return delta
	}
	live.OnMetadata(set("2", "5000"), img)
	if live.Snapshot() != before {
		t.Error("another broker's settings were taken over")
	}
	live.OnMetadata(set("", "6000"), img)
	if got := MessageMaxBytes.Get(live.Snapshot()); got != 6000 {
		t.Errorf("all brokers: %d", got)
	}
	live.OnMetadata(set("1", "7000"), img)
	if got := live.Topic(img, "t").MaxMessageBytes; got != 7000 {
		t.Errorf("this broker: %d", got)
	}
}
