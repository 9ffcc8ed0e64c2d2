//go:build !old

package franz

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

var lacks map[string]string

// newOptions are options that the old version does not have.
func newOptions() []kgo.Opt { return []kgo.Opt{kgo.DisableClientMetrics()} }

// initialise has the producer id given now, not with the first record of all.
func initialise(ctx context.Context, s *kgo.GroupTransactSession) error {
	_, _, err := s.Client().ProducerID(ctx)
	return err
}
