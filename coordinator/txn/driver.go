package txn

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/storage"
)

// Markers writes markers.
type Markers interface {
	// WriteMarker ends the transaction in tp and calls done exactly once, on any
	// goroutine, when the marker is committed there or with why it is not:
	// UNKNOWN_TOPIC_OR_PARTITION only where there is no such partition any more.
	WriteMarker(tp storage.TopicPartition, m replica.Marker, done func(error))
}

// driver does what the machines want done outside of their logs. It decides
// nothing but the order: of one transactional id there is one attempt at a time,
// so that no marker of an earlier attempt can arrive after a later one is done.
type driver struct {
	markers     Markers
	producerIDs func(done func(id int64, err error))
	// work runs an attempt; a write may wait for the disk.
	work    func(func())
	log     *slog.Logger
	metrics *metrics

	mu sync.Mutex
	// running has the ids with an attempt on its way, each with the attempt that
	// comes after it, nil for none. One that is replaced was a machine's that is gone.
	running map[string]*attempt
}

// attempt is one WriteMarkers on its way.
type attempt struct {
	asked WriteMarkers
	epoch int32
	reply func(Event)

	results []error
	left    atomic.Int64
}

// do takes an effect; it returns at once.
func (d *driver) do(leaderEpoch int32, a Answer, reply func(Event)) {
	switch r := a.Response.(type) {
	case WriteMarkers:
		d.begin(&attempt{asked: r, epoch: leaderEpoch, reply: reply})
	case FetchProducerID:
		d.producerIDs(func(id int64, err error) {
			reply(Event{Request: ProducerIDFetched{TransactionalID: r.TransactionalID, ID: id, Err: err}})
		})
	}
}

func (d *driver) begin(a *attempt) {
	id := a.asked.TransactionalID
	d.mu.Lock()
	_, busy := d.running[id]
	if busy {
		d.running[id] = a
	} else {
		d.running[id] = nil
	}
	d.mu.Unlock()
	if !busy {
		d.work(func() { d.write(a) })
	}
}

func (d *driver) write(a *attempt) {
	partitions := a.asked.Partitions
	a.results = make([]error, len(partitions))
	a.left.Store(int64(len(partitions)) + 1)
	m := replica.Marker{
		ProducerID: a.asked.ID, ProducerEpoch: a.asked.Epoch, CoordinatorEpoch: a.epoch,
		Commit: a.asked.Commit, TransactionVersion: a.asked.ClientVersion,
	}
	for i, tp := range partitions {
		d.markers.WriteMarker(tp, m, func(err error) {
			a.results[i] = err
			d.oneDone(a)
		})
	}
	d.oneDone(a)
}

func (d *driver) oneDone(a *attempt) {
	if a.left.Add(-1) > 0 {
		return
	}
	d.tell(a)
	a.reply(Event{Request: MarkersWritten{Asked: a.asked, Results: a.results}})
	id := a.asked.TransactionalID
	d.mu.Lock()
	next := d.running[id]
	if next == nil {
		delete(d.running, id)
	} else {
		d.running[id] = nil
	}
	d.mu.Unlock()
	if next != nil {
		d.work(func() { d.write(next) })
	}
}

// warnEvery is how many failed attempts lie between two warnings.
const warnEvery = 20

// tell counts an attempt's outcome, and says of one that fails for long what holds
// the transaction up.
func (d *driver) tell(a *attempt) {
	for i, err := range a.results {
		if settled(err) {
			d.metrics.markers.Inc()
			continue
		}
		d.metrics.markerFailures.Inc()
		if n := a.asked.Failures + 1; n%warnEvery == 0 {
			d.log.Warn("a transaction waits for a partition", "transactionalId", a.asked.TransactionalID,
				"producerId", a.asked.ID, "partition", a.asked.Partitions[i].String(), "attempts", n, "err", err)
		}
	}
}
