package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/protocol"
)

// firstFencedInit is the version of InitProducerId from which its clients know
// PRODUCER_FENCED (KIP-588).
const firstFencedInit = 4

// initProducerID serves InitProducerId v0 to v5 (KIP-98). An idempotent producer
// that asks again, with the id and epoch that it had (KIP-360), gets a new id:
// without a transactional id nothing ties it to the old one.
func (h *Handlers) initProducerID(c *Call, req *kmsg.InitProducerIDRequest, resp *kmsg.InitProducerIDResponse) {
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	switch {
	case (req.ProducerID < 0) != (req.ProducerEpoch < 0):
		resp.ErrorCode = kerr.InvalidRequest.Code
	case req.TransactionalID != nil && *req.TransactionalID == "":
		resp.ErrorCode = kerr.InvalidRequest.Code
	case req.TransactionalID != nil:
		h.Transactions.InitProducerID(req, func(p txn.Produced) {
			h.guard(c, func() {
				resp.ProducerID, resp.ProducerEpoch = p.ID, p.Epoch
				resp.ErrorCode = fencedCode(p.Err, req.Version >= firstFencedInit)
				c.Reply()
			})
		})
		return
	default:
		h.ProducerIDs.Next(func(id int64, err error) {
			h.guard(c, func() {
				if resp.ErrorCode = protocol.Code(err); err == nil {
					resp.ProducerID, resp.ProducerEpoch = id, 0
				}
				c.Reply()
			})
		})
		return
	}
	c.Reply()
}

// producerIDWaiters bounds the requests that wait for a block of ids.
const producerIDWaiters = 10_000

// ProducerIDs hands out producer ids, each once in the life of the cluster, from
// blocks that the controller allocates.
type ProducerIDs struct {
	// allocate asks for a block.
	allocate func(done func(start int64, count int32, err error))

	mu        sync.Mutex
	next, end int64
	asking    bool
	waiting   []func(int64, error)
}

// NewProducerIDs takes its blocks from the controller. epoch is this broker's
// epoch when it asks.
func NewProducerIDs(ctl Controller, nodeID int32, epoch func() int64) *ProducerIDs {
	return &ProducerIDs{allocate: func(done func(int64, int32, error)) {
		req := kmsg.NewPtrAllocateProducerIDsRequest()
		req.BrokerID, req.BrokerEpoch = nodeID, epoch()
		ctl.Handle(req, func(resp kmsg.Response, err error) {
			r, ok := resp.(*kmsg.AllocateProducerIDsResponse)
			switch {
			case err != nil:
			case !ok || r.ProducerIDLen <= 0 && r.ErrorCode == 0:
				err = protocol.Errorf(kerr.UnknownServerError, "the controller answered without a block of producer ids")
			case r.ErrorCode != 0:
				err = kerr.ErrorForCode(r.ErrorCode)
			}
			if err != nil {
				done(0, 0, err)
				return
			}
			done(r.ProducerIDStart, r.ProducerIDLen, nil)
		})
	}}
}

// Next gives done an id, at once or when the controller has allocated a block.
// What keeps the controller from it is COORDINATOR_LOAD_IN_PROGRESS to clients,
// which they retry.
func (p *ProducerIDs) Next(done func(id int64, err error)) {
	p.mu.Lock()
	if p.next < p.end {
		id := p.next
		p.next++
		p.mu.Unlock()
		done(id, nil)
		return
	}
	if len(p.waiting) >= producerIDWaiters {
		p.mu.Unlock()
		done(-1, protocol.Errorf(kerr.CoordinatorLoadInProgress, "%d requests wait for a producer id", producerIDWaiters))
		return
	}
	p.waiting = append(p.waiting, done)
	ask := !p.asking
	p.asking = true
	p.mu.Unlock()
	if ask {
		p.allocate(p.allocated)
	}
}

// allocated serves who waits from a new block, and asks for another when it was
// not enough.
func (p *ProducerIDs) allocated(start int64, count int32, err error) {
	p.mu.Lock()
	var served []func(int64, error)
	first := start
	if err != nil {
		served, p.waiting = p.waiting, nil
		err = protocol.Errorf(kerr.CoordinatorLoadInProgress, "allocate producer ids: %w", err)
	} else {
		p.next, p.end = start, start+int64(count)
		n := min(len(p.waiting), int(count))
		served, p.waiting = p.waiting[:n:n], p.waiting[n:]
		p.next += int64(n)
	}
	p.asking = len(p.waiting) > 0
	again := p.asking
	p.mu.Unlock()
	for i, done := range served {
		if err != nil {
			done(-1, err)
			continue
		}
		done(first+int64(i), nil)
	}
	if again {
		p.allocate(p.allocated)
	}
}
