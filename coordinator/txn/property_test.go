package txn

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/storage"
)

// model is what a transactional id promises to its clients, with none of the
// machine's states: who owns it, what is open, and which verdict is on its way.
type model struct {
	owner Producer
	// open has the partitions of the transaction that is under way, nil for none.
	open map[storage.TopicPartition]bool
	// ending has the partitions that wait for their marker, all of them at first;
	// commit is the verdict.
	ending, all map[storage.TopicPartition]bool
	commit      bool
	began       time.Time
}

// TestMachineKeepsItsPromises puts random events to a machine, holds its answers
// against the model, and the machine against one that has only seen its log.
func TestMachineKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(DefaultConfig())
		h.quiet = true
		h.level = rapid.SampledFrom([]int16{0, 2}).Draw(t, "level")
		w := &modelled{t: t, h: h, ids: map[string]*model{}, told: map[string]Producer{}}
		h.answered = func(call uint64, response any) { w.last, w.lastCall = response, call }
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			w.step()
			w.compare()
		}
		// With time everything that waits comes to its end.
		for _, id := range sortedIDs(h.asked) {
			w.settle(id, nil)
		}
		h.tick(time.Hour)
		if len(h.calls) != 0 {
			t.Fatalf("calls %v were never answered", h.calls)
		}
	})
}

type modelled struct {
	t   *rapid.T
	h   *harness
	ids map[string]*model
	// told is the newest producer id and epoch that clients of an id have heard.
	told     map[string]Producer
	last     any
	lastCall uint64
}

func (w *modelled) step() {
	id := rapid.SampledFrom([]string{"x", "y"}).Draw(w.t, "id")
	m := w.ids[id]
	who := Producer{TransactionalID: id, ID: noProducerID, Epoch: noEpoch}
	if m != nil {
		who = m.owner
		who.Epoch -= rapid.SampledFrom([]int16{0, 0, 0, 1}).Draw(w.t, "behind")
	}
	partitions := rapid.SliceOfN(rapid.SampledFrom([]storage.TopicPartition{t0, t1, t2, offsets}), 0, 3).Draw(w.t, "partitions")
	version := rapid.SampledFrom([]int16{0, 2}).Draw(w.t, "version")
	w.last = nil
	switch rapid.IntRange(0, 9).Draw(w.t, "kind") {
	case 0:
		w.initProducer(id, m, who)
	case 1, 2, 3:
		w.h.call(AddPartitions{Producer: who, Partitions: partitions, ClientVersion: version})
		w.added(m, who, partitions)
	case 4, 5:
		w.end(m, who, version)
	case 6:
		w.h.call(VerifyPartitions{Producer: who, Partitions: partitions})
		w.verified(m, who, partitions)
	case 7:
		if w.h.asked[id] != nil {
			w.settle(id, partitions)
		}
	case 8:
		w.tick(rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Second, 2 * time.Minute}).Draw(w.t, "wait"))
	case 9:
		w.h.reload() // nobody knows which markers were written
		for _, m := range w.ids {
			if m.ending != nil {
				m.ending = maps.Clone(m.all)
			}
		}
	}
}

func (w *modelled) want(ok bool, format string, args ...any) {
	if !ok {
		w.t.Fatalf(format+": %+v", append(args, w.last)...)
	}
}

func (w *modelled) initProducer(id string, m *model, who Producer) {
	r := InitProducer{TransactionalID: id, TimeoutMs: 60_000, ID: noProducerID, Epoch: noEpoch, NewID: w.h.newID()}
	if m != nil && rapid.Bool().Draw(w.t, "known") {
		r.ID, r.Epoch = who.ID, who.Epoch
	}
	w.h.call(r)
	got := w.last.(Produced)
	switch {
	case m == nil:
		w.want(got.Err == nil && got.Epoch == 0, "the first init")
		w.ids[id] = &model{owner: Producer{id, got.ID, got.Epoch}}
	case m.ending != nil:
		w.want(got.Err == kerr.ConcurrentTransactions, "init while a transaction ends")
	case m.open != nil:
		w.want(got.Err == kerr.ConcurrentTransactions, "init with an open transaction")
		m.verdict(false)
		w.fenced(m)
	case got.Err != nil:
		w.want(r.ID != noProducerID && r.Epoch != m.owner.Epoch && got.Err == kerr.ProducerFenced, "init was refused")
	default:
		// It never goes back, and stays only for a producer that asks once more.
		w.want(got.ID == m.owner.ID && (got.Epoch == m.owner.Epoch+1 || r.ID != noProducerID && got.Epoch == m.owner.Epoch && r.Epoch == got.Epoch-1), "init after epoch %d", m.owner.Epoch)
		m.owner.Epoch = got.Epoch
	}
}

// fenced raises the epoch that nobody is told of: the machine alone knows it.
func (w *modelled) fenced(m *model) { m.owner.Epoch++ }

func (m *model) verdict(commit bool) {
	m.ending, m.all, m.open, m.commit = maps.Clone(m.open), m.open, nil, commit
}

