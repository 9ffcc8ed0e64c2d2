package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/internal/machine"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// memLog is a partition's log in memory.
type memLog struct {
	topicID [16]byte
	start   int64
	batches []batch.View
	// highWatermark follows the end unless held.
	highWatermark int64
	held          bool
	waiters       []waiter
	reads         int

	// failIn counts down to an append that fails; tear makes it fail after
	// writing. unwritable and readErr fail everything of their kind.
	failIn     int
	tear       bool
	appendErr  error
	unwritable error
	readErr    error
	// segmentBytes is the largest batch, 0 for any.
	segmentBytes int
	compactedTo  int64
}

type waiter struct {
	end  int64
	done func(error)
}

func newMemLog() *memLog { return &memLog{topicID: [16]byte{1}} }

func (l *memLog) TopicID() [16]byte     { return l.topicID }
func (l *memLog) LogStartOffset() int64 { return l.start }
func (l *memLog) HighWatermark() int64  { return l.highWatermark }
func (l *memLog) Writable() error       { return l.unwritable }
func (l *memLog) CompactedTo() int64    { return l.compactedTo }

func (l *memLog) LogEndOffset() int64 {
	if n := len(l.batches); n > 0 {
		return l.batches[n-1].NextOffset()
	}
	return l.start
}

func (l *memLog) EndOffsetForEpoch(epoch int32) (int32, int64) {
	found, end := int32(-1), int64(-1)
	for _, b := range l.batches {
		if e := b.PartitionLeaderEpoch(); e > epoch {
			return found, b.BaseOffset()
		} else {
			found, end = e, b.NextOffset()
		}
	}
	return found, end
}

func (l *memLog) Read(offset int64, maxBytes int) ([]byte, error) {
	l.reads++
	var out []byte
	for _, b := range l.batches {
		if b.LastOffset() < offset {
			continue
		}
		if first := len(out) == 0; !first && len(out)+len(b) > maxBytes {
			return append(out, b[:maxBytes-len(out)]...), l.readErr
		}
		out = append(out, b...)
	}
	return out, l.readErr
}

var errAppend = errors.New("the disk said no")

func (l *memLog) Append(epoch int32, b []byte, committed func(error)) (int64, error) {
	if l.segmentBytes > 0 && len(b) > l.segmentBytes {
		return 0, protocol.Errorf(kerr.RecordListTooLarge, "%d bytes", len(b))
	}
	if l.failIn > 0 {
		if l.failIn--; l.failIn == 0 {
			if l.tear {
				l.write(epoch, b)
			}
			if l.appendErr != nil {
				return 0, l.appendErr
			}
			return 0, errAppend
		}
	}
	if n := len(l.batches); n > 0 && l.batches[n-1].PartitionLeaderEpoch() > epoch {
		return 0, errors.New("fenced")
	}
	first := l.write(epoch, b)
	l.WhenCommitted(epoch, l.LogEndOffset(), committed)
	l.advance()
	return first, nil
}

// guard is what a verification gives that finds no transaction.
const guard storage.VerificationGuard = 7

func (l *memLog) StartVerification(v storage.Verification) (storage.VerificationGuard, error) {
	open := false
	for _, b := range l.batches {
		if b.ProducerID() == v.ProducerID {
			open = !b.IsControl()
		}
	}
	if open {
		return 0, l.readErr
	}
	return guard, l.readErr
}

func (l *memLog) AppendVerified(epoch int32, b []byte, _ storage.VerificationGuard, committed func(error)) (int64, error) {
	return l.Append(epoch, b, committed)
}

func (l *memLog) AppendMarker(epoch int32, m replica.Marker, committed func(error)) (int64, error) {
	return l.Append(epoch, batch.NewMarker(batch.MarkerOptions{
		Marker:     batch.Marker{Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch},
		ProducerID: m.ProducerID, ProducerEpoch: m.ProducerEpoch,
	}), committed)
}

func (l *memLog) write(epoch int32, b []byte) int64 {
	v := batch.View(slices.Clone(b))
	first := l.LogEndOffset()
	v.SetBaseOffset(first)
	v.SetPartitionLeaderEpoch(epoch)
	l.batches = append(l.batches, v)
	return first
}

// put is an append by somebody else.
func (l *memLog) put(epoch int32, name string, value uint64) {
	b := batch.NewBuilder(batch.BuilderOptions{})
	key, v := codec{}.Encode(record{name: name, value: value})
	b.Add(0, key, v)
	l.write(epoch, b.Build())
	l.advance()
}

func (l *memLog) WhenCommitted(_ int32, end int64, done func(error)) {
	l.waiters = append(l.waiters, waiter{end: end, done: done})
	l.wake()
}

func (l *memLog) advance() {
	if !l.held {
		l.highWatermark = l.LogEndOffset()
	}
	l.wake()
}

