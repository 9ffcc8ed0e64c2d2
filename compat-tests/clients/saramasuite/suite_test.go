package saramasuite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const (
	module = "github.com/IBM/sarama"
	// The tests reach the brokers through a proxy that they break and mend; all five names lead to the one broker.
	brokerPort, firstProxy, proxies = 29090, 29091, 5
	toxiproxy                       = "github.com/Shopify/toxiproxy/v2"
	toxiproxyVersion                = "v2.12.0"
)

const (
	severalBrokers = "needs several brokers, and there is one"
	stopsBroker    = "stops a broker by docker compose"
	readsLog       = "reads the broker's log by docker compose, once all its records are acknowledged"
	runsJava       = "leaves itself out unless it can run Java by docker compose"
)

var suite = &harness.Suite{
	Name:    "IBM/sarama's functional tests",
	Version: harness.ModuleVersion(module),
	Parse:   harness.ParseGoTest(),
	Least:   80,
	Limit:   10 * time.Minute,
	// Against one node of Apache Kafka 4.4 each of them fails in the same place.
	Oracle: map[string]string{
		"TestConsumerFetchFollowerFailover":        severalBrokers,
		"TestFuncAdminAlterPartitionReassignments": severalBrokers,
		"TestFuncAdminDescribeLogDirs":             severalBrokers,
		"TestFuncAdminListConsumerGroupOffsets":    stopsBroker,
		"TestFuncTxnProduceWithBrokerFailure":      stopsBroker,
		"TestFuncIdempotentBufferedSequence":       readsLog,
		"TestFuncJavaInteropCooperativeRebalance":  runsJava,
		"TestJavaConsumerCompressionRoundTrip":     runsJava,
		"TestJavaMurmur2PartitionerInterop":        runsJava,
		"TestJavaProducerCompressionRoundTrip":     runsJava,
		"TestReadOnlyAndAllCommittedMessages":      "the suite leaves it out itself",
	},
}

var proxyServer string

func TestMain(m *testing.M) {
	suite.Install = func() (*exec.Cmd, error) {
		dir, err := harness.Install("toxiproxy-"+toxiproxyVersion, toxiproxyVersion, func(dir string) error {
			return harness.Command(dir, []string{"GOBIN=" + dir, "GOFLAGS="}, "go", "install", toxiproxy+"/cmd/server@"+toxiproxyVersion)
		})
		if err != nil {
			return nil, err
		}
		proxyServer = filepath.Join(dir, "server")
		return harness.GoSuite(module, suite.Version, "functional", oneReplica, "-test.timeout=9m", "-test.run=^Test(Func|Consumer|Version|Read|Interceptors|Async|Java)")
	}
	suite.Prepare()
	harness.SharedPort = brokerPort
	harness.Main(m, map[string]string{
		"advertised.listeners":      fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", firstProxy),
		"auto.create.topics.enable": "false",
	})
}

// oneReplica has the suite's own topics be made with one replica in place of three.
func oneReplica(dir string) error {
	file := filepath.Join(dir, "functional_test.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	changed := bytes.ReplaceAll(text, []byte("ReplicationFactor: 3,"), []byte("ReplicationFactor: 1,"))
	if bytes.Equal(changed, text) {
		return fmt.Errorf("%s creates its topics in another way", file)
	}
	return os.WriteFile(file, changed, 0o644)
}

func TestSuite(t *testing.T) {
	if proxyServer != "" {
		startProxies(t)
	}
	suite.Run(t, "TOXIPROXY_ADDR=http://127.0.0.1:8474", "KAFKA_VERSION=4.1.0")
}

func startProxies(t *testing.T) {
	t.Helper()
	type proxy struct {
		Name     string `json:"name"`
		Listen   string `json:"listen"`
		Upstream string `json:"upstream"`
		Enabled  bool   `json:"enabled"`
	}
	var list []proxy
	for i := range proxies {
		list = append(list, proxy{fmt.Sprintf("kafka%d", i+1), fmt.Sprintf("127.0.0.1:%d", firstProxy+i), harness.Shared.Addr(), true})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "proxies.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(proxyServer, "-config", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}
