package txn

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/pattern"
)

// Describe describes one transactional id.
func (c *Coordinator) Describe(transactionalID string, done func(kmsg.DescribeTransactionsResponseTransactionState)) {
	resp := kmsg.NewDescribeTransactionsResponseTransactionState()
	resp.TransactionalID = transactionalID
	if transactionalID == "" {
		resp.ErrorCode = kerr.InvalidRequest.Code
		done(resp)
		return
	}
	c.submit(transactionalID, DescribeTxn{transactionalID}, func(answer any, err *kerr.Error) {
		d, _ := answer.(Described)
		t := d.Transaction
		switch {
		case err != nil:
			resp.ErrorCode = err.Code
		case t == nil:
			resp.ErrorCode = kerr.TransactionalIDNotFound.Code
		default:
			resp.State, resp.TimeoutMillis, resp.StartTimestamp = t.State.String(), t.TimeoutMs, t.StartMs
			resp.ProducerID, resp.ProducerEpoch = t.ProducerID, t.Epoch
			for _, topic := range byTopic(t.Partitions) {
				rt := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
				rt.Topic, rt.Partitions = topic.Topic, topic.Partitions
				resp.Topics = append(resp.Topics, rt)
			}
		}
		done(resp)
	})
}

// List lists the transactional ids of all partitions that this broker leads. The
// answer is an error as a whole while one of them is loading.
func (c *Coordinator) List(r *kmsg.ListTransactionsRequest, done func(*kmsg.ListTransactionsResponse)) {
	req := ListTxns{ProducerIDs: map[int64]struct{}{}, States: map[State]struct{}{}, OlderThanMs: r.DurationFilterMillis}
	for _, id := range r.ProducerIDFilters {
		req.ProducerIDs[id] = struct{}{}
	}
	resp := kmsg.NewPtrListTransactionsResponse()
	for _, name := range r.StateFilters {
		if s, ok := stateOf(name); ok {
			req.States[s] = struct{}{}
		} else {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, name)
		}
	}
	if r.TransactionalIDPattern != nil && *r.TransactionalIDPattern != "" {
		re, err := pattern.Compile(*r.TransactionalIDPattern)
		if err != nil {
			resp = kmsg.NewPtrListTransactionsResponse()
			resp.ErrorCode = kerr.InvalidRegularExpression.Code
			done(resp)
			return
		}
		req.Pattern = re.Regexp
	}
	if len(r.StateFilters) > 0 && len(req.States) == 0 {
		done(resp) // only states that do not exist
		return
	}
	c.gather(req, resp, done)
}

func (c *Coordinator) gather(req ListTxns, resp *kmsg.ListTransactionsResponse, done func(*kmsg.ListTransactionsResponse)) {
	// The many partitions that were never used need not be opened to say so.
	partitions := slices.DeleteFunc(c.rt.Partitions(), func(p int32) bool { return !c.o.Written(p) })
	event := func(call uint64) Event { return Event{Call: call, Level: c.o.Level(), Request: req} }
	c.rt.Gather(partitions, event, func(a Answer) {
		ids, _ := a.Response.([]Listed)
		for _, id := range ids {
			s := kmsg.NewListTransactionsResponseTransactionState()
			s.TransactionalID, s.ProducerID, s.TransactionState = id.TransactionalID, id.ProducerID, id.State.String()
			resp.TransactionStates = append(resp.TransactionStates, s)
		}
	}, func(err error) {
		if err != nil {
			resp.ErrorCode, resp.TransactionStates = codeOf(err).Code, nil
		}
		slices.SortFunc(resp.TransactionStates, func(a, b kmsg.ListTransactionsResponseTransactionState) int {
			return strings.Compare(a.TransactionalID, b.TransactionalID)
		})
		done(resp)
	})
}
