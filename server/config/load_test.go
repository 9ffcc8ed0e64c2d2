package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func stock(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/server.properties")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestStockServerProperties(t *testing.T) {
	static, warnings := load(t, Input{File: "server.properties", FileText: stock(t)})
	if len(warnings) != 0 {
		t.Errorf("warnings: %q", warnings)
	}
	want := []Listener{{Name: "PLAINTEXT", Port: 9092, Protocol: "PLAINTEXT", AdvertisedHost: "localhost", AdvertisedPort: 9092}}
	if got := static.Listeners(); !slices.Equal(got, want) {
		t.Errorf("listeners %+v", got)
	}
	if got := static.Snapshot().DataDir(); got != "/tmp/kraft-combined-logs" {
		t.Errorf("data folder %s", got)
	}
}

// The environment of Kafka's compose examples for one node.
func TestComposeEnvironment(t *testing.T) {
	static, warnings := load(t, Input{Environ: []string{
		"PATH=/bin", "HOSTNAME=broker",
		"KAFKA_NODE_ID=1",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
		"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092",
		"KAFKA_PROCESS_ROLES=broker,controller",
		"KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093",
		"KAFKA_LISTENERS=CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092",
		"KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT",
		"KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER",
		"CLUSTER_ID=4L6g3nShT-eMCtK--X86sw",
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0",
		"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1",
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR=1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR=1",
		"KAFKA_LOG_DIRS=/tmp/kraft-combined-logs",
		"KAFKA_HEAP_OPTS=-Xmx1g", "KAFKA_OPTS=-Dx", "KAFKA_JMX_PORT=9999", "KAFKA_LOG4J_ROOT_LOGLEVEL=INFO",
		"KAFKA_JVM_PERFORMANCE_OPTS=-server", "KAFKA_TOOLS_LOG4J_LOGLEVEL=INFO", "KAFKA_VERSION=4.0.0",
	}})
	if len(warnings) != 0 {
		t.Errorf("warnings: %q", warnings)
	}
	want := []Listener{
		{Name: "PLAINTEXT_HOST", Port: 9092, Protocol: "PLAINTEXT", AdvertisedHost: "localhost", AdvertisedPort: 9092},
		{Name: "PLAINTEXT", Port: 19092, Protocol: "PLAINTEXT", AdvertisedHost: "broker", AdvertisedPort: 19092},
	}
	if got := static.Listeners(); !slices.Equal(got, want) {
		t.Errorf("listeners %+v", got)
	}
	if id := ClusterID.Get(static.Snapshot()); id != "4L6g3nShT-eMCtK--X86sw" {
		t.Errorf("cluster id %q", id)
	}
}

// One variable changes one thing; with only advertised addresses the image
// listens on their ports.
func TestEnvironmentMergesWithDefaults(t *testing.T) {
	static, warnings := load(t, Input{Environ: []string{"KAFKA_NUM_PARTITIONS=3"}})
	s := static.Snapshot()
	if NumPartitions.Get(s) != 3 || !AutoCreateTopicsEnable.Get(s) || len(static.Listeners()) != 1 || len(warnings) != 0 {
		t.Errorf("partitions %d, listeners %v, warnings %q", NumPartitions.Get(s), static.Listeners(), warnings)
	}
	static, _ = load(t, Input{Environ: []string{"KAFKA_ADVERTISED_LISTENERS=OUTSIDE://example.com:29092,INSIDE://broker:9092"}})
	want := []Listener{
		{Name: "OUTSIDE", Port: 29092, Protocol: "PLAINTEXT", AdvertisedHost: "example.com", AdvertisedPort: 29092},
		{Name: "INSIDE", Port: 9092, Protocol: "PLAINTEXT", AdvertisedHost: "broker", AdvertisedPort: 9092},
	}
	if got := static.Listeners(); !slices.Equal(got, want) {
		t.Errorf("listeners %+v", got)
	}
}

