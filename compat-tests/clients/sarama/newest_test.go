//go:build !old

package sarama

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
)

const clientName = "IBM/sarama"

var lacks map[string]string

var strategies = map[string]sarama.BalanceStrategy{
	"range": sarama.NewBalanceStrategyRange(), "roundrobin": sarama.NewBalanceStrategyRoundRobin(), "sticky": sarama.NewBalanceStrategySticky(),
}

func setStrategy(c *sarama.Config, name string) {
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[name]}
}

func setConfig(adm sarama.ClusterAdmin, topic, key, value string) error {
	set := sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
	return adm.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{key: set}, false)
}

func newClient() cases.Client { return transactor{} }

// transactor is the client with its transactions.
type transactor struct{ client }

// producer is a producer with a transactional id.
type producer struct {
	sarama.SyncProducer
	group, input string
}

func (transactor) Transactional(_ context.Context, id, group, input string) (cases.Transactional, error) {
	c := config(sarama.MaxVersion)
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Transaction.ID, c.Producer.Idempotent, c.Net.MaxOpenRequests = id, true, 1
	c.Producer.RequiredAcks, c.Producer.Transaction.Timeout = sarama.WaitForAll, time.Minute
	p, err := sarama.NewSyncProducer(brokers(), c)
	return &producer{p, group, input}, err
}

func (transactor) Fenced(err error) bool {
	return errors.Is(err, sarama.ErrProducerFenced) || errors.Is(err, sarama.ErrInvalidProducerEpoch)
}

func (p *producer) Begin() error { return p.BeginTxn() }

func (p *producer) Send(_ context.Context, topic string, records []cases.Record) error {
	return p.SendMessages(messages(topic, records))
}

func (p *producer) SendOffset(_ context.Context, next int64) error {
	return p.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{p.input: {{Partition: 0, Offset: next}}}, p.group)
}

func (p *producer) Commit(context.Context) error { return p.CommitTxn() }

func (p *producer) Abort(context.Context) error { return p.AbortTxn() }

func (p *producer) Close() { _ = p.SyncProducer.Close() } // a fenced producer's says once more that it is
