package config

import (
	"os"
	"strings"
	"testing"
)

// different are the keys that deliberately differ from Kafka's, and why.
var different = map[string]string{
	"group.initial.rebalance.delay.ms":                "nobody waits for more members unless asked to",
	"group.consumer.assignment.interval.ms":           "nobody waits for more members unless asked to",
	"consumer.assignment.interval.ms":                 "the broker's key behind it",
	"node.id":                                         "Kafka has no default",
	"process.roles":                                   "Kafka has no default",
	"controller.listener.names":                       "Kafka has no default",
	"log.dir":                                         "./barnabas-data",
	"queued.max.request.bytes":                        "there always is a limit",
	"max.decompressed.message.bytes":                  "one batch can't ask for 2 GiB",
	"listeners":                                       "can't change while the broker runs",
	"listener.security.protocol.map":                  "can't change while the broker runs",
	"offsets.topic.compression.codec":                 "Kafka checks the codec later",
	"share.coordinator.state.topic.compression.codec": "Kafka checks the codec later",
}

// Every key of Kafka is known here with its type, default, limits, importance and
// update mode.
func TestKeysMatchKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/kafka-4.4.tsv")
	if err != nil {
		t.Fatal(err)
	}
	registries := map[string]*registry{"broker": brokerKeys, "topic": topicKeys, "group": groupKeys}
	known := 0
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		kind, name := f[0], f[1]
		d := registries[kind].byName[name]
		if d == nil {
			t.Errorf("%s key %s is not declared", kind, name)
			continue
		}
		known++
		if d.Type.String() != f[2] {
			t.Errorf("%s: type %s, Kafka has %s", name, d.Type, f[2])
		}
		if d.Internal != (f[7] == "internal") {
			t.Errorf("%s: internal %v, Kafka has %s", name, d.Internal, f[7])
		}
		if kind == "broker" && d.Importance.String() != f[5] {
			t.Errorf("%s: importance %s, Kafka has %s", name, d.Importance, f[5])
		}
		if different[name] != "" {
			continue
		}
		if kind == "broker" && d.Scope.String() != f[6] {
			t.Errorf("%s: %s, Kafka has %s", name, d.Scope, f[6])
		}
		if want, got := kafkaDefault(f[3], f[2]), defaultOf(d); got != want {
			t.Errorf("%s: default %q, Kafka has %q", name, got, want)
		}
	}
	if known != 379+38+27 {
		t.Errorf("compared %d keys", known)
	}
}

func kafkaDefault(text, kind string) string {
	switch {
	case text == "null" || text == "<REQUIRED>":
		return "null"
	case kind == "LIST":
		return strings.ReplaceAll(strings.Trim(text, "[]"), ", ", ",")
	}
	return text
}

// defaultOf is the default as DescribeConfigs would show it before anything is
// set.
func defaultOf(d *Decl) string {
	s := Defaults().Snapshot()
	v := d.Default
	if d.Broker != "" && topicKeys.byName[d.Name] == d {
		v = s.behind(d)
	}
	if text, ok := Format(v); ok {
		return text
	}
	return "null"
}

// The limits of Kafka's validators hold here: the value just outside is refused,
// the value at the limit is taken.
func TestLimitsMatchKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/kafka-4.4.tsv")
	if err != nil {
		t.Fatal(err)
	}
	registries := map[string]*registry{"broker": brokerKeys, "topic": topicKeys, "group": groupKeys}
	compared := 0
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		f := strings.Split(line, "\t")
		if strings.HasPrefix(line, "#") || !strings.HasPrefix(f[4], "[") {
			continue
		}
		switch f[2] {
		case "INT", "LONG", "SHORT":
		default:
			continue
		}
		least, most, _ := strings.Cut(strings.Trim(f[4], "[]"), "..")
		least, most = strings.TrimSuffix(least, ","), strings.TrimPrefix(most, ".")
		if strings.Contains(f[4], " or ") {
			continue
		}
		d := registries[f[0]].byName[f[1]]
		compared++
		if _, err := d.Parse(least); err != nil {
			t.Errorf("%s=%s: %v", f[1], least, err)
		}
		if _, err := d.Parse(add(least, -1)); err == nil {
			t.Errorf("%s=%s is taken; Kafka has %s", f[1], add(least, -1), f[4])
		}
		if most = strings.Trim(most, "."); most != "" {
			if _, err := d.Parse(most); err != nil {
				t.Errorf("%s=%s: %v", f[1], most, err)
			}
			if _, err := d.Parse(add(most, 1)); err == nil {
				t.Errorf("%s=%s is taken; Kafka has %s", f[1], add(most, 1), f[4])
			}
		}
	}
	if compared < 200 {
		t.Errorf("compared only %d keys", compared)
	}
}

