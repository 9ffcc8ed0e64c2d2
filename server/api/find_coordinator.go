package api

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/protocol"
)

// OffsetsTopic is how the internal topic of the groups is made.
type OffsetsTopic struct {
	// Partitions is offsets.topic.num.partitions.
	Partitions int32
	// ReplicationFactor is offsets.topic.replication.factor; fewer live brokers
	// lower it.
	ReplicationFactor int16
	// SegmentBytes is offsets.topic.segment.bytes.
	SegmentBytes int32
}

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
		h.ensureOffsetsTopic(func(err error) {
			if err != nil {
				fail(err)
				return
			}
			h.groupCoordinator(c, key, done, fail)
		})
	case coordinatorTransaction:
		fail(h.refuseTransactions(c, key))
	default:
		fail(protocol.Errorf(kerr.InvalidRequest, "coordinator type %d is not known", kind))
	}
}

// groupCoordinator answers with the broker that leads the group's partition; when
// that is this one, not before it serves the group.
func (h *Handlers) groupCoordinator(c *Call, key string, done func(kmsg.FindCoordinatorResponseCoordinator), fail func(error)) {
	img := h.Image()
	t, ok := img.Topic(group.Topic)
	if !ok {
		fail(protocol.Errorf(kerr.CoordinatorNotAvailable, "topic %s does not exist", group.Topic))
		return
	}
	leader := t.Partitions[group.PartitionFor(key, int32(len(t.Partitions)))].Leader
	b, ok := img.Broker(leader)
	if !ok {
		fail(protocol.Errorf(kerr.CoordinatorNotAvailable, "the partition of group %q has no leader", key))
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
	h.Groups.WhenServing(key, func(err error) {
		timer.Stop()
		once.Do(func() {
			if err != nil {
				// The metadata is about to change: this broker was named a moment ago.
				fail(protocol.Errorf(kerr.CoordinatorNotAvailable, "the coordinator of group %q: %w", key, err))
				return
			}
			done(r)
		})
	})
}

// ensureOffsetsTopic calls done once the internal topic exists, which it makes
// when it does not.
func (h *Handlers) ensureOffsetsTopic(done func(error)) {
	img := h.Image()
	if _, ok := img.Topic(group.Topic); ok {
		done(nil)
		return
	}
	live := 0
	for _, b := range img.Brokers() {
		if !b.Fenced {
			live++
		}
	}
	o := h.OffsetsTopic()
	h.offsetsTopic.make(done, func(made func(error)) {
		if _, ok := h.Image().Topic(group.Topic); ok {
			made(nil) // meanwhile
			return
		}
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions = group.Topic, o.Partitions
		t.ReplicationFactor = int16(max(min(int(o.ReplicationFactor), live), 1))
		t.Configs = []kmsg.CreateTopicsRequestTopicConfig{
			topicConfig("cleanup.policy", "compact"),
			topicConfig("compression.type", "producer"),
			topicConfig("segment.bytes", strconv.Itoa(int(o.SegmentBytes))),
		}
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version = req.MaxVersion()
		req.Topics = []kmsg.CreateTopicsRequestTopic{t}
		h.Controller.Handle(req, func(resp kmsg.Response, err error) { made(created(resp, err)) })
	})
}

func topicConfig(name, value string) kmsg.CreateTopicsRequestTopicConfig {
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	c.Name, c.Value = name, &value
	return c
}

// created is the outcome of the creation of one topic; that it exists already is
// a good one.
func created(resp kmsg.Response, err error) error {
	if err == nil {
		for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
			if t.ErrorCode == kerr.TopicAlreadyExists.Code {
				continue
			}
			err = errors.Join(err, kerr.ErrorForCode(t.ErrorCode))
		}
	}
	if err != nil {
		return protocol.Errorf(kerr.CoordinatorNotAvailable, "create topic %s: %w", group.Topic, err)
	}
	return nil
}

// onceMaker has one creation on its way at a time; who asks meanwhile shares its
// outcome.
type onceMaker struct {
	mu      sync.Mutex
	running bool
	waiting []func(error)
}

func (o *onceMaker) make(done func(error), start func(made func(error))) {
	o.mu.Lock()
	o.waiting = append(o.waiting, done)
	running := o.running
	o.running = true
	o.mu.Unlock()
	if running {
		return
	}
	start(func(err error) {
		o.mu.Lock()
		waiting := o.waiting
		o.waiting, o.running = nil, false
		o.mu.Unlock()
		for _, w := range waiting {
			w(err)
		}
	})
}
