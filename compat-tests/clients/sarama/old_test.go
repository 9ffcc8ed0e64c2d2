//go:build old

package sarama

import (
	"github.com/IBM/sarama" // old.mod replaces it by what it was then, Shopify/sarama

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
)

const clientName = "Shopify/sarama"

var lacks = map[string]string{
	"codec-zstd":   "the client sends zstd in a version of Produce that may not have it, which Apache Kafka refuses too",
	"group-sticky": "the client is older than its sticky assignor",
	"transaction":  "the client has no transactions",
	"fencing":      "the client has no transactions",
}

var strategies = map[string]sarama.BalanceStrategy{
	"range": sarama.BalanceStrategyRange, "roundrobin": sarama.BalanceStrategyRoundRobin,
}

func setStrategy(c *sarama.Config, name string) {
	c.Consumer.Group.Rebalance.Strategy = strategies[name]
}

func setConfig(adm sarama.ClusterAdmin, topic, key, value string) error {
	return adm.AlterConfig(sarama.TopicResource, topic, map[string]*string{key: &value}, false)
}

func newClient() cases.Client { return client{} }
