package runtime

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/machine"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// instance is one life of a shard's machine, from a load to a failure or the
// shard's end.
type instance[E, R, A any] struct {
	s       *shard[E, R, A]
	log     Log
	machine machine.Machine[E, R, A]
	timers  *timers
	ck      *checkpoint
	// flushTimer is set while something waits to be stored.
	flushTimer clock.Timer

	// calls wait for an answer of the machine.
	calls    map[uint64]func(A, error)
	nextCall uint64
	// appended is the end of what the machine has seen; answers park until the
	// high watermark is there.
	appended int64
	parked   []parked[A]
	// waiting says that answers are parked, so that a commit needs to wake the
	// shard.
	waiting atomic.Bool
}

// parked is an answer that waits for the high watermark.
type parked[A any] struct {
	end    int64
	call   uint64
	answer A
}

// wait remembers who waits for an answer and returns the call's number.
func (in *instance[E, R, A]) wait(done func(A, error)) uint64 {
	in.nextCall++
	in.calls[in.nextCall] = done
	return in.nextCall
}

// event lets the machine decide. done is nil when nobody waits.
func (in *instance[E, R, A]) event(event func(call uint64) E, done func(A, error)) {
	var call uint64
	if done != nil {
		call = in.wait(done)
	}
	e, o := event(call), &in.s.rt.o
	mayWrite := o.MayWrite(e)
	if mayWrite || o.Unwritable != nil {
		switch err := in.log.Writable(); {
		case err != nil && mayWrite:
			in.refuse(call, err)
			return
		case err != nil:
			e = o.Unwritable(e)
		}
	}
	in.handle(e)
}

// refuse fails one call before the machine has seen it.
func (in *instance[E, R, A]) refuse(call uint64, err error) {
	done := in.calls[call]
	if done == nil {
		return
	}
	delete(in.calls, call)
	var none A
	done(none, forClients(err))
}

func (in *instance[E, R, A]) handle(e E) {
	o := &in.s.rt.o
	out := in.machine.Handle(o.Clock.Now(), e)
	err := in.write(&out, o.ProducerOf(e))
	if err != nil && !isRefusal(err) {
		in.s.fail(err)
		return
	}
	o.Observe(in.machine, false)
	in.timers.apply(out.Timers)
	for _, a := range out.Answers {
		if err != nil {
			in.refuse(o.CallOf(a), err)
			continue
		}
		in.parked = append(in.parked, parked[A]{end: in.appended, call: o.CallOf(a), answer: a})
	}
	in.release(nil)
}

// recordOverhead is more than what a record takes beside its key and value.
const recordOverhead = 32

// write appends the records of an event and replays them: as one batch, because a
// crash between two would leave a half of what was decided, unless the event allows
// parts or a segment has no room for so much. p is whose transaction they are part of.
func (in *instance[E, R, A]) write(out *machine.Out[R, A], p *Producer) error {
	switch {
	case len(out.Records) == 0:
		return nil
	case !out.Parts:
		err := in.writeBatches(out.Records, p, math.MaxInt)
		if !errors.Is(err, kerr.RecordListTooLarge) {
			return err
		}
	}
	return in.writeBatches(out.Records, p, in.s.rt.o.MaxBatchBytes)
}

// writeBatches appends records in batches of at most maxBytes and replays them.
func (in *instance[E, R, A]) writeBatches(records []R, p *Producer, maxBytes int) error {
	o := &in.s.rt.o
	nowMs := o.Clock.Now().UnixMilli()
	b := in.newBatch(p)
	first := 0
	var entries []entry
	for i := range records {
		key, value := o.Codec.Encode(records[i])
		if b.Len() > 0 && b.SizeBytes()+len(key)+len(value)+recordOverhead > maxBytes {
			if err := in.append(b, records[first:i], entries, p); err != nil {
				return err
			}
			b, first, entries = in.newBatch(p), i, nil
		}
		b.Add(nowMs, key, value)
		entries = append(entries, entry{key: key, value: value})
	}
	return in.append(b, records[first:], entries, p)
}

