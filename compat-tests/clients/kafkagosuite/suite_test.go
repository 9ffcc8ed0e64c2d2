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
	// toldOnce: with Apache Kafka 4.4 too it fails half of the time, and always where nobody watches the partitions.
	toldOnce = "its reader has the topic made by asking for it, is told that it is unknown, and stays without partitions unless it is told so twice"
)

var suite = &harness.Suite{
	Name:    "segmentio/kafka-go's test suite",
	Version: harness.ModuleVersion(module),
	Parse:   harness.ParseGoTest(),
	Least:   480,
	Limit:   12 * time.Minute,
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
		"TestConsumerGroupWithGroupTopicsSingle":           toldOnce,
		"TestConsumerGroupWithTopic":                       toldOnce,
		"TestRebalanceTooManyConsumers":                    toldOnce,
		"TestClientElectLeaders":                           "it gives the election no time, and is told that the time is over",
		"TestReaderConsumerGroup/consumer_group_rebalance": "its topic has three partitions, which two readers cannot share evenly",
		"TestReaderReadCompactedMessage":                   "it creates its topic with segment.bytes=200, which is INVALID_CONFIG since Kafka 4: at least 1048576",
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
