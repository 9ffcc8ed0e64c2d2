package api

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/protocol"
)

// The kinds of coordinators that a client can ask for, and the version from
// which it can ask for several at once.
const (
	coordinatorGroup       = 0
	coordinatorTransaction = 1
	findBatchVersion       = 4
)

// servingWait bounds how long a client that looks for its coordinator waits for
// it to load. It is answered then all the same.
const servingWait = 5 * time.Second

func (h *Handlers) findCoordinator(c *Call, req *kmsg.FindCoordinatorRequest, resp *kmsg.FindCoordinatorResponse) {
	keys := req.CoordinatorKeys
	if req.Version < findBatchVersion {
		keys = []string{req.CoordinatorKey}
	}
	gather(len(keys), func(i int, done func(kmsg.FindCoordinatorResponseCoordinator)) {
		h.findOne(c, req.CoordinatorType, keys[i], done)
	}, func(found []kmsg.FindCoordinatorResponseCoordinator) {
		h.guard(c, func() {
			if req.Version >= findBatchVersion {
				resp.Coordinators = found
			} else {
				f := &found[0]
				if f.ErrorCode == 0 {
					// Kafka says so to those that ask for one coordinator.
					none := "NONE"
					f.ErrorMessage = &none
				}
				resp.ErrorCode, resp.ErrorMessage = f.ErrorCode, f.ErrorMessage
				resp.NodeID, resp.Host, resp.Port = f.NodeID, f.Host, f.Port
			}
			c.Reply()
		})
	})
}

func (h *Handlers) findOne(c *Call, kind int8, key string, done func(kmsg.FindCoordinatorResponseCoordinator)) {
	fail := func(err error) {
		r := kmsg.NewFindCoordinatorResponseCoordinator()
		r.Key, r.NodeID, r.Port = key, -1, -1
		r.ErrorCode, r.ErrorMessage = protocol.Code(err), protocol.Message(err)
		done(r)
	}
	switch kind {
	case coordinatorGroup:
		h.ensureTopic(group.Topic, func(err error) {
			if err != nil {
				fail(err)
				return
			}
			h.leadingCoordinator(c, group.Topic, key, h.Groups.WhenServing, done, fail)
		})
	case coordinatorTransaction:
		h.ensureTopic(txn.Topic, func(err error) {
			if err != nil {
				fail(err)
				return
			}
			h.leadingCoordinator(c, txn.Topic, key, h.Transactions.WhenServing, done, fail)
		})
	default:
		fail(protocol.Errorf(kerr.InvalidRequest, "coordinator type %d is not known", kind))
	}
}

// leadingCoordinator answers with the broker that leads the key's partition of an
// internal topic; when that is this one, not before it serves the key.
func (h *Handlers) leadingCoordinator(c *Call, topic, key string, whenServing func(string, func(error)), done func(kmsg.FindCoordinatorResponseCoordinator), fail func(error)) {
	img := h.Image()
	t, ok := img.Topic(topic)
	if !ok {
		fail(protocol.Errorf(kerr.CoordinatorNotAvailable, "topic %s does not exist", topic))
		return
	}
	leader := t.Partitions[group.PartitionFor(key, int32(len(t.Partitions)))].Leader
	b, ok := img.Broker(leader)
	if !ok {
		fail(protocol.Errorf(kerr.CoordinatorNotAvailable, "the partition of %q in %s has no leader", key, topic))
		return
	}
	host, port, ok := h.endpoint(c, b)
	if !ok {
		fail(protocol.Errorf(kerr.CoordinatorNotAvailable, "broker %d has no listener %q", b.ID, c.Conn().Listener()))
		return
	}
	var noMessage string
	r := kmsg.NewFindCoordinatorResponseCoordinator()
	r.Key, r.NodeID, r.Host, r.Port, r.ErrorMessage = key, b.ID, host, port, &noMessage
	if leader != h.NodeID {
		done(r)
		return
	}
	var once sync.Once
	timer := h.Clock.AfterFunc(servingWait, func() { once.Do(func() { done(r) }) })
	whenServing(key, func(err error) {
		timer.Stop()
		once.Do(func() {
			if err != nil {
				// The metadata is about to change: this broker was named a moment ago.
				fail(protocol.Errorf(kerr.CoordinatorNotAvailable, "the coordinator of %q: %w", key, err))
				return
			}
			done(r)
		})
	})
}