func add(number string, n int64) string {
	v, _ := parseWhole(TypeLong, number)
	text, _ := Format(v.(int64) + n)
	return text
}

// Kafka's own texts, as its LogConfig answers them.
func TestTopicRefusalsAreKafkas(t *testing.T) {
	checker := NewChecker(Defaults())
	for _, c := range []struct{ name, value, want string }{
		{"nope", "1", "Unknown topic config name: nope"},
		{"message.format.version", "3.0", "Unknown topic config name: message.format.version"},
		{"segment.bytes", "x", "Invalid value x for configuration segment.bytes: Not a number of type INT"},
		{"segment.bytes", "10", "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576"},
		{"segment.bytes", "", "Invalid value  for configuration segment.bytes: Not a number of type INT"},
		{"segment.bytes", " 2000000 ", ""},
		{"segment.bytes", "99999999999", "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT"},
		{"segment.ms", "1_000", "Invalid value 1_000 for configuration segment.ms: Not a number of type LONG"},
		{"segment.ms", "0", "Invalid value 0 for configuration segment.ms: Value must be at least 1"},
		{"index.interval.bytes", "+5", ""},
		{"cleanup.policy", "foo", "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete"},
		{"cleanup.policy", "", ""},
		{"cleanup.policy", "compact, delete", ""},
		{"cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."},
		{"compression.type", "none", "Invalid value none for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"},
		{"compression.type", "uncompressed", ""},
		{"compression.gzip.level", "0", "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1"},
		{"compression.gzip.level", "-1", ""},
		{"compression.lz4.level", "18", "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17"},
		{"preallocate", "maybe", "Invalid value maybe for configuration preallocate: Expected value to be either true or false"},
		{"preallocate", "TRUE", ""},
		{"min.cleanable.dirty.ratio", "2", "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"},
		{"min.cleanable.dirty.ratio", "abc", "Invalid value abc for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE"},
		{"min.cleanable.dirty.ratio", "0.5f", ""},
		{"message.timestamp.type", "foo", "Invalid value foo for configuration message.timestamp.type: String must be one of: CreateTime, LogAppendTime"},
		{"retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"},
		{"retention.bytes", "-5", ""},
		{"min.insync.replicas", "0", "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1"},
		{"max.message.bytes", "0", ""},
		{"leader.replication.throttled.replicas", "foo", "Invalid value [foo] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."},
		{"leader.replication.throttled.replicas", "1:2,3:4", ""},
		{"leader.replication.throttled.replicas", "*", ""},
		{"leader.replication.throttled.replicas", ",1:2,,3:4,", ""},
		// As many as 32,767 bytes can have.
		{"leader.replication.throttled.replicas", strings.Repeat("1:2,", 8191) + "1:2", ""},
		{"leader.replication.throttled.replicas", strings.Repeat(",", 32767), ""},
		{"remote.storage.enable", "true", "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."},
		{"remote.storage.enable", "false", ""},
	} {
		err := checker.CheckTopic(c.name, c.value)
		checkRefusal(t, c.name+"="+c.value, err, 40, c.want)
	}
	checkRefusal(t, "lags", checker.CheckTopicConfigs(map[string]string{"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"}), 40,
		"conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)")
	checkRefusal(t, "unknown first", checker.CheckTopicConfigs(map[string]string{"a": "1", "segment.bytes": "zzz", "bogus": "1"}), 40,
		"Unknown topic config name: a")
}

