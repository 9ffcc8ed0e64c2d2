package nodesuite

import (
	"os/exec"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const emptyIsNull = "it expects an empty buffer where the client gives null"

var suite = &harness.Suite{
	Name:    "node-rdkafka's end-to-end tests",
	Version: "3.6.1",
	Parse:   harness.ParseMocha,
	Least:   64,
	Limit:   6 * time.Minute,
	Oracle: map[string]string{
		"Consumer|Producer should be able to produce and consume messages: empty buffer key and empty value":                                         emptyIsNull,
		"Consumer|Producer should be able to produce and consume messages: empty key and empty value":                                                emptyIsNull,
		"Producer with_dr_msg_cb should produce a message with an empty payload and empty key (https:||github.com|Blizzard|node-rdkafka|issues|117)": emptyIsNull,
	},
}

func TestMain(m *testing.M) {
	suite.Install = func() (*exec.Cmd, error) {
		dir, err := harness.NodeRdkafka(suite.Version)
		if err != nil {
			return nil, err
		}
		return exec.Command("sh", "-c", "exec "+dir+"/node_modules/.bin/mocha --exit --timeout 60000 --reporter json-stream "+
			dir+"/node_modules/node-rdkafka/e2e/*.spec.js"), nil
	}
	suite.Prepare()
	harness.Main(m, nil)
}

func TestSuite(t *testing.T) {
	createTopics(t, "test", "test2", "test3") // as its own set-up does
	suite.Run(t, "KAFKA_HOST="+harness.Shared.Addr())
}

func createTopics(t *testing.T, names ...string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(harness.Shared.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	created, err := kadm.NewClient(cl).CreateTopics(harness.Context(t, time.Minute), 1, 1, nil, names...)
	if err != nil || created.Error() != nil {
		t.Fatal(err, created.Error())
	}
	for _, name := range names {
		harness.Settle(t, name, 1)
	}
}
