//go:build old

package kafkago

import (
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var lacks = map[string]string{
	"admin":       "the client has no requests for configs, partitions and groups",
	"idempotent":  "the client has no idempotent producer",
	"transaction": "the client has no transactions",
	"fencing":     "the client has no transactions",
}

func newClient() cases.Client { return caseClient{} }

var acks = map[string]int{"": -1, "all": -1, "1": 1, "0": 0}

func newWriter(topic string, with cases.Settings, balancer kafka.Balancer) *kafka.Writer {
	c := kafka.WriterConfig{
		Brokers: []string{harness.Shared.Addr()}, Topic: topic, Balancer: balancer, RequiredAcks: acks[with.Acks],
		BatchSize: 100, BatchTimeout: 5 * time.Millisecond,
	}
	if codec := codecs[with.Codec]; codec != 0 {
		c.CompressionCodec = codec.Codec()
	}
	return kafka.NewWriter(c)
}
