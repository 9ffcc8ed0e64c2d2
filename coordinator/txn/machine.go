package txn

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/machine"
)

// Machine decides the transactional ids of one partition of __transaction_state.
type Machine struct {
	cfg Config
	// transactions is what the log says; only Replay changes it. ongoing are those
	// in state Ongoing.
	transactions map[string]*Transaction
	ongoing      map[string]struct{}
	// soft is what only memory knows; only Handle changes it.
	soft  soft
	tally tally
}

type soft struct {
	// completing has the ids whose markers are to be written.
	completing map[string]*completion
	// waiting has the requests that wait for a transaction to be complete.
	waiting map[string][]waiter
	waiters int
	// abortArmed and expiryArmed say that the checks have their timers.
	abortArmed, expiryArmed bool
	// aborting and expiring are the ids that these checks have not looked at yet.
	aborting, expiring []string
}

// Out is what one event leads to.
type Out = machine.Out[Record, Answer]

// New is an empty machine.
func New(cfg Config) *Machine {
	return &Machine{
		cfg: cfg, transactions: map[string]*Transaction{}, ongoing: map[string]struct{}{},
		soft: soft{completing: map[string]*completion{}, waiting: map[string][]waiter{}},
	}
}

// step is one event on its way through the machine.
type step struct {
	*Machine
	now   time.Time
	level int16
	out   Out
	// decided are the transactions that have a record in out already.
	decided map[string]*Transaction
}

// Handle decides one event.
func (m *Machine) Handle(now time.Time, e Event) Out {
	s := &step{Machine: m, now: now, level: e.Level}
	switch r := e.Request.(type) {
	case InitProducer:
		s.answer(e.Call, s.initProducer(r))
	case AddPartitions:
		s.addPartitions(e.Call, r)
	case VerifyPartitions:
		s.answer(e.Call, s.verifyPartitions(r))
	case EndTxn:
		s.answer(e.Call, s.endTxn(r))
	case DescribeTxn:
		s.answer(e.Call, s.describe(r.TransactionalID))
	case ListTxns:
		s.answer(e.Call, s.list(r))
	case MarkersWritten:
		s.markersWritten(r)
	case ProducerIDFetched:
		s.producerIDFetched(r)
	case Loaded:
		s.loaded()
	case TimerFired:
		s.fired(r.Key)
	default:
		invariant.That(false, "a transaction event of type %T", e.Request)
	}
	s.armChecks()
	return s.out
}

// Replay applies one record.
func (m *Machine) Replay(_ int64, r Record) {
	id, t := r.TransactionalID, r.Transaction
	m.tally.replaced(m.transactions[id], t)
	if t == nil {
		delete(m.transactions, id)
	} else {
		m.transactions[id] = t
	}
	if t != nil && t.State == Ongoing {
		m.ongoing[id] = struct{}{}
	} else {
		delete(m.ongoing, id)
	}
}

// tx is a transactional id as the log will have it after this step, nil when there
// is none.
func (s *step) tx(id string) *Transaction {
	if t, ok := s.decided[id]; ok {
		return t
	}
	return s.transactions[id]
}

// set decides an id's next record.
func (s *step) set(id string, t *Transaction) {
	if s.decided == nil {
		s.decided = map[string]*Transaction{}
	}
	s.decided[id] = t
	version := min(s.level, valueVersionMax)
	if t != nil && (t.ClientVersion > 0 || t.NextProducerID != noProducerID) {
		version = valueVersionMax // the other has no room for it
	}
	s.out.Records = append(s.out.Records, Record{TransactionalID: id, Transaction: t, Version: version})
}

func (s *step) answer(call uint64, response any) {
	s.out.Answers = append(s.out.Answers, Answer{Call: call, Response: response})
}

// effect asks for something outside of the log.
func (s *step) effect(what any) { s.answer(0, what) }

func (s *step) nowMs() int64 { return s.now.UnixMilli() }

// sortedIDs are ids in an order that does not depend on anything else.
func sortedIDs[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// loaded goes on with the transactions whose verdict stands. What ended before was
// counted when it did.
func (s *step) loaded() {
	s.tally.committed, s.tally.aborted = 0, 0
	for _, id := range sortedIDs(s.transactions) {
		if s.transactions[id].State.prepared() {
			s.writeMarkers(id)
		}
	}
}

// ofProducer is the error for a producer that has not the id and epoch in force.
func (t *Transaction) ofProducer(p Producer) *kerr.Error {
	switch {
	case t.ProducerID != p.ID:
		return kerr.InvalidProducerIDMapping
	case t.Epoch != p.Epoch:
		return kerr.ProducerFenced
	}
	return nil
}
