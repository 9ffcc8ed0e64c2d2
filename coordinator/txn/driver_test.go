package txn

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/storage"
)

// heldMarkers keeps what it is asked to write until the test says how it went.
type heldMarkers struct {
	asked []held
}

type held struct {
	tp   storage.TopicPartition
	m    replica.Marker
	done func(error)
}

func (h *heldMarkers) WriteMarker(tp storage.TopicPartition, m replica.Marker, done func(error)) {
	h.asked = append(h.asked, held{tp, m, done})
}

func newDriver(m Markers, log *slog.Logger) *driver {
	return &driver{
		markers: m, work: func(f func()) { f() }, log: log, metrics: newMetrics(telemetry.NewRegistry()),
		running: map[string]*attempt{},
	}
}

func markersOf(id string, partitions ...storage.TopicPartition) Answer {
	return Answer{Response: WriteMarkers{Producer: Producer{TransactionalID: id, ID: 7, Epoch: 3}, Commit: true, ClientVersion: 2, Partitions: partitions}}
}

// A machine that was loaded anew asks again while its predecessor's markers are on
// their way: the new attempt begins when the old one has ended, or else one of the
// old markers could arrive after the next transaction has begun.
func TestOneAttemptAtATime(t *testing.T) {
	h := &heldMarkers{}
	d := newDriver(h, slog.New(slog.DiscardHandler))
	var replies []string
	reply := func(name string) func(Event) {
		return func(e Event) {
			w := e.Request.(MarkersWritten)
			for i, tp := range w.Asked.Partitions {
				name += " " + tp.String()
				if w.Results[i] != nil {
					name += " failed"
				}
			}
			replies = append(replies, name)
		}
	}
	d.do(1, markersOf("x", t0, t1), reply("first"))
	if len(h.asked) != 2 || h.asked[0].m != (replica.Marker{ProducerID: 7, ProducerEpoch: 3, CoordinatorEpoch: 1, Commit: true, TransactionVersion: 2}) {
		t.Fatalf("asked %+v", h.asked)
	}
	d.do(2, markersOf("x", t0, t1), reply("second"))
	d.do(3, markersOf("x", t0, t1), reply("third")) // the second's machine is gone already
	d.do(2, markersOf("y", t2), reply("other"))
	if len(h.asked) != 3 || h.asked[2].tp != t2 {
		t.Fatalf("another id has to wait: %+v", h.asked)
	}
	h.asked[1].done(nil)
	h.asked[0].done(errors.New("no"))
	if len(h.asked) != 5 || h.asked[3].m.CoordinatorEpoch != 3 {
		t.Fatalf("asked %+v after the first attempt", h.asked)
	}
	h.asked[2].done(nil)
	h.asked[3].done(nil)
	h.asked[4].done(nil)
	if got, want := strings.Join(replies, "; "), "first t-0 failed t-1; other t-2; third t-0 t-1"; got != want {
		t.Errorf("replies %s, want %s", got, want)
	}
	if len(d.running) != 0 {
		t.Errorf("still running: %v", d.running)
	}
}

// A transaction without partitions is answered at once.
func TestNoMarkersToWrite(t *testing.T) {
	d := newDriver(&heldMarkers{}, slog.New(slog.DiscardHandler))
	replied := false
	d.do(1, markersOf("x"), func(e Event) { replied = len(e.Request.(MarkersWritten).Results) == 0 })
	if !replied || len(d.running) != 0 {
		t.Errorf("replied %v, running %v", replied, d.running)
	}
}

// What holds a transaction up for long is named in the log, now and then.
func TestStuckMarkersAreNamed(t *testing.T) {
	var log strings.Builder
	h := &heldMarkers{}
	d := newDriver(h, slog.New(slog.NewTextHandler(&log, nil)))
	for failures := range 2 * warnEvery {
		a := markersOf("x", t1)
		w := a.Response.(WriteMarkers)
		w.Failures = failures
		d.do(1, Answer{Response: w}, func(Event) {})
		h.asked[failures].done(kerr.NotLeaderForPartition)
	}
	if n := strings.Count(log.String(), "transactionalId=x"); n != 2 || !strings.Contains(log.String(), "partition=t-1") {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
}

func TestFetchProducerID(t *testing.T) {
	d := newDriver(&heldMarkers{}, slog.New(slog.DiscardHandler))
	d.producerIDs = func(done func(int64, error)) { done(42, nil) }
	var got ProducerIDFetched
	d.do(1, Answer{Response: FetchProducerID{"x"}}, func(e Event) { got = e.Request.(ProducerIDFetched) })
	if got != (ProducerIDFetched{TransactionalID: "x", ID: 42}) {
		t.Errorf("got %+v", got)
	}
}
