package nodesuite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const (
	version      = "3.6.1"
	mochaVersion = "10.8.2"
)

const (
	// empty: Node has no address for an empty buffer, which librdkafka takes for null.
	empty = "the client sends an empty key or value as null"
	// hang: as longerPoll says, but with a message every 100 ms no wait is long enough.
	hang = "now and then the client waits for ever for a message that came while its consumer ended"
	// crash: it hands on what it had fetched after the program has let go of it.
	crash = "the client hands a message to a consumer that has disconnected"
)

// specs are the suite's files.
var specs = []*harness.Suite{
	spec("admin", 5, nil),
	spec("both", 20, map[string]string{
		"Consumer-Producer should be able to produce and consume messages: empty buffer key and empty value": empty,
		"Consumer-Producer should be able to produce and consume messages: empty key and empty value":        empty,
	}),
	spec("consumer", 22, map[string]string{
		"Consumer committed and position should obey the timeout": "it wants an answer within no time not to come, and one time in four it does",
	}),
	spec("groups", 1, map[string]string{
		"Consumer group-Producer should be able to commit, read committed and restart from the committed offset": hang,
	}),
	spec("producer", 10, map[string]string{
		"Producer with_dr_msg_cb should produce a message with an empty payload and empty key": empty,
	}),
	spec("producer-transaction", 6, nil),
}

// spec is a file with that many tests, and those of them that fail against Apache Kafka as well.
func spec(file string, tests int, oracle map[string]string) *harness.Suite {
	return &harness.Suite{
		Name: "node-rdkafka's end-to-end tests", Version: version, Parse: harness.ParseMocha,
		Least: tests, Oracle: oracle, Crash: crash, Limit: 4 * time.Minute,
		Install: func() (*exec.Cmd, error) { return install(file + ".spec.js") },
	}
}

func TestMain(m *testing.M) {
	for _, s := range specs {
		s.Prepare()
	}
	harness.Main(m, nil)
}

func TestSuite(t *testing.T) {
	createTopics(t)
	for _, s := range specs {
		s.Run(t, "KAFKA_HOST="+harness.Shared.Addr())
	}
}

// createTopics makes those that the files expect to be there.
func createTopics(t *testing.T) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(harness.Shared.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	made, err := kadm.NewClient(client).CreateTopics(harness.Context(t, time.Minute), 1, 1, nil, "test", "test2")
	if err = errors.Join(err, made.Error()); err != nil {
		t.Fatal(err)
	}
}

func install(file string) (*exec.Cmd, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("there is no Node.js on this machine (apt-get install nodejs npm): %w", err)
	}
	dir, err := harness.NodeRdkafka(version)
	if err != nil {
		return nil, err
	}
	mocha, err := harness.Npm("node/mocha-"+mochaVersion, nil, "mocha@"+mochaVersion)
	if err != nil {
		return nil, err
	}
	e2e := filepath.Join(dir, "node_modules", "node-rdkafka", "e2e")
	if err := longerPoll(filepath.Join(e2e, "both.spec.js")); err != nil {
		return nil, err
	}
	cmd := exec.Command(node, filepath.Join(mocha, "node_modules", "mocha", "bin", "_mocha"),
		"--exit", "--timeout", "60000", "--reporter", "json-stream", filepath.Join(e2e, file))
	cmd.Dir = dir
	return cmd, nil
}

// longerPoll has a fetch of the tests wait longer than the client's own loop, which both take a second as the file is
// shipped: what arrives while a consumer ends its loop is never freed, and librdkafka then waits for it for ever. That
// hangs against Apache Kafka as well, the sooner the more exactly a broker keeps to the second.
func longerPoll(file string) error {
	const shipped, longer = "'fetch.wait.max.ms': 1000,", "'fetch.wait.max.ms': 1250,"
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if bytes.Contains(text, []byte(longer)) {
		return nil
	}
	changed := bytes.ReplaceAll(text, []byte(shipped), []byte(longer))
	if bytes.Equal(changed, text) {
		return fmt.Errorf("%s sets its fetches' wait in another way", file)
	}
	return os.WriteFile(file, changed, 0o644)
}
