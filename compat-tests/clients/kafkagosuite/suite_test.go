package kafkagosuite

import (
	"os/exec"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const module = "github.com/segmentio/kafka-go"

const (
	needsSASL = "needs a SASL listener"
	leftOut   = "the suite leaves it out itself"
	needsACLs = "needs an authorizer"
	// autoCreated is so in every version of Metadata, and is listed among the differences from Apache Kafka.
	autoCreated = "it asks for a topic that it has deleted, which makes it anew: here the answer has the topic's row, where Apache Kafka says " +
		"LEADER_NOT_AVAILABLE once and leaves every client to ask again"
)

var suite = &harness.Suite{
	Name:    "segmentio/kafka-go's test suite",
	Version: harness.ModuleVersion(module),
	Parse:   harness.ParseGoTest(),
	Least:   480,
	Limit:   12 * time.Minute,
	Deliberate: map[string]string{
		"TestConn/test_delete_topics":                       autoCreated,
		"TestConn/test_delete_topics_with_an_invalid_topic": autoCreated,
	},
	OutOfScope: map[string]string{
		"TestClientAddOffsetsToTxn":                                   leftOut,
		"TestClientAddPartitionsToTxn":                                leftOut,
		"TestClientInitProducerId":                                    leftOut,
		"TestClientTxnOffsetCommit":                                   leftOut,
		"TestConn/nettest":                                            leftOut,
		"TestConsumerGroupWithMissingTopic":                           leftOut,
		"TestReadTruncatedMessages":                                   leftOut,
		"TestUnsupportedSASLMechanism":                                needsSASL,
		"TestWriter/writing_a_message_with_SASL_Plain_authentication": needsSASL,
		"TestClientCreateACLs":                                        needsACLs,
		"TestClientDeleteACLs":                                        needsACLs,
		"TestClientDescribeACLs":                                      needsACLs,
	},
	Oracle: map[string]string{
		"TestClientElectLeaders":                           "it gives the election no time, and is told that the time is over",
		"TestReaderConsumerGroup/consumer_group_rebalance": "its topic has three partitions, which two readers cannot share evenly",
		"TestReaderReadCompactedMessage":                   "it creates its topic with a config that is invalid since Kafka 4",
	},
}

func TestMain(m *testing.M) {
	suite.Install = func() (*exec.Cmd, error) {
		// The left-out tests are as its own workflow leaves them out.
		return harness.GoSuite(module, suite.Version, "", nil, "-test.timeout=11m", "-test.skip=TestReaderConsumerGroup/.*(commit|autocommit).*")
	}
	suite.Prepare()
	harness.SharedPort = 9092
	props := map[string]string{"message.max.bytes": "200000000"}
	if harness.KindFromEnv() == harness.Kafka {
		props["advertised.listeners"] = "PLAINTEXT://localhost:9092"
	}
	harness.Main(m, props)
}

func TestSuite(t *testing.T) {
	suite.Run(t, "KAFKA_VERSION=3.7.0", "KAFKA_SKIP_NETTEST=1")
}
