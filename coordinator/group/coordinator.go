package group

import (
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/machine"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// Topic is the internal topic that the groups are kept in.
const Topic = protocol.ConsumerOffsetsTopic

// checkpointPrefix is where the store has the checkpoints of this coordinator.
const checkpointPrefix = "group/" + Topic + "/"

// Options is what a Coordinator needs.
type Options struct {
	Config Config
	// Open finds the log of a partition of Topic that this broker leads.
	Open func(partition int32) (runtime.Log, error)
	// Written tells without opening it whether a partition may have records; nil
	// means yes.
	Written func(partition int32) bool
	// KV holds the checkpoints; nil runs without.
	KV    runtime.KV
	Clock clock.Clock
	Log   *slog.Logger
	// Metrics may be nil.
	Metrics *telemetry.Registry
	// NewID makes the random part of a member id.
	NewID func() string
	// Partitions is how many partitions Topic has, 0 while it does not exist.
	Partitions func() int32
	// World is the cluster at this moment, but for TopicsAt; nil is a cluster
	// without topics.
	World func() World
	// Go starts a shard's work; nil is the go statement.
	Go func(func())
}

// Coordinator serves the groups whose partitions this broker leads. Its requests
// are answered through done, exactly once and on any goroutine.
type Coordinator struct {
	rt         *runtime.Runtime[Event, Record, Answer]
	cfg        Config
	clock      clock.Clock
	partitions func() int32
	world      func() World
	// topicsAt is the image in which topics were made last.
	topicsAt atomic.Int64
}

// NewCoordinator serves nothing until it is told of partitions.
func NewCoordinator(o Options) *Coordinator {
	metrics := newMetrics(o.Metrics)
	c := &Coordinator{cfg: o.Config, clock: o.Clock, partitions: o.Partitions, world: o.World}
	c.rt = runtime.New(runtime.Options[Event, Record, Answer]{
		Topic: Topic, Open: o.Open, Written: o.Written, KV: o.KV, CheckpointPrefix: checkpointPrefix,
		Clock: o.Clock, Log: o.Log, Metrics: o.Metrics, Codec: Codec{}, Go: o.Go,
		New: func(int32) machine.Machine[Event, Record, Answer] {
			return &observer{Machine: New(o.Config, o.NewID), metrics: metrics}
		},
		Observe: func(m machine.Machine[Event, Record, Answer], gone bool) {
			m.(*observer).observe(gone)
		},
		Loaded:   func() Event { return c.event(Loaded{}) },
		Fired:    func(key string) Event { return c.event(TimerFired{Key: key}) },
		CallOf:   func(a Answer) uint64 { return a.Call },
		MayWrite: MayWrite, Unwritable: unwritable, ProducerOf: producerOf, MaxBatchBytes: o.Config.MaxBatchBytes,
	})
	return c
}

// event is an event of this moment.
func (c *Coordinator) event(request any) Event {
	e := Event{Request: request}
	if c.world != nil {
		e.World = c.world()
	}
	e.World.TopicsAt = c.topicsAt.Load()
	return e
}

// OnMetadata implements metadata.Publisher: groups that subscribe by regular
// expressions look at all topics again when some were made.
func (c *Coordinator) OnMetadata(d *metadata.Delta, img *metadata.Image) {
	if slices.ContainsFunc(d.Topics, metadata.TopicChange.Created) {
		c.topicsAt.Store(img.Offset)
	}
}

// OnElected tells that this broker leads a partition of Topic from now on.
func (c *Coordinator) OnElected(partition, leaderEpoch int32) { c.rt.Elected(partition, leaderEpoch) }

// OnResigned tells that it does so no longer.
func (c *Coordinator) OnResigned(partition, leaderEpoch int32) {
	c.rt.Resigned(partition, leaderEpoch)
}

// OnTopicsDeleted forgets what was committed for topics that are gone, and all
// groups when Topic itself is.
func (c *Coordinator) OnTopicsDeleted(topics []DeletedTopic) {
	for _, t := range topics {
		if t.Name == Topic {
			c.rt.ForgetAll()
		}
	}
	c.rt.Tell(func() Event { return Event{Request: TopicsDeleted{Topics: topics}} })
}

// Close stops the coordinator; it returns when nothing of it runs any more.
func (c *Coordinator) Close() { c.rt.Close() }

// WhenServing calls done once the group's coordinator has loaded here, or with
// the reason why this broker is not it.
func (c *Coordinator) WhenServing(groupID string, done func(error)) {
	p, err := c.partition(groupID)
	if err != nil {
		done(err)
		return
	}
	c.rt.WhenServing(p, done)
}

func (c *Coordinator) partition(groupID string) (int32, error) {
	n := c.partitions()
	if n <= 0 {
		return 0, protocol.Errorf(kerr.NotCoordinator, "topic %s does not exist yet", Topic)
	}
	return PartitionFor(groupID, n), nil
}

// anyCall is the call of a request that no shard numbers.
const anyCall = 1

// submit puts a request to the group's machine. failed makes the response to an
// error of the coordinator's own.
func submit[Resp any](c *Coordinator, groupID string, who Client, req any, done func(Resp), failed func(*kerr.Error) Resp) {
	event := func(call uint64) Event {
		e := c.event(req)
		e.Call, e.Client = call, who
		return e
	}
	p, err := c.partition(groupID)
	if err != nil {
		if e := event(anyCall); refusedAlone(&c.cfg, e) {
			// A machine without groups says what is wrong with it.
			done(New(c.cfg, nil).Handle(c.clock.Now(), e).Answers[0].Response.(Resp))
			return
		}
		done(failed(codeOf(err)))
		return
	}
	c.rt.Submit(p, event, func(a Answer, err error) {
		if err != nil {
			done(failed(codeOf(err)))
			return
		}
		done(a.Response.(Resp))
	})
}

func codeOf(err error) *kerr.Error {
	if code := kerr.TypedErrorForCode(protocol.Code(err)); code != nil {
		return code
	}
	return kerr.UnknownServerError
}

// JoinGroup answers when the group's next generation begins.
func (c *Coordinator) JoinGroup(who Client, r *kmsg.JoinGroupRequest, done func(*kmsg.JoinGroupResponse)) {
	submit(c, r.Group, who, r, done, func(code *kerr.Error) *kmsg.JoinGroupResponse { return JoinError("", code) })
}

// SyncGroup answers once the leader has assigned.
func (c *Coordinator) SyncGroup(who Client, r *kmsg.SyncGroupRequest, done func(*kmsg.SyncGroupResponse)) {
	submit(c, r.Group, who, r, done, SyncError)
}

// Heartbeat keeps a member's session alive.
func (c *Coordinator) Heartbeat(who Client, r *kmsg.HeartbeatRequest, done func(*kmsg.HeartbeatResponse)) {
	submit(c, r.Group, who, r, done, func(code *kerr.Error) *kmsg.HeartbeatResponse {
		resp := kmsg.NewPtrHeartbeatResponse()
		if code != kerr.CoordinatorLoadInProgress {
			// While the group loads its sessions have not begun: all is well.
			resp.ErrorCode = code.Code
		}
		return resp
	})
}

// ConsumerGroupHeartbeat is all that a member of the consumer protocol sends: it
// joins, hears of its partitions, stays and leaves.
func (c *Coordinator) ConsumerGroupHeartbeat(who Client, r *kmsg.ConsumerGroupHeartbeatRequest, done func(*kmsg.ConsumerGroupHeartbeatResponse)) {
	submit(c, r.Group, who, r, done, func(code *kerr.Error) *kmsg.ConsumerGroupHeartbeatResponse { return HeartbeatError(code, "") })
}

// DescribeConsumerGroup describes one group of the consumer protocol.
func (c *Coordinator) DescribeConsumerGroup(groupID string, done func(*kmsg.ConsumerGroupDescribeResponseGroup)) {
	req := DescribeConsumerGroup{Group: groupID}
	submit(c, groupID, Client{}, req, done, func(code *kerr.Error) *kmsg.ConsumerGroupDescribeResponseGroup {
		resp := kmsg.NewConsumerGroupDescribeResponseGroup()
		resp.Group, resp.ErrorCode = groupID, code.Code
		return &resp
	})
}

// LeaveGroup removes members.
func (c *Coordinator) LeaveGroup(who Client, r *kmsg.LeaveGroupRequest, done func(*kmsg.LeaveGroupResponse)) {
	submit(c, r.Group, who, r, done, func(code *kerr.Error) *kmsg.LeaveGroupResponse {
		resp := kmsg.NewPtrLeaveGroupResponse()
		resp.ErrorCode = code.Code
		return resp
	})
}

// CommitOffsets stores offsets. The topics have names, and ids where known.
func (c *Coordinator) CommitOffsets(who Client, r *kmsg.OffsetCommitRequest, done func(*kmsg.OffsetCommitResponse)) {
	submit(c, r.Group, who, r, done, func(code *kerr.Error) *kmsg.OffsetCommitResponse { return CommitError(r, code) })
}

// CommitTransactionalOffsets stores offsets that count once the producer's
// transaction is committed.
func (c *Coordinator) CommitTransactionalOffsets(who Client, r CommitPending, done func(*kmsg.TxnOffsetCommitResponse)) {
	submit(c, r.Request.Group, who, r, done, func(code *kerr.Error) *kmsg.TxnOffsetCommitResponse {
		return TxnCommitError(r.Request, code)
	})
}

// StartVerification begins the verification that a producer's offsets for a group
// need (KIP-890) in the partition of Topic that the group is in. A zero guard
// means that the transaction is open there already.
func (c *Coordinator) StartVerification(groupID string, v storage.Verification, done func(partition int32, guard storage.VerificationGuard, err error)) {
	p, err := c.partition(groupID)
	if err != nil {
		// Kafka finds out when it looks for the log, and says it as of a failed append.
		done(-1, 0, protocol.Errorf(kerr.CoordinatorNotAvailable, "verify a transaction: %w", err))
		return
	}
	c.rt.StartVerification(p, v, func(guard storage.VerificationGuard, err error) { done(p, guard, err) })
}

// CompleteTransaction writes the marker that ends a producer's transaction into a
// partition of Topic, whether or not it has offsets there. done is called once
// the marker is committed and what it says is seen, or with the reason why it was
// not written.
func (c *Coordinator) CompleteTransaction(partition int32, m replica.Marker, done func(error)) {
	c.rt.CompleteTransaction(partition, m, done)
}

// FetchOffsets reads one group's offsets. The topics have names, and ids where
// known; nil Topics are all.
func (c *Coordinator) FetchOffsets(r FetchOffsets, done func(*kmsg.OffsetFetchResponseGroup)) {
	g := r.Group
	submit(c, g.Group, Client{}, r, done, func(code *kerr.Error) *kmsg.OffsetFetchResponseGroup {
		resp := kmsg.NewOffsetFetchResponseGroup()
		if code == kerr.CoordinatorNotAvailable {
			// Consumers before 3.9 do not know the code here; this one makes them
			// look for the coordinator again.
			code = kerr.NotCoordinator
		}
		resp.Group, resp.ErrorCode = g.Group, code.Code
		return &resp
	})
}

// DeleteOffsets removes offsets that nobody is subscribed to.
func (c *Coordinator) DeleteOffsets(who Client, r *kmsg.OffsetDeleteRequest, done func(*kmsg.OffsetDeleteResponse)) {
	submit(c, r.Group, who, r, done, func(code *kerr.Error) *kmsg.OffsetDeleteResponse {
		resp := kmsg.NewPtrOffsetDeleteResponse()
		resp.ErrorCode = code.Code
		return resp
	})
}

// ImportOffsets writes what a group of another cluster has committed.
func (c *Coordinator) ImportOffsets(e Exported, done func(error)) {
	p, err := c.partition(e.Group)
	if err != nil {
		done(err)
		return
	}
	c.rt.Submit(p, func(call uint64) Event { return Event{Call: call, Request: ImportOffsets{e}} }, func(_ Answer, err error) { done(err) })
}

// DescribeGroup describes one group as the request's version allows.
func (c *Coordinator) DescribeGroup(groupID string, version int16, done func(*kmsg.DescribeGroupsResponseGroup)) {
	req := DescribeGroup{Group: groupID, Version: version}
	submit(c, groupID, Client{}, req, done, func(code *kerr.Error) *kmsg.DescribeGroupsResponseGroup {
		resp := kmsg.NewDescribeGroupsResponseGroup()
		resp.Group, resp.ErrorCode = groupID, code.Code
		return &resp
	})
}

// DeleteGroup deletes one empty group.
func (c *Coordinator) DeleteGroup(groupID string, done func(*kmsg.DeleteGroupsResponseGroup)) {
	submit(c, groupID, Client{}, DeleteGroup{Group: groupID}, done, func(code *kerr.Error) *kmsg.DeleteGroupsResponseGroup {
		resp := kmsg.NewDeleteGroupsResponseGroup()
		resp.Group, resp.ErrorCode = groupID, code.Code
		return &resp
	})
}