func (l *memLog) wake() {
	waiters := l.waiters
	l.waiters = nil
	for _, w := range waiters {
		if w.end <= l.highWatermark {
			w.done(nil)
		} else {
			l.waiters = append(l.waiters, w)
		}
	}
}

// commit lets the high watermark come to the end.
func (l *memLog) commit() {
	l.held = false
	l.advance()
}

// loseTail forgets batches from an offset on, as a crash may.
func (l *memLog) loseTail(from int64) {
	l.batches = slices.DeleteFunc(l.batches, func(b batch.View) bool { return b.NextOffset() > from })
	l.highWatermark = min(l.highWatermark, l.LogEndOffset())
}

// compact removes the batches at these offsets.
func (l *memLog) compact(offsets ...int64) {
	l.batches = slices.DeleteFunc(l.batches, func(b batch.View) bool { return slices.Contains(offsets, b.BaseOffset()) })
}

// memKV is a store in memory.
type memKV struct {
	m      map[string][]byte
	failIn int
}

var errKV = errors.New("the store is broken")

func newMemKV() *memKV { return &memKV{m: map[string][]byte{}} }

func (s *memKV) Get(key []byte) ([]byte, bool, error) {
	v, ok := s.m[string(key)]
	return v, ok, nil
}

func (s *memKV) Apply(ops []kv.Op, _ bool) error {
	if s.failIn > 0 {
		if s.failIn--; s.failIn == 0 {
			return errKV
		}
	}
	for _, op := range ops {
		switch {
		case op.End != nil:
			maps.DeleteFunc(s.m, func(k string, _ []byte) bool { return k >= string(op.Key) && k < string(op.End) })
		case op.Delete:
			delete(s.m, string(op.Key))
		default:
			s.m[string(op.Key)] = slices.Clone(op.Value)
		}
	}
	return nil
}

func (s *memKV) Scan(prefix []byte, fn func(key, value []byte) bool) error {
	for _, k := range slices.Sorted(maps.Keys(s.m)) {
		if strings.HasPrefix(k, string(prefix)) && !fn([]byte(k), s.m[k]) {
			return nil
		}
	}
	return nil
}

// The machine of the tests holds numbers by name.
type (
	event struct {
		call uint64
		// set writes each name with value, delete removes it, get reads it.
		set, delete, get []string
		value            uint64
		timer            string
		after            time.Duration
		fired            string
		loaded           bool
		// unwritable: what is read is read with 1000 on top.
		unwritable bool
		// effect asks for an effect of that name.
		effect string
		// parts allows several batches.
		parts bool
		// producer is whose transaction the writes are part of.
		producer *Producer
	}
	record struct {
		name  string
		value uint64
		gone  bool
	}
	answer struct {
		call   uint64
		values []uint64
		effect string
	}
	number struct {
		value  uint64
		offset int64
	}
	numbers struct {
		m        map[string]number
		pending  map[int64]map[string]number
		replayed *int
	}
)

func (n *numbers) Handle(now time.Time, e event) machine.Out[record, answer] {
	out := machine.Out[record, answer]{Parts: e.parts}
	for _, name := range e.set {
		out.Records = append(out.Records, record{name: name, value: e.value})
	}
	for _, name := range e.delete {
		out.Records = append(out.Records, record{name: name, gone: true})
	}
	if e.timer != "" {
		t := machine.Timer{Key: e.timer}
		if e.after >= 0 {
			t.At = now.Add(e.after)
		}
		out.Timers = append(out.Timers, t)
	}
	if e.fired != "" {
		out.Records = append(out.Records, record{name: "fired-" + e.fired, value: uint64(now.UnixMilli())})
	}
	a := answer{call: e.call}
	for _, name := range e.get {
		value := n.m[name].value
		if e.unwritable {
			value += 1000
		}
		a.values = append(a.values, value)
	}
	if e.effect != "" {
		out.Answers = append(out.Answers, answer{effect: e.effect})
	}
	if e.call != 0 {
		out.Answers = append(out.Answers, a)
	}
	return out
}

func (n *numbers) Replay(offset int64, r record) {
	*n.replayed++
	if r.gone {
		delete(n.m, r.name)
		for _, p := range n.pending {
			delete(p, r.name)
		}
		return
	}
	n.m[r.name] = number{value: r.value, offset: offset}
}

func (n *numbers) ReplayPending(offset, producerID int64, r record) {
	*n.replayed++
	if n.pending[producerID] == nil {
		n.pending[producerID] = map[string]number{}
	}
	n.pending[producerID][r.name] = number{value: r.value, offset: offset}
}

func (n *numbers) ReplayMarker(producerID int64, commit bool) {
	for name, p := range n.pending[producerID] {
		if old, ok := n.m[name]; commit && (!ok || p.offset > old.offset) {
			n.m[name] = p
		}
	}
	delete(n.pending, producerID)
}

func newNumbers(replayed *int) *numbers {
	return &numbers{m: map[string]number{}, pending: map[int64]map[string]number{}, replayed: replayed}
}