func TestEnvironmentNames(t *testing.T) {
	for name, want := range map[string]string{
		"KAFKA_NUM_PARTITIONS=2":            "num.partitions",
		"KAFKA_A__B=2":                      "a_b",
		"KAFKA_A___B=2":                     "a-b",
		"KAFKA_CFG_LOG_DIRS=/x":             "log.dirs",
		"BARNABAS_LOG_LEVEL=debug":          "barnabas.log.level",
		"KAFKA_BARNABAS_LOG_LEVEL=debug":    "barnabas.log.level",
		"CLUSTER_ID=x":                      "barnabas.cluster.id",
		"KAFKA_KRAFT_CLUSTER_ID=x":          "barnabas.cluster.id",
		"KAFKA_NUM_PARTITIONS=":             "",
		"KAFKA_PORT=tcp://10.0.0.1:9092":    "",
		"KAFKA_PORT_9092_TCP_ADDR=10.0.0.1": "",
		"KAFKA_SERVICE_HOST=10.0.0.1":       "",
		"KAFKA_JMX_OPTS=x":                  "",
		"BARNABAS_DATA=/x":                  "log.dirs",
		"BARNABAS_BROKER=x":                 "",
		"BARNABAS_CONFIG=x":                 "",
		"num.partitions=2":                  "",
		"NOT_A_PAIR":                        "",
	} {
		list := fromEnv([]string{name})
		got := ""
		if len(list) > 0 {
			got = list[0].Key
		}
		if got != want {
			t.Errorf("%s sets %q, want %q", name, got, want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	in := Input{
		Flags:    []Setting{given("num.partitions", "4"), given("num.partitions", "5")},
		Environ:  []string{"KAFKA_NUM_PARTITIONS=3", "KAFKA_FETCH_MAX_BYTES=3000"},
		File:     "f",
		FileText: []byte("num.partitions=2\nfetch.max.bytes=2000\nmessage.max.bytes=1000\nlog.retention.hours=1\n"),
	}
	static, _ := load(t, in)
	s := static.Snapshot()
	if got := [...]int32{NumPartitions.Get(s), FetchMaxBytes.Get(s), MessageMaxBytes.Get(s), OffsetMetadataMaxBytes.Get(s)}; got != [...]int32{5, 3000, 1000, 4096} {
		t.Errorf("flag, environment, file, default: %v", got)
	}
	all := map[string]string{"message.max.bytes": "2000", "log.segment.bytes": "2000000", "log.retention.ms": "70000", "num.partitions": "9"}
	own := map[string]string{"message.max.bytes": "3000"}
	s = NewSnapshot(static, own, all)
	if got := MessageMaxBytes.Get(s); got != 3000 {
		t.Errorf("this broker: %d", got)
	}
	if got := LogSegmentBytes.Get(s); got != 2000000 {
		t.Errorf("all brokers: %d", got)
	}
	if got := NumPartitions.Get(s); got != 5 {
		t.Errorf("a read-only key was changed: %d", got)
	}
	topic := s.Topic("t", map[string]string{"max.message.bytes": "4000"})
	if topic.MaxMessageBytes != 4000 || topic.Log.SegmentBytes != 2000000 || topic.Log.RetentionMs != 70000 {
		t.Errorf("topic: %+v", topic)
	}
	if got := LogRetentionMs.Get(static.Snapshot()); got != 3600000 {
		t.Errorf("hours as milliseconds: %d", got)
	}
	s = NewSnapshot(static, map[string]string{"message.max.bytes": "bad"}, all)
	if got := MessageMaxBytes.Get(s); got != 2000 {
		t.Errorf("a value that can't be read counts as not set: %d", got)
	}
}

func TestShorthand(t *testing.T) {
	for _, c := range []struct{ listen, advertise, want string }{
		{"9192", "", "PLAINTEXT://:9192"},
		{"0.0.0.0:9192", "", "PLAINTEXT://0.0.0.0:9192"},
		{":0", "", "PLAINTEXT://:0"},
		{"9192", "kafka", "PLAINTEXT://:9192 kafka:9192"},
		{"9192", "kafka:7", "PLAINTEXT://:9192 kafka:7"},
		{"a://:1,b://:2", "kafka:7", "A://:1 kafka:7 B://:2"},
		{"9192", "fe80::1", "PLAINTEXT://:9192 fe80::1:9192"},
		{"[::1]:9192", "[fe80::1]:7", "PLAINTEXT://::1:9192 fe80::1:7"},
		{"", "kafka:7", "PLAINTEXT://:9092 kafka:7"},
	} {
		var flags []Setting
		if c.listen != "" {
			flags = append(flags, given("listeners", c.listen))
		}
		if c.advertise != "" {
			flags = append(flags, given("advertised.listeners", c.advertise))
		}
		static, _ := load(t, Input{Flags: flags})
		var got []string
		for _, l := range static.Listeners() {
			got = append(got, fmt.Sprintf("%s://%s:%d", l.Name, l.Host, l.Port))
			if l.AdvertisedHost != "" {
				got = append(got, fmt.Sprintf("%s:%d", l.AdvertisedHost, l.AdvertisedPort))
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s, %s: got %s, want %s", c.listen, c.advertise, text, c.want)
		}
	}
}

// Each refusal names key, value, where it came from and what is allowed.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"num.partitions=0", "num.partitions=0 (f:1): want a whole number of at least 1"},
		{"num.partitions=many", "num.partitions=many (f:1): want a whole number of at least 1"},
		{"fetch.max.bytes=1", "fetch.max.bytes=1 (f:1): want a whole number of at least 1024"},
		{"log.cleaner.min.cleanable.ratio=2", "log.cleaner.min.cleanable.ratio=2 (f:1): want a number from 0 to 1"},
		{"auto.create.topics.enable=yes", "auto.create.topics.enable=yes (f:1): want true or false"},
		{"log.cleanup.policy=shred", "log.cleanup.policy=shred (f:1): want a list of compact or delete"},
		{"compression.type=none", "compression.type=none (f:1): want uncompressed, zstd, lz4, snappy, gzip or producer"},
		{"log.dirs=/a,/b", "log.dirs=/a,/b (f:1): a second data folder (/b) can't be used yet; want one"},
		{"log.dirs=", "log.dirs= (f:1): want a folder"},
		{"log.dirs=/a\nmetadata.log.dir=/b", "metadata.log.dir=/b (f:2): metadata can't be kept apart from the data yet; want /a, or leave it out"},
		{"node.id=1\nbroker.id=2", "broker.id=2 (f:2): node.id is 1; want the same number, or leave broker.id out"},
		{"barnabas.cluster.id=a b", "barnabas.cluster.id=a b (f:1): want letters, digits, - and _, at most 36, such as 4L6g3nShT-eMCtK--X86sw"},
		{"process.roles=controller", "process.roles=controller (f:1): a node of controllers only can't be run yet; want broker,controller"},
		{"process.roles=broker", "process.roles=broker (f:1): controllers on other nodes can't be used yet; want broker,controller"},
		{"process.roles=boss", "process.roles=boss (f:1): want a list of broker or controller"},
		{"controller.quorum.voters=1@a:1,2@b:1", "controller.quorum.voters=1@a:1,2@b:1 (f:1): a cluster of 2 nodes can't be made yet; want this node alone, or leave it out"},
		{"controller.quorum.voters=2@a:1", "controller.quorum.voters=2@a:1 (f:1): this node is 1 and can't join another's cluster yet; want 1@host:port, or leave it out"},
		{"controller.quorum.voters=here", "controller.quorum.voters=here (f:1): \"here\" is not id@host:port"},
		{"authorizer.class.name=a.B", "authorizer.class.name=a.B (f:1): access rules can't be enforced yet; leave it out"},
		{"remote.log.storage.system.enable=true", "remote.log.storage.system.enable=true (f:1): there is no tiered storage; want false"},
		{"log.retention.ms=0", "log.retention.ms=0 (f:1): want -1 for no limit, or at least 1"},
		{"group.min.session.timeout.ms=9000000", "group.min.session.timeout.ms=9000000 (f:1): the smallest session time-out (9000000) is above the largest (1800000)"},
		{"group.consumer.session.timeout.ms=90000", "group.consumer.session.timeout.ms=90000 (f:1): group.consumer.max.session.timeout.ms is 60000; want at most that"},
		{"group.consumer.heartbeat.interval.ms=1", "group.consumer.heartbeat.interval.ms=1 (f:1): group.consumer.min.heartbeat.interval.ms is 5000; want at least that"},
		{"group.consumer.max.assignment.interval.ms=1\ngroup.consumer.min.assignment.interval.ms=2", "group.consumer.max.assignment.interval.ms=1 (f:1): group.consumer.min.assignment.interval.ms is 2; want at least that"},
		{"group.consumer.min.session.timeout.ms=1\ngroup.consumer.session.timeout.ms=5000", "group.consumer.heartbeat.interval.ms=5000 (default): group.consumer.session.timeout.ms is 5000; want less than that"},
		{"group.consumer.assignors=sticky", "group.consumer.assignors=sticky (f:1): want a list of uniform, range, org.apache.kafka.coordinator.group.assignor.UniformAssignor or org.apache.kafka.coordinator.group.assignor.RangeAssignor"},
		{"queued.max.request.bytes=5", "queued.max.request.bytes=5 (f:1): want at least socket.request.max.bytes, which is 104857600, or set that lower as well: socket.request.max.bytes=5"},
		{"max.connections.per.ip.overrides=a", "max.connections.per.ip.overrides=a (f:1): \"a\" is not address:number; want address:number,address:number"},
		{"barnabas.admin.listener=9080", "barnabas.admin.listener=9080 (f:1): want host:port, or off"},
		{"listeners=SSL://:9093", "listeners=SSL://:9093 (f:1): SSL can't be served yet; want PLAINTEXT listeners only"},
		{"listeners=A://:1\nlistener.security.protocol.map=A:SASL_SSL", "listeners=A://:1 (f:1): A uses SASL_SSL, which can't be served yet; want PLAINTEXT listeners only"},
		{"listeners=A://:1\nlistener.security.protocol.map=B:PLAINTEXT", "listeners=A://:1 (f:1): listener.security.protocol.map has no protocol for A"},
		{"listeners=MY_TLS://:1", "listeners=MY_TLS://:1 (f:1): listener.security.protocol.map has no protocol for MY_TLS"},
		{"listener.security.protocol.map=A:TLS", "listener.security.protocol.map=A:TLS (f:1): \"TLS\" in \"A:TLS\" is not a protocol; want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"},
		{"listeners=A://:1,A://:2", "listeners=A://:1,A://:2 (f:1): A stands twice; each listener needs a name of its own"},
		{"listeners=A://:1,B://:1", "listeners=A://:1,B://:1 (f:1): port 1 stands twice; each listener needs a port of its own"},
		{"listeners=A://:99999", "listeners=A://:99999 (f:1): \"99999\" in \"A://:99999\" is not a port; want a number from 0 to 65535"},
		{"listeners=A://x", "listeners=A://x (f:1): \"A://x\" has no port; want NAME://host:port"},
		{"listeners=C://:1\ncontroller.listener.names=C", "listeners=C://:1 (f:1): there is no listener for clients; want one such as PLAINTEXT://:9092"},
		{"advertised.listeners=B://x:1", "advertised.listeners=B://x:1 (f:1): listeners has no B; it has PLAINTEXT"},
		{"advertised.listeners=PLAINTEXT://0.0.0.0:1", "advertised.listeners=PLAINTEXT://0.0.0.0:1 (f:1): PLAINTEXT://0.0.0.0:1 can't be reached by anyone; want an address that clients can connect to, or leave it out: then each client is told the address it connected to"},
		{"advertised.listeners=PLAINTEXT://x:0", "advertised.listeners=PLAINTEXT://x:0 (f:1): port 0 of PLAINTEXT can't be reached by anyone; want a number from 1 to 65535"},
		{"inter.broker.listener.name=X", "inter.broker.listener.name=X (f:1): listeners has no X; it has PLAINTEXT"},
		{"security.inter.broker.protocol=SSL", "security.inter.broker.protocol=SSL (f:1): SSL can't be served yet; want PLAINTEXT"},
		{"a=\\uzz", "config=f: line 1: \"\\uzz\" is not a character: four hexadecimal digits follow \\u"},
	} {
		_, _, err := Load(Input{File: "f", FileText: []byte(c.text)})
		var refusal *Refusal
		if !errors.As(err, &refusal) || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestRefusalsNameTheirSource(t *testing.T) {
	_, _, err := Load(Input{
		Flags:    []Setting{{Key: "num.partitions", Value: "x", Where: "flag --partitions"}},
		Environ:  []string{"KAFKA_FETCH_MAX_BYTES=x"},
		File:     "a.properties",
		FileText: []byte("\n\nmessage.max.bytes=x\nssl.key.password=s\\\nticket\n"),
	})
	want := "fetch.max.bytes=x (environment variable KAFKA_FETCH_MAX_BYTES): want a whole number of at least 1024\n" +
		"message.max.bytes=x (a.properties:3): want a whole number of at least 0\n" +
		"num.partitions=x (flag --partitions): want a whole number of at least 1"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if text := (Setting{Key: "ssl.key.password", Value: "secret"}).String(); strings.Contains(text, "secret") {
		t.Errorf("a password is shown: %s", text)
	}
}

func TestWarnings(t *testing.T) {
	for text, want := range map[string]string{
		"num.partition=1":                    "num.partition (f:1) is not a known key and has no effect; did you mean num.partitions?",
		"log.retention.hrs=1":                "log.retention.hrs (f:1) is not a known key and has no effect; did you mean log.retention.ms?",
		"advertised.listener=x":              "advertised.listener (f:1) is not a known key and has no effect; did you mean advertised.listeners?",
		"my.own.thing=1":                     "my.own.thing (f:1) is not a known key and has no effect",
		"retention.ms=1":                     "retention.ms (f:1) is a topic's key; it is taken as log.retention.ms, for all topics",
		"remote.storage.enable=1":            "remote.storage.enable (f:1) is a topic's key and has no effect here; set it on a topic",
		"zookeeper.connect=a":                "zookeeper.connect (f:1) was a key of Kafka before 4.0 and has no effect",
		"metric.reporters=a.B":               "metric.reporters=a.B (f:1) has no effect: Java classes can't be loaded; metrics are on the admin address under /metrics",
		"num.partitions=1\nnum.partitions=2": "num.partitions is set twice: f:2 takes the place of f:1",
		"listener.name.a.ssl.keystore.location=x\nrsm.config.x=1": "",
	} {
		_, warnings := load(t, Input{File: "f", FileText: []byte(text)})
		if got := strings.Join(warnings, "\n"); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

// broker.id of older files is node.id.
func TestBrokerID(t *testing.T) {
	static, _ := load(t, Input{File: "f", FileText: []byte("broker.id=7\ncontroller.quorum.voters=7@localhost:9093\n")})
	if got := NodeID.Get(static.Snapshot()); got != 7 {
		t.Errorf("node.id %d", got)
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"num.partitoins":      "num.partitions",
		"NUM.PARTITIONS":      "num.partitions",
		"listners":            "listeners",
		"log.retension.hours": "log.retention.hours",
		"bootstrap.servers":   "",
		"x":                   "",
	} {
		if got := Nearest(name, brokerKeys.names()); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if d := editDistance("ab", "ba", 9); d != 1 {
		t.Errorf("a swap counts %d", d)
	}
	if d := editDistance("kitten", "sitting", 9); d != 3 {
		t.Errorf("kitten to sitting counts %d", d)
	}
}

// A topic's key that is given to the broker is the broker's key behind it, from
// every source, and is refused like it.
func TestTopicKeysOfTheBroker(t *testing.T) {
	for _, in := range []Input{
		{Flags: []Setting{{Key: "flush.messages", Value: "1", Where: "flag --set"}}},
		{Environ: []string{"KAFKA_FLUSH_MESSAGES=1"}},
		{File: "f", FileText: []byte("flush.messages=1")},
	} {
		static, warnings := load(t, in)
		if got := LogFlushIntervalMessages.Get(static.Snapshot()); got != 1 || len(warnings) != 1 {
			t.Errorf("%+v: flushes after %d, warnings %q", in, got, warnings)
		}
	}
	static, warnings := load(t, Input{
		Flags: []Setting{{Key: "retention.ms", Value: "1"}}, Environ: []string{"KAFKA_LOG_RETENTION_MS=2"},
	})
	want := "retention.ms is a topic's key and has no effect here, because log.retention.ms (environment variable KAFKA_LOG_RETENTION_MS) is given"
	if got := LogRetentionMs.Get(static.Snapshot()); got != 2 || !slices.Equal(warnings, []string{want}) {
		t.Errorf("the broker's own key does not win: %d, %q", got, warnings)
	}
	_, _, err := Load(Input{Flags: []Setting{{Key: "flush.messages", Value: "0", Where: "flag --set"}}})
	if err == nil || !strings.Contains(err.Error(), "log.flush.interval.messages=0 (flag --set, as flush.messages): want ") {
		t.Errorf("refused with %v", err)
	}
}

func TestSound(t *testing.T) {
	static := Sound(Input{Flags: []Setting{
		{Key: "num.partitions", Value: "none"}, {Key: "listeners", Value: "SSL://:1"}, {Key: "log.dirs", Value: "here"},
	}, Environ: []string{"KAFKA_FETCH_MAX_BYTES=1"}, File: "f", FileText: []byte("a=\\uXX")})
	if static == nil || static.Snapshot().DataDir() != "here" || NumPartitions.Get(static.Snapshot()) != 1 {
		t.Errorf("what is left: %+v", static)
	}
}

// What Kafka takes is taken: its default interval lies above our own.
func TestSmallestAssignmentInterval(t *testing.T) {
	static, _ := load(t, Input{Flags: []Setting{given("group.consumer.min.assignment.interval.ms", "500")}})
	if c := static.Snapshot().GroupConfig().Consumer; c.AssignmentIntervalMs.MinMs != 500 {
		t.Errorf("%+v", c)
	}
	old, _ := load(t, Input{Flags: []Setting{
		given("group.consumer.assignors", "org.apache.kafka.coordinator.group.assignor.RangeAssignor"), given("group.consumer.migration.policy", "UPGRADE"),
	}})
	if c := old.Snapshot().GroupConfig().Consumer; len(c.Assignors) != 1 || c.Assignors[0] != "range" || !c.Upgrade || c.Downgrade {
		t.Errorf("%+v", c)
	}
}

// No reserve is none, not the default.
func TestNoReserve(t *testing.T) {
	for value, want := range map[string]int64{"0": -1, "1000": 1000} {
		s, _ := load(t, Input{Flags: []Setting{{Key: ReserveBytes.Name, Value: value, Where: "flag --set"}}})
		if got := s.Snapshot().StoreConfig().ReserveBytes; got != want {
			t.Errorf("%s: the store is told %d", value, got)
		}
	}
}
