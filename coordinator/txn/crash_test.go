package txn

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// killed is the panic that ends a life of the broker.
type killed struct{}

// world is what survives a kill -9: the log of the coordinator and the partitions,
// as far as they were written. Everything runs on the test's goroutine, so that
// each write has its number.
type world struct {
	t testing.TB
	// left counts down the writes of this life, -1 for a life without an end; kills
	// are the lives after it. With after the last write happens before the kill, and
	// nobody hears of it.
	left  int
	kills []int
	after bool
	lives int

	state   []byte
	end     int64
	parts   map[storage.TopicPartition][]entry
	nextID  int64
	failing map[storage.TopicPartition]int

	now time.Time
	clk *clock.Manual
	c   *Coordinator
}

// entry is one batch of a partition: the data of a transaction, by its number, or
// a marker.
type entry struct {
	txn    int
	marker bool
	commit bool
}

func newWorld(t testing.TB) *world {
	return &world{
		t: t, left: -1, parts: map[storage.TopicPartition][]entry{}, failing: map[storage.TopicPartition]int{},
		now: time.UnixMilli(1_700_000_000_000),
	}
}

// write is one write to a disk; it may be the one before which, or after which,
// the process ends.
func (w *world) write(do func()) {
	if w.left == 0 && !w.after {
		panic(killed{})
	}
	do()
	if w.left == 0 {
		panic(killed{})
	}
	if w.left > 0 {
		w.left--
	}
}

// live runs f, in as many lives as it takes. The next life begins with a load.
func (w *world) live(f func()) {
	for !w.survives(f) {
		w.lives++
		w.left = -1
		if len(w.kills) > 0 {
			w.left, w.kills = w.kills[0], w.kills[1:]
		}
		w.c = nil
	}
}

func (w *world) survives(f func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, is := r.(killed); !is {
				panic(r)
			}
			ok = false
		}
	}()
	if w.c == nil {
		w.boot()
	}
	f()
	return true
}

// boot is a start of the broker: a coordinator that knows the log only.
func (w *world) boot() {
	if w.clk != nil {
		w.now = w.clk.Now()
	}
	w.clk = clock.NewManual(w.now)
	inPlace := func(f func()) { f() }
	w.c = NewCoordinator(Options{
		Config: DefaultConfig(), Clock: w.clk, Log: slog.New(slog.DiscardHandler),
		Open:       func(int32) (runtime.Log, error) { return (*stateLog)(w), nil },
		Partitions: func() int32 { return 1 }, PartitionFor: func(string, int32) int32 { return 0 },
		Level: func() int16 { return 2 }, Markers: w, Work: inPlace, Go: inPlace,
		ProducerIDs: func(done func(int64, error)) {
			w.nextID++
			done(w.nextID, nil)
		},
	})
	w.c.OnElected(0, int32(w.lives))
}

// stateLog is the partition of __transaction_state.
type stateLog world

func (l *stateLog) TopicID() [16]byte                                { return [16]byte{1} }
func (l *stateLog) LogStartOffset() int64                            { return 0 }
func (l *stateLog) LogEndOffset() int64                              { return l.end }
func (l *stateLog) HighWatermark() int64                             { return l.end }
func (l *stateLog) CompactedTo() int64                               { return -1 }
func (l *stateLog) EndOffsetForEpoch(int32) (int32, int64)           { return 0, l.end }
func (l *stateLog) Read(int64, int) ([]byte, error)                  { return slices.Clone(l.state), nil }
func (l *stateLog) Writable() error                                  { return nil }
func (l *stateLog) WhenCommitted(_ int32, _ int64, done func(error)) { done(nil) }

func (l *stateLog) Append(_ int32, b []byte, committed func(error)) (int64, error) {
	v, first := batch.View(b), l.end
	(*world)(l).write(func() {
		v.SetBaseOffset(first)
		l.end = v.NextOffset()
		l.state = append(l.state, v...)
	})
	committed(nil)
	return first, nil
}

var errTransient = kerr.NotLeaderForPartition

