//go:build cgo && old

package confluent

import (
	"context"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka" // old.mod replaces it by version 1, whose module has another name

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
)

var lacks = map[string]string{
	"admin-groups":             "the client cannot list groups",
	"fencing":                  "the client takes an EndTxn that the broker refuses for a commit, with Apache Kafka as well",
	"group-cooperative-sticky": "the client is older than its cooperative assignor",
	"group-consumer":           "the client is older than KIP-848",
}

func newClient() cases.Client { return client{} }

func setTo(key, value string) kafka.ConfigEntry { return kafka.ConfigEntry{Name: key, Value: value} }

func alterConfig(ctx context.Context, adm *kafka.AdminClient, resource kafka.ConfigResource) ([]kafka.ConfigResourceResult, error) {
	return adm.AlterConfigs(ctx, []kafka.ConfigResource{resource})
}
