package txn

import "github.com/twmb/franz-go/pkg/kerr"

// refusedAlone is what is wrong with a request by itself, whoever coordinates its
// transactional id: that is said of it also where nobody does, as in Kafka.
func refusedAlone(cfg *Config, req any) *kerr.Error {
	var id string
	switch r := req.(type) {
	case InitProducer:
		return checkInit(cfg, r)
	case EndTxn:
		id = r.TransactionalID
	case AddPartitions:
		id = r.TransactionalID
	case VerifyPartitions:
		id = r.TransactionalID
	default:
		return nil
	}
	if id == "" {
		return kerr.InvalidRequest
	}
	return nil
}

func checkInit(cfg *Config, r InitProducer) *kerr.Error {
	switch {
	case r.TransactionalID == "" || len(r.TransactionalID) > maxString:
		return kerr.InvalidRequest
	case r.TimeoutMs <= 0 || r.TimeoutMs > cfg.MaxTimeoutMs:
		return kerr.InvalidTransactionTimeout
	}
	return nil
}
