package oldjava

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// partitions is how many an auto-created topic has: clients before 0.11 can't create one otherwise.
const partitions = "4"

// cases are what every client from 0.9 on does; more are added.
func cases(more ...string) []string {
	return append([]string{
		"codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "acks-0", "acks-1", "acks-all", "group-range", "group-roundrobin",
		"restart-none", "restart-gzip", "restart-snappy", "restart-lz4",
	}, more...)
}

const (
	noTimes   = "the client cannot search by time"
	noZstd    = "the client is older than zstd in Kafka"
	noAdmin   = "the client has no admin client"
	noTxn     = "the client is older than transactions"
	noHeaders = "the client is older than headers"
)

func TestMain(m *testing.M) {
	before11 := func(more map[string]string) map[string]string {
		lacks := map[string]string{"codec-zstd": noZstd, "admin": noAdmin, "transaction": noTxn, "fencing": noTxn, "idempotent": noTxn, "headers": noHeaders}
		for k, v := range more {
			lacks[k] = v
		}
		return lacks
	}
	harness.MainOf(m, map[string]string{"num.partitions": partitions},
		client("0.8.2.2", []string{"OldestProducer"}, []string{"produce-none", "produce-gzip", "produce-snappy", "produce-lz4"},
			map[string]string{"consume": "the consumer of 0.8.2 in Java is not finished; the one in Scala needs ZooKeeper"}),
		client("0.9.0.1", []string{"OldClient"}, cases(), before11(map[string]string{"offsets-by-time": noTimes})),
		client("0.10.0.1", []string{"OldClient"}, cases(), before11(map[string]string{"offsets-by-time": noTimes})),
		client("0.10.2.2", []string{"OldClient"}, cases("offsets-by-time"), before11(nil)),
		client("0.11.0.3", []string{"OldClient", "NewerClient"}, cases("offsets-by-time", "group-sticky", "idempotent", "admin", "transaction", "fencing"),
			map[string]string{"codec-zstd": noZstd}),
		client("2.1.1", []string{"OldClient", "NewerClient"}, cases("offsets-by-time", "group-sticky", "idempotent", "admin", "transaction", "fencing", "codec-zstd", "restart-zstd"), nil),
	)
}

func TestClients(t *testing.T) { harness.RunClients(t) }

// TestOldestIsReadBack reads what the producer of 0.8.2 wrote.
func TestOldestIsReadBack(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4"} {
		t.Run(codec, func(t *testing.T) {
			if harness.Clients[0].Err() != nil {
				harness.Skip(t, "%v", harness.Clients[0].Err())
			}
			ctx := harness.Context(t, 30*time.Second)
			c, err := kgo.NewClient(kgo.SeedBrokers(harness.Shared.Addr()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"oldest-" + codec: {0: kgo.NewOffset().AtStart()}}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for i := 0; i < 300; {
				fetches := c.PollFetches(ctx)
				if err := fetches.Err(); err != nil {
					t.Fatalf("after %d records: %v", i, err)
				}
				for _, r := range fetches.Records() {
					key := fmt.Sprintf("key %d", i)
					if r.Offset != int64(i) || (r.Key == nil) != (i%7 == 0) || r.Key != nil && string(r.Key) != key || string(r.Value) != fmt.Sprintf("value %d the quick brown fox", i) {
						t.Fatalf("record %d: offset %d, %q=%q", i, r.Offset, r.Key, r.Value)
					}
					i++
				}
			}
		})
	}
}

// client is a version of kafka-clients in a folder of its own, with our programs compiled against it.
func client(version string, programs, cases []string, lacks map[string]string) *harness.Client {
	here := filepath.Join(harness.Root(), "clients", "oldjava")
	install := func() (*exec.Cmd, error) {
		if _, err := exec.LookPath("javac"); err != nil {
			return nil, fmt.Errorf("%w: %w", harness.ErrNoJVM, err)
		}
		recipe := "kafka-clients " + version
		var sources []string
		for _, p := range programs {
			source, err := os.ReadFile(filepath.Join(here, p+".java"))
			if err != nil {
				return nil, err
			}
			sources = append(sources, filepath.Join(here, p+".java"))
			recipe += "\n" + string(source)
		}
		dir, err := harness.Install("oldjava/"+version, recipe, func(dir string) error {
			libs := filepath.Join(dir, "libs")
			err := harness.Command(dir, nil, "mvn", "-q", "-B", "-f", filepath.Join(here, "pom.xml"), "-Dkafka.version="+version,
				"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+libs)
			if err != nil {
				return err
			}
			compile := []string{"-nowarn", "-cp", filepath.Join(libs, "*"), "-d", filepath.Join(dir, "classes")}
			return harness.Command(dir, nil, "javac", append(compile, sources...)...)
		})
		if err != nil {
			return nil, err
		}
		return exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
			"-cp", filepath.Join(dir, "classes")+string(os.PathListSeparator)+filepath.Join(dir, "libs", "*"), programs[0]), nil
	}
	return &harness.Client{Name: "kafka-clients (Java)", Version: version, Install: install, Cases: cases, Lacks: lacks}
}