// What Kafka's DynamicBrokerConfig answers.
func TestBrokerRefusalsAreKafkas(t *testing.T) {
	checker := NewChecker(Defaults())
	for _, c := range []struct{ broker, name, value, want string }{
		{"", "nope", "1", ""},
		{"", "num.io.threads", "0", "Invalid value 0 for configuration num.io.threads: Value must be at least 1"},
		{"1", "num.io.threads", "x", "Invalid value x for configuration num.io.threads: Not a number of type INT"},
		{"1", "node.id", "2", "Cannot update these configs dynamically: [node.id]"},
		{"", "num.partitions", "3", "Cannot update these configs dynamically: [num.partitions]"},
		{"", "cordoned.log.dirs", "x", "Cannot update these configs at default cluster level, broker id must be specified: [cordoned.log.dirs]"},
		{"1", "listeners", "PLAINTEXT://:9999", "Cannot update these configs dynamically: [listeners]"},
		{"", "log.retention.ms", "-2", ""},
		{"", "log.retention.hours", "1", "Cannot update these configs dynamically: [log.retention.hours]"},
		{"", "log.segment.bytes", "1", "Invalid value 1 for configuration log.segment.bytes: Value must be at least 1048576"},
		{"1", "ssl.keystore.location", "x", "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.location]"},
		{"1", "max.connections.per.ip.overrides", "localhost", "Invalid value localhost for configuration max.connections.per.ip.overrides: \"localhost\" is not address:number"},
		{"1", "max.connections", "5", ""},
		{"", "log.cleaner.threads", "2", ""},
		{"", "log.cleaner.threads", "0", "Invalid value 0 for configuration log.cleaner.threads: Log cleaner threads should be at least 1"},
		{"", "log.cleaner.threads", "128", "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."},
		{"", "log.cleaner.dedupe.buffer.size", "1048577", ""},
		{"", "log.cleaner.dedupe.buffer.size", "1048576", "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."},
		{"", "log.cleaner.enable", "false", "Cannot update these configs dynamically: [log.cleaner.enable]"},
	} {
		checkRefusal(t, c.name+"="+c.value, checker.CheckBroker(c.broker, c.name, c.value), 42, c.want)
	}
}

func TestGroupAndMetricsRefusalsAreKafkas(t *testing.T) {
	checker := NewChecker(Defaults())
	for _, c := range []struct{ name, value, want string }{
		{"consumer.session.timeout.ms", "46000", ""},
		{"consumer.session.timeout.ms", "5", "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."},
		{"share.auto.offset.reset", "by_duration:PT1H", ""},
		{"share.auto.offset.reset", "soon", "Invalid value soon for configuration share.auto.offset.reset: Invalid share auto offset reset strategy: soon"},
		{"nope", "5", "Unknown group config name: nope"},
	} {
		checkRefusal(t, c.name+"="+c.value, checker.CheckGroup(map[string]string{c.name: c.value}), 40, c.want)
	}
	slow := NewChecker(started(t, "group.consumer.min.session.timeout.ms", "5000"))
	checkRefusal(t, "session and heartbeat", slow.CheckGroup(map[string]string{"consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "6000"}),
		40, "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms")
	checkRefusal(t, "session and the default heartbeat", slow.CheckGroup(map[string]string{"consumer.session.timeout.ms": "5000"}),
		40, "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms")
	checkRefusal(t, "session", slow.CheckGroup(map[string]string{"consumer.session.timeout.ms": "5001"}), 0, "")
	for _, c := range []struct{ name, value, want string }{
		{"interval.ms", "100", ""},
		{"interval.ms", "1", "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)"},
		{"nope", "1", "Unknown client metrics configuration: nope"},
	} {
		checkRefusal(t, c.name+"="+c.value, checker.CheckClientMetrics(c.name, c.value), 42, c.want)
	}
	// Kafka has no bound of what a pattern takes compiled.
	large := "client_id=" + strings.Repeat("a{999}", 6)
	checkRefusal(t, "a large pattern", checker.CheckClientMetrics("match", large), 0, "")
	checkRefusal(t, "two", checker.CheckClientMetrics("match", large+","+large), 40, "Illegal client matching pattern: "+large)
}

func started(t *testing.T, key, value string) *Static {
	t.Helper()
	static, _ := load(t, Input{Flags: []Setting{{Key: key, Value: value}}})
	return static
}
