package api

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// refuseTransactions is what a transactional producer hears: there is no
// coordinator of transactions. TRANSACTIONAL_ID_AUTHORIZATION_FAILED is the one
// code that every client takes as final, at the search for the coordinator and at
// InitProducerId; librdkafka asks again for ever after any other. The broker's own
// log says it once, because not every client shows the message.
func (h *Handlers) refuseTransactions(c *Call, transactionalID string) error {
	h.transactionsAsked.Do(func() {
		h.Log.Warn("a client asks for transactions, which this broker does not have: it is refused as not authorized",
			"client", c.Header.ClientID, "host", c.ClientHost(), "transactionalId", transactionalID)
	})
	return protocol.Errorf(kerr.TransactionalIDAuthorizationFailed, "this broker has no transactions")
}
