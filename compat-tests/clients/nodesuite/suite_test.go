package nodesuite

import (
	"os/exec"
	"testing"
	"time"

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

func TestSuite(t *testing.T) { suite.Run(t, "KAFKA_HOST="+harness.Shared.Addr()) }