func (in *instance[E, R, A]) newBatch(p *Producer) *batch.Builder {
	o := batch.BuilderOptions{LeaderEpoch: in.s.epoch}
	if p != nil {
		// Nobody looks at the sequence number; Kafka writes 0.
		o.Producer = &batch.ProducerStamp{ID: p.ID, Epoch: p.Epoch}
		o.Transactional = true
	}
	return batch.NewBuilder(o)
}

func (in *instance[E, R, A]) append(b *batch.Builder, records []R, entries []entry, p *Producer) error {
	producerID := noProducer
	var offset int64
	var err error
	if p == nil {
		offset, err = in.log.Append(in.s.epoch, b.Build(), in.onCommitted)
	} else {
		producerID = p.ID
		offset, err = in.txnLog().AppendVerified(in.s.epoch, b.Build(), p.Guard, in.onCommitted)
	}
	if err != nil {
		return fmt.Errorf("append %d records to %s-%d: %w", len(records), in.s.rt.o.Topic, in.s.partition, err)
	}
	for i := range records {
		in.replayRecord(offset+int64(i), producerID, records[i])
		entries[i].offset = offset + int64(i)
	}
	in.appended = offset + int64(len(records))
	in.ck.add(span{end: in.appended, epoch: in.s.epoch, entries: entries, producer: producerID})
	in.s.failures = 0
	return nil
}

// onCommitted runs on the log's goroutine, or inside Append.
func (in *instance[E, R, A]) onCommitted(err error) {
	if err != nil || in.waiting.Load() {
		in.s.put(job[E, A]{kind: jobCommitted, owner: in, err: err})
	}
}

// release sends the parked answers that the high watermark has passed.
func (in *instance[E, R, A]) release(err error) {
	if err != nil {
		in.s.fail(err)
		return
	}
	for {
		highWatermark := in.log.HighWatermark()
		n := 0
		for n < len(in.parked) && in.parked[n].end <= highWatermark {
			n++
		}
		ready := in.parked[:n]
		in.parked = in.parked[n:]
		for i := range ready {
			in.send(ready[i].call, ready[i].answer)
		}
		if len(in.parked) == 0 {
			in.parked = nil
			in.waiting.Store(false)
			return
		}
		// A commit after this store wakes the shard; one before it has moved the
		// watermark that is read once more.
		if in.waiting.Swap(true) {
			return
		}
	}
}

func (in *instance[E, R, A]) send(call uint64, a A) {
	if call == 0 {
		in.s.rt.o.Effect(in.s.partition, in.s.epoch, a, in.reply)
		return
	}
	done := in.calls[call]
	invariant.That(done != nil, "an answer to call %d, which waits for none", call)
	delete(in.calls, call)
	done(a, nil)
}

// checkpoint sees to it that what was committed is stored before long.
func (in *instance[E, R, A]) checkpoint() {
	switch {
	case in.ck.spanBytes >= flushBytes:
		in.ck.flush(in.log.HighWatermark())
	case len(in.ck.spans) > 0 && in.flushTimer == nil:
		in.flushTimer = in.s.rt.o.Clock.AfterFunc(flushEvery, func() {
			in.s.put(job[E, A]{kind: jobCheckpoint, owner: in})
		})
	}
}

func (in *instance[E, R, A]) flushDue() {
	in.flushTimer = nil
	in.ck.flush(in.log.HighWatermark())
}

// stop ends the instance: nothing of it is heard again.
func (in *instance[E, R, A]) stop(err error) {
	in.timers.stop()
	if in.flushTimer != nil {
		in.flushTimer.Stop()
	}
	in.ck.flush(in.log.HighWatermark())
	calls := in.calls
	in.calls, in.parked = nil, nil
	var none A
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		calls[call](none, err)
	}
}