// state is all that a machine knows.
func (n *numbers) state() string {
	maps.DeleteFunc(n.pending, func(_ int64, p map[string]number) bool { return len(p) == 0 })
	return fmt.Sprint(n.m, n.pending)
}

type codec struct{}

func (codec) Encode(r record) (key, value []byte) {
	if r.gone {
		return []byte(r.name), nil
	}
	return []byte(r.name), binary.BigEndian.AppendUint64(nil, r.value)
}

func (codec) Decode(key, value []byte) (record, bool, error) {
	switch {
	case strings.HasPrefix(string(key), "other"):
		return record{}, false, nil
	case value == nil:
		return record{name: string(key), gone: true}, true, nil
	case len(value) != 8:
		return record{}, false, fmt.Errorf("a number of %d bytes", len(value))
	}
	return record{name: string(key), value: binary.BigEndian.Uint64(value)}, true, nil
}

// failer is a test, of Go's or of rapid's.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// fixture is a runtime with one partition, whose work runs in place.
type fixture struct {
	t  failer
	rt *Runtime[event, record, answer]
	// machine is the newest one.
	machine  *numbers
	log      *memLog
	kv       *memKV
	clock    *clock.Manual
	replayed int
	opened   int
	openErr  error
	// onOpen runs while a shard opens its log.
	onOpen func()
	// deferred holds the shard's work back while not nil.
	deferred *[]func()
	// effects are what the machine wanted done, and how to tell it.
	effects []effect
}

type effect struct {
	name  string
	epoch int32
	reply func(event)
}

func newFixture(t failer) *fixture {
	f := &fixture{t: t, log: newMemLog(), kv: newMemKV(), clock: clock.NewManual(time.UnixMilli(0))}
	f.restart()
	return f
}

// restart makes a new runtime over what is on disk. Its clock is another one, so
// that nothing of a runtime that died comes back.
func (f *fixture) restart() {
	f.clock = clock.NewManual(f.clock.Now())
	f.rt = New(Options[event, record, answer]{
		Topic: "numbers", KV: f.kv, CheckpointPrefix: "test/", Clock: f.clock,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Open: func(int32) (Log, error) {
			f.opened++
			if f.onOpen != nil {
				f.onOpen()
			}
			return f.log, f.openErr
		},
		New: func(int32) machine.Machine[event, record, answer] {
			f.machine = newNumbers(&f.replayed)
			return f.machine
		},
		Codec:      codec{},
		Loaded:     func() event { return event{loaded: true} },
		Fired:      func(key string) event { return event{fired: key} },
		CallOf:     func(a answer) uint64 { return a.call },
		ProducerOf: func(e event) *Producer { return e.producer },
		Effect: func(_, epoch int32, a answer, reply func(event)) {
			f.effects = append(f.effects, effect{name: a.effect, epoch: epoch, reply: reply})
		},
		MayWrite: func(e event) bool { return len(e.set)+len(e.delete) > 0 || e.fired != "" },
		Unwritable: func(e event) event {
			e.unwritable = true
			return e
		},
		Go: func(work func()) {
			if f.deferred != nil {
				*f.deferred = append(*f.deferred, work)
				return
			}
			work()
		},
		MaxBatchBytes: 1 << 20,
	})
	f.replayed = 0
}

// result is what a call led to; done stays false while it waits.
type result struct {
	done   bool
	values []uint64
	err    error
}

func (r *result) String() string {
	switch {
	case !r.done:
		return "waits"
	case r.err != nil:
		return fmt.Sprintf("error %d", protocol.Code(r.err))
	}
	return fmt.Sprint(r.values)
}

func (f *fixture) submit(e event) *result {
	r := &result{}
	f.rt.Submit(0, func(call uint64) event { e.call = call; return e }, func(a answer, err error) {
		if r.done {
			f.t.Fatalf("a call was answered twice: %v, then %v %v", r, a, err)
		}
		r.done, r.values, r.err = true, a.values, err
	})
	return r
}

func (f *fixture) set(name string, value uint64) *result {
	return f.submit(event{set: []string{name}, value: value})
}

// pend writes in the transaction of a producer, whose epoch is 0.
func (f *fixture) pend(producerID int64, name string, value uint64) *result {
	return f.submit(event{set: []string{name}, value: value, producer: &Producer{ID: producerID}})
}

// mark ends a producer's transaction.
func (f *fixture) mark(producerID int64, commit bool) *result {
	r := &result{}
	f.rt.CompleteTransaction(0, replica.Marker{ProducerID: producerID, Commit: commit}, func(err error) {
		if r.done {
			f.t.Fatalf("a marker was answered twice: %v, then %v", r, err)
		}
		r.done, r.err = true, err
	})
	return r
}

func (f *fixture) get(names ...string) *result { return f.submit(event{get: names}) }

func (f *fixture) want(r *result, want string) {
	f.t.Helper()
	if got := r.String(); got != want {
		f.t.Fatalf("got %s, want %s", got, want)
	}
}
