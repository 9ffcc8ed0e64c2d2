//go:build cgo && !old

package confluent

import (
	"context"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
)

var lacks map[string]string

func newClient() cases.Client { return lister{} }

// lister is the client with its list of groups.
type lister struct{ client }

func (lister) Groups(ctx context.Context) (names []string, err error) {
	err = administering(func(adm *kafka.AdminClient) error {
		groups, err := adm.ListConsumerGroups(ctx)
		for _, g := range groups.Valid {
			names = append(names, g.GroupID)
		}
		return err
	})
	return names, err
}

func setTo(key, value string) kafka.ConfigEntry {
	return kafka.ConfigEntry{Name: key, Value: value, IncrementalOperation: kafka.AlterConfigOpTypeSet}
}

func alterConfig(ctx context.Context, adm *kafka.AdminClient, resource kafka.ConfigResource) ([]kafka.ConfigResourceResult, error) {
	return adm.IncrementalAlterConfigs(ctx, []kafka.ConfigResource{resource})
}
