package runtime

import (
	"errors"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/internal/machine"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// readBytes is how much of the log one step of a load reads.
const readBytes = 1 << 20

// The wait before a shard loads again grows from reloadMin to reloadMax, so that
// a broken disk does not keep the broker busy with loading.
const (
	reloadMin = 50 * time.Millisecond
	reloadMax = 5 * time.Second
)

// look loads a cold shard that was in use.
func (s *shard[E, R, A]) look() {
	if s.hasCheckpoint() || s.rt.o.LoadUsed && s.rt.o.Written(s.partition) {
		s.mu.Lock()
		s.openLocked()
		s.mu.Unlock()
	}
}

// hasCheckpoint tells whether the partition was in use. Where that cannot be
// told the log has to.
func (s *shard[E, R, A]) hasCheckpoint() bool {
	if s.rt.o.KV == nil {
		return true
	}
	ck := newCheckpoint(s.rt.o.KV, checkpointPrefix(s.rt.o.CheckpointPrefix, s.partition), [16]byte{}, s.rt.o.Log, s.name())
	_, ok, err := ck.meta()
	return ok || err != nil
}

// load makes a machine of the checkpoint and the log, and serves from then on.
func (s *shard[E, R, A]) load() {
	if s.in != nil || s.isClosed() {
		return
	}
	began := s.rt.o.Clock.Now()
	in, err := s.loadInstance()
	if err != nil {
		s.rt.metrics.loadFailures.Inc()
		s.rt.o.Log.Error("coordinator did not load", "partition", s.name(), "epoch", s.epoch, "err", err)
		s.refuseParked(opening)
		s.loadLater()
		return
	}
	s.rt.metrics.loadSeconds.ObserveDuration(s.rt.o.Clock.Now().Sub(began))
	s.rt.metrics.serving.Add(1)
	s.in = in
	in.handle(s.rt.o.Loaded())
	told := s.told
	s.told = nil
	for i := range told {
		s.tell(told[i])
	}
	if s.in != in {
		return
	}
	s.serve()
}

// serve lets in who waits for the load.
func (s *shard[E, R, A]) serve() {
	s.mu.Lock()
	if s.state == closed {
		s.mu.Unlock()
		return
	}
	s.state = serving
	// They came before whatever is queued from here on.
	s.queue = append(s.queue, s.unparkLocked()...)
	waiters := s.waiters
	s.waiters = nil
	s.mu.Unlock()
	for _, w := range waiters {
		w(nil)
	}
}

func (s *shard[E, R, A]) name() string { return fmt.Sprintf("%s-%d", s.rt.o.Topic, s.partition) }

func (s *shard[E, R, A]) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == closed
}

// fail is the crash of crash-only: the machine is forgotten, whoever waits hears
// of it, and the log is loaded again.
func (s *shard[E, R, A]) fail(err error) {
	s.rt.o.Log.Error("coordinator starts over", "partition", s.name(), "epoch", s.epoch, "err", err)
	s.rt.metrics.appendFailures.Inc()
	s.refuseParked(opening, serving)
	s.drop(forClients(err))
	s.loadLater()
}

func (s *shard[E, R, A]) loadLater() {
	s.failures++
	wait := min(reloadMin<<min(s.failures-1, 16), reloadMax)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed {
		return
	}
	s.reload = s.rt.o.Clock.AfterFunc(wait, func() { s.put(job[E, A]{kind: jobLoad}) })
}

func (s *shard[E, R, A]) loadInstance() (*instance[E, R, A], error) {
	o := &s.rt.o
	used := s.hasCheckpoint()
	if used {
		defer s.rt.takeLoad()()
	}
	log, err := o.Open(s.partition)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.name(), err)
	}
	if !used && log.LogEndOffset() > log.LogStartOffset() {
		defer s.rt.takeLoad()()
	}
	in := &instance[E, R, A]{s: s, log: log, calls: map[uint64]func(A, error){}}
	in.timers = newTimers(o.Clock, func(t *timer) { s.put(job[E, A]{kind: jobTimer, timer: t, owner: in}) })
	in.ck = newCheckpoint(o.KV, checkpointPrefix(o.CheckpointPrefix, s.partition), log.TopicID(), o.Log, s.name())
	in.ck.writes, in.ck.failures = s.rt.metrics.ckWrites, s.rt.metrics.ckFails
	in.machine = o.New(s.partition)
	from, err := restore(in.ck, log, o.Codec, in.machine)
	if err != nil {
		o.Log.Warn("checkpoint dropped, the log is replayed whole", "partition", s.name(), "reason", err)
		in.ck.drop()
		in.machine, from = o.New(s.partition), log.LogStartOffset()
	}
	if err := in.replay(from); err != nil {
		return nil, err
	}
	// What was appended by an earlier leader may be beyond the high watermark:
	// answers wait for it.
	log.WhenCommitted(s.epoch, in.appended, in.onCommitted)
	return in, nil
}

