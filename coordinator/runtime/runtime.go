package runtime

import (
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/machine"
	"github.com/barnabas-mq/barnabas/protocol"
)

// Runtime runs the shards of the partitions that this broker leads.
type Runtime[E, R, A any] struct {
	o       Options[E, R, A]
	metrics metrics
	// loads bounds how many shards load at a time. Empty partitions do not count:
	// who uses one for the first time must not wait behind long loads.
	loads chan struct{}

	mu     sync.Mutex
	shards map[int32]held[E, R, A]
	closed bool
}

// held is a partition's newest shard, a closed one too: the next must not load
// before that one has ended. epoch is the leader epoch that the next must pass.
type held[E, R, A any] struct {
	shard *shard[E, R, A]
	epoch int32
}

// concurrentLoads is how many shards may read their logs at a time.
const concurrentLoads = 4

// New is a runtime without shards.
func New[E, R, A any](o Options[E, R, A]) *Runtime[E, R, A] {
	if o.Go == nil {
		o.Go = func(f func()) { go f() }
	}
	if o.Written == nil {
		o.Written = func(int32) bool { return true }
	}
	if o.ProducerOf == nil {
		o.ProducerOf = func(E) *Producer { return nil }
	}
	if o.Observe == nil {
		o.Observe = func(machine.Machine[E, R, A], bool) {}
	}
	return &Runtime[E, R, A]{
		o: o, metrics: newMetrics(o.Metrics, o.Topic),
		loads: make(chan struct{}, concurrentLoads), shards: map[int32]held[E, R, A]{},
	}
}

// takeLoad waits for a free place to load and returns what gives it back.
func (rt *Runtime[E, R, A]) takeLoad() func() {
	rt.loads <- struct{}{}
	return func() { <-rt.loads }
}

// Elected tells of a partition that this broker leads from now on. One that was
// in use is loaded at once, others when they are needed. A call with a newer epoch
// loads it anew; an older or equal one is ignored.
func (rt *Runtime[E, R, A]) Elected(partition, leaderEpoch int32) {
	rt.mu.Lock()
	old := rt.shards[partition]
	if rt.closed || old.epoch >= leaderEpoch && old.shard != nil {
		rt.mu.Unlock()
		return
	}
	s := &shard[E, R, A]{rt: rt, partition: partition, epoch: leaderEpoch, state: cold, running: true}
	rt.shards[partition] = held[E, R, A]{shard: s, epoch: leaderEpoch}
	rt.mu.Unlock()
	if old.shard == nil {
		s.start()
		return
	}
	// Two shards of one partition would spoil each other's checkpoint: this one
	// runs nothing until the old one has stopped.
	old.shard.close(notCoordinator(rt.o.Topic, partition), s.start)
}

// Resigned drops a partition that this broker leads no longer; its calls are told
// to look for the new coordinator.
func (rt *Runtime[E, R, A]) Resigned(partition, leaderEpoch int32) {
	rt.mu.Lock()
	h := rt.shards[partition]
	rt.mu.Unlock()
	if h.shard != nil && h.epoch <= leaderEpoch {
		h.shard.close(notCoordinator(rt.o.Topic, partition), nil)
	}
}

// Forget is Resigned for a partition whose topic is gone: its checkpoint goes
// too, and a topic of the same name starts with any epoch.
func (rt *Runtime[E, R, A]) Forget(partition int32) {
	rt.mu.Lock()
	h := rt.shards[partition]
	if h.shard != nil {
		rt.shards[partition] = held[E, R, A]{shard: h.shard, epoch: -1}
	}
	rt.mu.Unlock()
	drop := func() {
		// A checkpoint that stays does no harm: it is of another topic id.
		if err := dropCheckpoint(rt.o.KV, checkpointPrefix(rt.o.CheckpointPrefix, partition)); err != nil {
			rt.o.Log.Warn("checkpoint of a deleted topic stays", "topic", rt.o.Topic, "partition", partition, "err", err)
		}
	}
	if h.shard == nil {
		drop()
		return
	}
	h.shard.close(notCoordinator(rt.o.Topic, partition), drop)
}

// ForgetAll is Forget for every partition, for when the internal topic is gone.
func (rt *Runtime[E, R, A]) ForgetAll() {
	rt.mu.Lock()
	partitions := slices.Sorted(maps.Keys(rt.shards))
	rt.mu.Unlock()
	for _, p := range partitions {
		rt.Forget(p)
	}
}

// Submit puts an event to a partition's machine. done gets the answer, or an
// error with the code that the client shall see, exactly once and on any
// goroutine. It is not kept from running before Submit returns.
func (rt *Runtime[E, R, A]) Submit(partition int32, event func(call uint64) E, done func(A, error)) {
	s, err := rt.shard(partition)
	if err == nil {
		err = s.submit(job[E, A]{kind: jobEvent, event: event, done: done})
	}
	if err != nil {
		var none A
		done(none, err)
	}
}

// Tell puts an event that nobody waits for to the machines of all partitions,
// also to those that are not loaded yet, but for those that hold nothing.
func (rt *Runtime[E, R, A]) Tell(event func() E) {
	for _, p := range rt.Partitions() {
		if s, err := rt.shard(p); err == nil {
			s.put(job[E, A]{kind: jobTell, event: func(uint64) E { return event() }})
		}
	}
}

// WhenServing calls done once the partition has loaded, at once when it has, or
// with the reason why this broker does not serve it.
func (rt *Runtime[E, R, A]) WhenServing(partition int32, done func(error)) {
	s, err := rt.shard(partition)
	if err != nil {
		done(err)
		return
	}
	s.whenServing(done)
}

// Partitions are those that this broker leads, loaded or not, in order.
func (rt *Runtime[E, R, A]) Partitions() []int32 {
	rt.mu.Lock()
	shards := maps.Clone(rt.shards)
	rt.mu.Unlock()
	maps.DeleteFunc(shards, func(_ int32, h held[E, R, A]) bool { return h.shard.isClosed() })
	return slices.Sorted(maps.Keys(shards))
}

// Close drops all shards and returns when nothing of them runs any more. Their
// checkpoints stay as they are.
func (rt *Runtime[E, R, A]) Close() {
	rt.mu.Lock()
	rt.closed = true
	shards := rt.shards
	rt.shards = map[int32]held[E, R, A]{}
	rt.mu.Unlock()
	var wg sync.WaitGroup
	wg.Add(len(shards))
	for p, h := range shards {
		h.shard.close(notCoordinator(rt.o.Topic, p), wg.Done)
	}
	wg.Wait()
}

func (rt *Runtime[E, R, A]) shard(partition int32) (*shard[E, R, A], error) {
	rt.mu.Lock()
	h := rt.shards[partition]
	rt.mu.Unlock()
	if h.shard == nil {
		return nil, notCoordinator(rt.o.Topic, partition)
	}
	return h.shard, nil
}

func notCoordinator(topic string, partition int32) error {
	return protocol.Errorf(kerr.NotCoordinator, "this broker does not lead %s-%d", topic, partition)
}
