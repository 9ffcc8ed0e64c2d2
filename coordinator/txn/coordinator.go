package txn

import (
	"log/slog"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/machine"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// Topic is the internal topic that the transactional ids are kept in.
const Topic = protocol.TransactionStateTopic

// checkpointPrefix is where the store has the checkpoints of this coordinator.
const checkpointPrefix = "group/" + Topic + "/"

// Options is what a Coordinator needs.
type Options struct {
	Config Config
	// Open finds the log of a partition of Topic that this broker leads.
	Open func(partition int32) (runtime.Log, error)
	// Written tells without opening it whether a partition may have records; nil
	// takes it that all have.
	Written func(partition int32) bool
	// KV holds the checkpoints; nil runs without.
	KV    runtime.KV
	Clock clock.Clock
	Log   *slog.Logger
	// Metrics may be nil.
	Metrics *telemetry.Registry
	// Partitions is how many partitions Topic has, 0 while it does not exist.
	Partitions func() int32
	// PartitionFor is the partition of Topic that owns a transactional id.
	PartitionFor func(transactionalID string, partitions int32) int32
	// Level is the cluster's transaction version.
	Level func() int16
	// ProducerIDs gives out producer ids that nobody has.
	ProducerIDs func(done func(id int64, err error))
	Markers     Markers
	// Work runs what may wait for the disk.
	Work func(func())
	// Go starts a shard's work; nil is the go statement.
	Go func(func())
}

// Coordinator serves the transactional ids whose partitions this broker leads. Its
// requests are answered through done, exactly once and on any goroutine.
type Coordinator struct {
	rt   *runtime.Runtime[Event, Record, Answer]
	o    Options
	left leftOpen
}

// NewCoordinator serves nothing until it is told of partitions.
func NewCoordinator(o Options) *Coordinator {
	if o.Written == nil {
		o.Written = func(int32) bool { return true }
	}
	metrics := newMetrics(o.Metrics)
	d := &driver{
		markers: o.Markers, producerIDs: o.ProducerIDs, work: o.Work, log: o.Log, metrics: metrics,
		running: map[string]*attempt{},
	}
	c := &Coordinator{o: o, left: leftOpen{log: o.Log}}
	level := func(e Event) Event {
		e.Level = o.Level()
		return e
	}
	c.rt = runtime.New(runtime.Options[Event, Record, Answer]{
		Topic: Topic, Open: o.Open, Written: o.Written, KV: o.KV, CheckpointPrefix: checkpointPrefix,
		Clock: o.Clock, Log: o.Log, Metrics: o.Metrics, Codec: Codec{}, Go: o.Go,
		New: func(partition int32) machine.Machine[Event, Record, Answer] {
			return &observer{Machine: New(o.Config), partition: partition, metrics: metrics, left: &c.left}
		},
		Observe: func(m machine.Machine[Event, Record, Answer], gone bool) { m.(*observer).observe(gone) },
		Loaded:  func() Event { return level(Event{Request: Loaded{}}) },
		Fired:   func(key string) Event { return level(Event{Request: TimerFired{Key: key}}) },
		CallOf:  func(a Answer) uint64 { return a.Call },
		Effect: func(_, leaderEpoch int32, a Answer, reply func(Event)) {
			d.do(leaderEpoch, a, func(e Event) { reply(level(e)) })
		},
		LoadUsed: true, MayWrite: MayWrite, MaxBatchBytes: o.Config.MaxBatchBytes,
	})
	return c
}

// OnElected tells that this broker leads a partition of Topic from now on.
func (c *Coordinator) OnElected(partition, leaderEpoch int32) {
	c.left.forget()
	c.rt.Elected(partition, leaderEpoch)
}

// OnResigned tells that it does so no longer.
func (c *Coordinator) OnResigned(partition, leaderEpoch int32) {
	c.rt.Resigned(partition, leaderEpoch)
}

// OnTopicDeleted forgets all transactional ids, because Topic is gone.
func (c *Coordinator) OnTopicDeleted() {
	c.rt.ForgetAll()
	c.left.topicDeleted()
}

// Close stops the coordinator; it returns when nothing of its machines runs any
// more. Markers that are on their way go on.
func (c *Coordinator) Close() { c.rt.Close() }

// WhenServing calls done once the coordinator of the transactional id has loaded
// here, or with the reason why this broker is not it.
func (c *Coordinator) WhenServing(transactionalID string, done func(error)) {
	p, err := c.partition(transactionalID)
	if err != nil {
		done(err)
		return
	}
	c.rt.WhenServing(p, done)
}

func (c *Coordinator) partition(transactionalID string) (int32, error) {
	n := c.o.Partitions()
	if n <= 0 {
		return 0, protocol.Errorf(kerr.NotCoordinator, "topic %s does not exist yet", Topic)
	}
	return c.o.PartitionFor(transactionalID, n), nil
}

// submit puts a request to the machine of a transactional id.
func (c *Coordinator) submit(transactionalID string, req any, done func(any, *kerr.Error)) {
	p, err := c.partition(transactionalID)
	if err != nil {
		code := codeOf(err)
		if own := refusedAlone(&c.o.Config, req); own != nil {
			code = own
		}
		done(nil, code)
		return
	}
	event := func(call uint64) Event { return Event{Call: call, Level: c.o.Level(), Request: req} }
	c.rt.Submit(p, event, func(a Answer, err error) {
		if err != nil {
			done(nil, codeOf(err))
			return
		}
		done(a.Response, nil)
	})
}

func codeOf(err error) *kerr.Error {
	if code := kerr.TypedErrorForCode(protocol.Code(err)); code != nil {
		return code
	}
	return kerr.UnknownServerError
}

// produce puts a request that may need a new producer id; withID is the request
// with one.
func (c *Coordinator) produce(transactionalID string, withID func(id int64) any, done func(Produced)) {
	var put func(id int64)
	put = func(id int64) {
		c.submit(transactionalID, withID(id), func(resp any, err *kerr.Error) {
			switch r := resp.(type) {
			case Produced:
				done(r)
			case NeedProducerID:
				c.o.ProducerIDs(func(id int64, err error) {
					if err != nil {
						done(producedError(codeOf(err)))
						return
					}
					put(id)
				})
			default:
				done(producedError(err))
			}
		})
	}
	put(noProducerID)
}

// InitProducerID gives a transactional id's producer the id and epoch to go on
// with.
func (c *Coordinator) InitProducerID(r *kmsg.InitProducerIDRequest, done func(Produced)) {
	id := *r.TransactionalID
	c.produce(id, func(newID int64) any {
		return InitProducer{
			TransactionalID: id, TimeoutMs: r.TransactionTimeoutMillis,
			ID: r.ProducerID, Epoch: r.ProducerEpoch, NewID: newID,
		}
	}, done)
}

// firstBumpEndTxn is the version of EndTxn from which its client follows
// transaction version 2.
const firstBumpEndTxn = 5

// EndTxn commits or aborts a transaction.
func (c *Coordinator) EndTxn(r *kmsg.EndTxnRequest, done func(Produced)) {
	req := EndTxn{
		Producer: Producer{TransactionalID: r.TransactionalID, ID: r.ProducerID, Epoch: r.ProducerEpoch},
		Commit:   r.Commit, NewID: noProducerID,
	}
	if r.Version >= firstBumpEndTxn {
		req.ClientVersion = epochBumpVersion
	}
	c.produce(r.TransactionalID, func(newID int64) any {
		with := req
		with.NewID = newID
		return with
	}, done)
}

// AddPartitions makes partitions part of a transaction. clientVersion is the
// transaction version that the producer follows.
func (c *Coordinator) AddPartitions(p Producer, partitions []storage.TopicPartition, clientVersion int16, done func(*kerr.Error)) {
	req := AddPartitions{Producer: p, Partitions: partitions, ClientVersion: clientVersion, Patient: true}
	c.submit(p.TransactionalID, req, func(resp any, err *kerr.Error) {
		if err == nil {
			err = resp.(Outcome).Err
		}
		done(err)
	})
}

// VerifyOrAdd asks whether partitions are part of a transaction, or makes them.
func (c *Coordinator) VerifyOrAdd(transactionalID string, producerID int64, epoch int16, partitions []storage.TopicPartition, add bool, done func(map[storage.TopicPartition]*kerr.Error)) {
	p := Producer{TransactionalID: transactionalID, ID: producerID, Epoch: epoch}
	all := func(err *kerr.Error) map[storage.TopicPartition]*kerr.Error {
		m := make(map[storage.TopicPartition]*kerr.Error, len(partitions))
		for _, tp := range partitions {
			m[tp] = err
		}
		return m
	}
	if add {
		c.AddPartitions(p, partitions, epochBumpVersion, func(err *kerr.Error) { done(all(err)) })
		return
	}
	c.submit(transactionalID, VerifyPartitions{Producer: p, Partitions: partitions}, func(resp any, err *kerr.Error) {
		v, _ := resp.(Verified)
		if err == nil {
			err = v.Err
		}
		m := all(err)
		for _, tp := range v.Missing {
			m[tp] = kerr.TransactionAbortable
		}
		done(m)
	})
}