// restore feeds a checkpoint that fits the log to the machine and returns where
// the log goes on. Any error means: the checkpoint is not to be used.
func restore[E, R, A any](ck *checkpoint, log Log, codec Codec[R], m machine.Machine[E, R, A]) (from int64, err error) {
	start := log.LogStartOffset()
	meta, ok, err := ck.meta()
	if err != nil || !ok {
		return start, err
	}
	if err := meta.fits(log); err != nil {
		return 0, err
	}
	var bad error
	err = ck.scan(func(e entry) bool {
		r, known, err := codec.Decode(e.key, e.value)
		if err != nil {
			bad = err
			return false
		}
		if known {
			m.Replay(e.offset, r)
		}
		return true
	})
	if err := errors.Join(err, bad); err != nil {
		return 0, err
	}
	return meta.offset, restoreOpen(ck, codec, m)
}

// restoreOpen feeds the records of open transactions to the machine, after all
// that counts.
func restoreOpen[E, R, A any](ck *checkpoint, codec Codec[R], m machine.Machine[E, R, A]) error {
	t, ok := m.(Transactional[R])
	if !ok {
		return nil
	}
	var bad error
	err := ck.scanOpen(func(producerID int64, e entry) bool {
		r, known, err := codec.Decode(e.key, e.value)
		if err != nil {
			bad = err
			return false
		}
		if known {
			t.ReplayPending(e.offset, producerID, r)
		}
		return true
	})
	return errors.Join(err, bad)
}

// replay feeds the log from an offset to its end to the machine.
func (in *instance[E, R, A]) replay(from int64) error {
	in.appended = from
	for in.appended < in.log.LogEndOffset() {
		data, err := in.log.Read(in.appended, readBytes)
		if err != nil {
			return fmt.Errorf("read %s at %d: %w", in.s.name(), in.appended, err)
		}
		before := in.appended
		for len(data) > 0 {
			var v batch.View
			if v, data, err = batch.Next(data); err == nil {
				err = in.replayBatch(v)
			}
			if errors.Is(err, batch.ErrTruncated) && in.appended > before {
				break // the read was cut at its size
			}
			if err != nil {
				return fmt.Errorf("replay %s at %d: %w", in.s.name(), in.appended, err)
			}
		}
		if in.appended == before {
			return fmt.Errorf("replay %s: nothing to read at %d, and the log ends at %d", in.s.name(), before, in.log.LogEndOffset())
		}
		in.ck.flush(in.log.HighWatermark())
	}
	return nil
}

// replayBatch applies one batch. A machine that is not Transactional hears nothing
// of transactions.
func (in *instance[E, R, A]) replayBatch(v batch.View) error {
	if v.CRC() != v.ComputeCRC() {
		return batch.ErrCorrupt
	}
	next := max(v.NextOffset(), in.appended)
	_, transactional := in.machine.(Transactional[R])
	switch {
	case (v.IsControl() || v.IsTransactional()) && !transactional:
		in.appended = next
		return nil
	case v.IsControl():
		return in.replayControl(v, next)
	}
	producerID := noProducer
	if v.IsTransactional() {
		producerID = v.ProducerID()
	}
	var entries []entry
	err := batch.Records(v, 0, func(r batch.Record) error {
		if r.Offset < in.appended {
			return nil
		}
		rec, known, err := in.s.rt.o.Codec.Decode(r.Key, r.Value)
		if err != nil {
			return fmt.Errorf("record at %d: %w", r.Offset, err)
		}
		if known {
			in.replayRecord(r.Offset, producerID, rec)
			entries = append(entries, entry{offset: r.Offset, key: r.Key, value: r.Value})
		}
		return nil
	})
	if err != nil {
		return err
	}
	in.appended = next
	in.ck.add(span{end: next, epoch: v.PartitionLeaderEpoch(), entries: entries, producer: producerID})
	return nil
}

// replayControl applies a control batch, of which only markers count.
func (in *instance[E, R, A]) replayControl(v batch.View, next int64) error {
	m, ok, err := batch.ParseMarker(v)
	if err != nil {
		return err
	}
	in.appended = next
	if ok {
		in.replayMarker(v.ProducerID(), m.Commit, v.PartitionLeaderEpoch())
		return nil
	}
	in.ck.add(span{end: next, epoch: v.PartitionLeaderEpoch(), producer: noProducer})
	return nil
}