func (w *modelled) added(m *model, who Producer, partitions []storage.TopicPartition) {
	err := w.last.(Outcome).Err
	switch {
	case m == nil:
		w.want(err == kerr.InvalidProducerIDMapping, "add for an id that nobody knows")
	case m.ending != nil:
		w.want(err == kerr.ConcurrentTransactions, "add while a transaction ends")
	case who != m.owner:
		w.want(err == kerr.ProducerFenced, "add by a fenced producer")
	default:
		w.want(err == nil, "add by the owner")
		if m.open == nil {
			m.open, m.began = map[storage.TopicPartition]bool{}, w.h.now
		}
		for _, tp := range partitions {
			m.open[tp] = true
		}
	}
}

func (w *modelled) verified(m *model, who Producer, partitions []storage.TopicPartition) {
	v := w.last.(Verified)
	switch {
	case m == nil:
		w.want(v.Err == kerr.InvalidProducerIDMapping, "verify for an id that nobody knows")
	case who != m.owner:
		w.want(v.Err == kerr.ProducerFenced, "verify by a fenced producer")
	case m.ending != nil:
		w.want(v.Err == kerr.ConcurrentTransactions, "verify while a transaction ends")
	default:
		for _, tp := range partitions {
			w.want(v.Err == nil && slices.Contains(v.Missing, tp) != m.open[tp], "verify %v of %v", tp, m.open)
		}
	}
}

// end commits or aborts. What a repeat is told is the scripts' to check; here it
// must change nothing.
func (w *modelled) end(m *model, who Producer, version int16) {
	commit := rapid.Bool().Draw(w.t, "commit")
	w.h.call(EndTxn{Producer: who, Commit: commit, ClientVersion: version, NewID: w.h.newID()})
	got := w.last.(Produced)
	switch {
	case m == nil:
		w.want(got.Err == kerr.InvalidProducerIDMapping, "end for an id that nobody knows")
	case m.ending != nil:
		w.want(got.Err != nil, "end while a transaction ends")
	case who != m.owner || m.open == nil && (commit || version == 0):
		// A repeat, or a mistake.
	default:
		w.want(got.Err == nil, "end by the owner")
		if m.open == nil {
			m.open = map[storage.TopicPartition]bool{}
		}
		m.verdict(commit)
		if version >= epochBumpVersion {
			m.owner.Epoch++
			w.want(got.Epoch == m.owner.Epoch && got.ID == m.owner.ID, "end under transaction version 2")
		}
	}
}

// settle replies to the markers that were asked for, with a failure for some.
func (w *modelled) settle(id string, failing []storage.TopicPartition) {
	asked, ok := w.h.asked[id].(WriteMarkers)
	if !ok {
		return
	}
	m := w.ids[id]
	w.want(m.ending != nil && asked.Commit == m.commit && asked.Epoch == m.owner.Epoch, "markers %+v for %+v", asked, m)
	failed := map[storage.TopicPartition]error{}
	for _, tp := range failing {
		failed[tp] = kerr.NotLeaderForPartition
	}
	for _, tp := range asked.Partitions {
		w.want(m.ending[tp], "a marker for %v, which waits for none", tp)
	}
	w.h.written(id, failed)
	for _, tp := range asked.Partitions {
		if failed[tp] == nil {
			delete(m.ending, tp)
		}
	}
	if state := w.h.m.transactions[id].State; state.completed() != (len(m.ending) == 0) {
		w.t.Fatalf("%s is %v with %d partitions without a marker", id, state, len(m.ending))
	}
	if len(m.ending) == 0 {
		m.ending = nil
	}
}

// tick lets time pass; what is open for too long is aborted.
func (w *modelled) tick(d time.Duration) {
	w.h.tick(d)
	for _, id := range sortedIDs(w.ids) {
		m := w.ids[id]
		if m.open == nil || w.h.m.transactions[id].State == Ongoing {
			continue
		}
		w.want(w.h.now.Sub(m.began) > time.Minute, "%s was aborted after %v", id, w.h.now.Sub(m.began))
		m.verdict(false)
		w.fenced(m)
	}
}

// compare holds the machine against one that was made from its log, and against
// the model.
func (w *modelled) compare() {
	reloaded := New(w.h.cfg)
	w.h.replayInto(reloaded)
	if w.h.level == 0 {
		for id, t := range reloaded.transactions {
			t.PrevProducerID = w.h.m.transactions[id].PrevProducerID
		}
	}
	if got, want := stateOfMachine(reloaded), stateOfMachine(w.h.m); got != want {
		w.t.Fatalf("reloaded:\n%s\nrunning:\n%s", got, want)
	}
	for id, m := range w.ids {
		t := w.h.m.transactions[id]
		if (m.open != nil) != (t.State == Ongoing) || (m.ending != nil) != t.State.prepared() || t.Epoch != m.owner.Epoch {
			w.t.Fatalf("%s: %s, the model has %s", id, describeTransaction(t), fmt.Sprintf("%+v", m))
		}
	}
}
