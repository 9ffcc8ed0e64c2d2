package runtime

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// appendErrors says what a coordinator's client hears when the coordinator's own
// append fails: these clients know nothing of produce errors (Kafka's
// CoordinatorOperationExceptionHelper).
var appendErrors = []struct{ is, says *kerr.Error }{
	{kerr.UnknownTopicOrPartition, kerr.CoordinatorNotAvailable},
	{kerr.NotEnoughReplicas, kerr.CoordinatorNotAvailable},
	{kerr.NotEnoughReplicasAfterAppend, kerr.CoordinatorNotAvailable},
	{kerr.RequestTimedOut, kerr.CoordinatorNotAvailable},
	{kerr.NotLeaderForPartition, kerr.NotCoordinator},
	{kerr.KafkaStorageError, kerr.NotCoordinator},
	{kerr.MessageTooLarge, kerr.UnknownServerError},
	{kerr.RecordListTooLarge, kerr.UnknownServerError},
	{kerr.InvalidFetchSize, kerr.UnknownServerError},
}

// forClients is a failed append as the waiting calls hear of it.
func forClients(err error) error {
	for _, a := range appendErrors {
		if errors.Is(err, a.is) {
			return protocol.Errorf(a.says, "write to the internal topic: %w", err)
		}
	}
	if isRefusal(err) {
		// A transactional producer knows these.
		return err
	}
	return protocol.Errorf(kerr.NotCoordinator, "write to the internal topic: %w", err)
}