// WriteMarker implements Markers.
func (w *world) WriteMarker(tp storage.TopicPartition, m replica.Marker, done func(error)) {
	if w.failing[tp] > 0 {
		w.failing[tp]--
		done(errTransient)
		return
	}
	w.write(func() { w.parts[tp] = append(w.parts[tp], entry{marker: true, commit: m.Commit}) })
	done(nil)
}

// data appends records of a transaction to a partition, once.
func (w *world) data(tp storage.TopicPartition, txn int) {
	w.live(func() {
		for _, e := range w.parts[tp] {
			if !e.marker && e.txn == txn {
				return
			}
		}
		w.write(func() { w.parts[tp] = append(w.parts[tp], entry{txn: txn}) })
	})
}

// ask puts a request until it is answered with something else than
// CONCURRENT_TRANSACTIONS, through as many kills as it takes.
func (w *world) ask(put func(done func(*kerr.Error))) *kerr.Error {
	w.t.Helper()
	for range 100 {
		var err *kerr.Error
		answered := false
		w.live(func() {
			answered = false
			put(func(e *kerr.Error) { answered, err = true, e })
			if !answered {
				w.clk.Advance(time.Second)
			}
		})
		switch {
		case !answered:
			w.t.Fatal("a request was never answered")
		case !errors.Is(err, kerr.ConcurrentTransactions):
			return err
		}
		w.live(func() { w.clk.Advance(100 * time.Millisecond) })
	}
	w.t.Fatal("CONCURRENT_TRANSACTIONS for ever")
	return nil
}

// producer is a client's view of its transactional id.
type producer struct {
	w  *world
	at Producer
	// version is the transaction version that it follows.
	version int16
}

func (p *producer) init() *kerr.Error {
	r := kmsg.NewPtrInitProducerIDRequest()
	r.TransactionalID, r.TransactionTimeoutMillis = kmsg.StringPtr("x"), 60_000
	return p.w.ask(func(done func(*kerr.Error)) {
		p.w.c.InitProducerID(r, func(got Produced) {
			if got.Err == nil {
				p.at = Producer{TransactionalID: "x", ID: got.ID, Epoch: got.Epoch}
			}
			done(got.Err)
		})
	})
}

func (p *producer) add(partitions ...storage.TopicPartition) *kerr.Error {
	return p.w.ask(func(done func(*kerr.Error)) { p.w.c.AddPartitions(p.at, partitions, p.version, done) })
}

func (p *producer) end(commit bool) *kerr.Error {
	r := kmsg.NewPtrEndTxnRequest()
	r.SetVersion(4)
	if p.version >= epochBumpVersion {
		r.SetVersion(5)
	}
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = "x", p.at.ID, p.at.Epoch, commit
	return p.w.ask(func(done func(*kerr.Error)) {
		p.w.c.EndTxn(r, func(got Produced) {
			if got.Err == nil && r.Version >= firstBumpEndTxn {
				p.at.ID, p.at.Epoch = got.ID, got.Epoch
			}
			done(got.Err)
		})
	})
}

// quiet lets everything that is under way come to its end.
func (w *world) quiet() {
	w.live(func() { w.clk.Advance(10 * time.Second) })
}

// check holds every partition against the verdicts of the transactions: what one
// wrote is followed by markers of its verdict only, before anything else.
func (w *world) check(verdicts map[int]bool) {
	w.t.Helper()
	for tp, entries := range w.parts {
		open := -1
		for i, e := range entries {
			switch {
			case !e.marker && open >= 0:
				w.t.Fatalf("%v: transaction %d has no marker before %d", tp, open, e.txn)
			case !e.marker:
				open = e.txn
			case open >= 0 && e.commit != verdicts[open]:
				w.t.Fatalf("%v: transaction %d ended with commit=%v, its verdict is commit=%v\n%+v", tp, open, e.commit, verdicts[open], entries[:i+1])
			default:
				open = -1
			}
		}
		if open >= 0 {
			w.t.Fatalf("%v: transaction %d has no marker", tp, open)
		}
	}
	done := make(chan kmsg.DescribeTransactionsResponseTransactionState, 1)
	w.c.Describe("x", func(s kmsg.DescribeTransactionsResponseTransactionState) { done <- s })
	if s := <-done; !strings.HasPrefix(s.State, "Complete") && s.State != "Empty" {
		w.t.Fatalf("the transactional id ends as %s", s.State)
	}
}

var (
	t0, t1, t2 = storage.TopicPartition{Topic: "t"}, storage.TopicPartition{Topic: "t", Partition: 1}, storage.TopicPartition{Topic: "t", Partition: 2}
	offsets    = storage.TopicPartition{Topic: "__consumer_offsets", Partition: 7}
)

// scenarios are lives of clients; each returns the verdict of every transaction
// that wrote something.
var scenarios = map[string]func(w *world, must func(*kerr.Error)) map[int]bool{
	"commit, abort, commit": func(w *world, must func(*kerr.Error)) map[int]bool {
		return threeTransactions(w, must, 2)
	},
	"of an old client": func(w *world, must func(*kerr.Error)) map[int]bool {
		return threeTransactions(w, must, 0)
	},
	"a partition that is away": func(w *world, must func(*kerr.Error)) map[int]bool {
		w.failing[t1], w.failing[offsets] = 2, 1
		return threeTransactions(w, must, 2)
	},
	"fenced by another producer": func(w *world, must func(*kerr.Error)) map[int]bool {
		first, second := &producer{w: w, version: 2}, &producer{w: w, version: 2}
		must(first.init())
		must(first.add(t0, t1, t2, offsets))
		first.write(1, t0, t2)
		must(second.init())
		if err := first.end(true); err == nil {
			w.t.Fatal("a fenced producer has committed")
		}
		must(second.add(t2))
		second.write(2, t2)
		must(second.end(true))
		return map[int]bool{1: false, 2: true}
	},
	"timed out": func(w *world, must func(*kerr.Error)) map[int]bool {
		p := &producer{w: w, version: 2}
		must(p.init())
		must(p.add(t0, t1))
		p.write(1, t0, t1)
		w.live(func() { w.clk.Advance(80 * time.Second) })
		w.quiet()
		if err := p.end(true); !errors.Is(err, kerr.InvalidTxnState) {
			w.t.Fatalf("commit after the time-out: %v", err)
		}
		must(p.init())
		must(p.add(t1))
		p.write(2, t1)
		must(p.end(true))
		return map[int]bool{1: false, 2: true}
	},
}

func (p *producer) write(txn int, to ...storage.TopicPartition) {
	for _, tp := range to {
		p.w.data(tp, txn)
	}
}

func threeTransactions(w *world, must func(*kerr.Error), version int16) map[int]bool {
	p := &producer{w: w, version: version}
	must(p.init())
	for txn, commit := range []bool{true, false, true} {
		must(p.add(t0, t1))
		must(p.add(t2, offsets))
		p.write(txn, t0, t1, t2, offsets)
		again := *p
		must(p.end(commit))
		// Once more, as a client does that has lost the answer.
		if must(again.end(commit)); again != *p {
			w.t.Fatalf("the repeat was answered with %+v, the first with %+v", again.at, p.at)
		}
	}
	return map[int]bool{0: true, 1: false, 2: true}
}

// TestKillAtEveryWrite ends the process before and after every single write of
// every scenario, and in pairs: a second time in the life after the first. Each
// transaction has one verdict in all partitions, and it is the one that its client
// was told.
func TestKillAtEveryWrite(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			runs := 0
			for _, after := range []bool{false, true} {
				for n := 0; ; n++ {
					lives := play(t, scenario, after, n).lives
					for second := 0; lives > 0; second++ {
						runs++
						if lives = play(t, scenario, after, n, second).lives; lives < 2 {
							break // the second life had fewer writes
						}
					}
					if lives == 0 {
						break // so had the first
					}
				}
			}
			if runs < 200 {
				t.Fatalf("only %d runs: the scenario writes too little", runs)
			}
		})
	}
}

func play(t *testing.T, scenario func(*world, func(*kerr.Error)) map[int]bool, after bool, kills ...int) *world {
	t.Helper()
	w := newWorld(t)
	w.left, w.kills, w.after = kills[0], kills[1:], after
	verdicts := scenario(w, func(err *kerr.Error) {
		t.Helper()
		if err != nil {
			t.Fatalf("killed at writes %v (after: %v): %v", kills, after, err)
		}
	})
	w.quiet()
	w.check(verdicts)
	return w
}
