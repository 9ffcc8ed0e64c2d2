package txn

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// leftOpen has the transactions that were open in machines that are gone, until it
// is known why they are: Topic may be deleted, as in Kafka, and then nobody ends
// them and readers with read_committed stop before them. The machines end on
// goroutines of their own, before or after the deletion is heard of.
type leftOpen struct {
	log *slog.Logger

	mu           sync.Mutex
	transactions []openTransaction
	deleted      bool
}

// openTransaction is a transaction and the partitions that it is open in.
type openTransaction struct {
	id         string
	partitions []string
}

// open are the machine's transactions that have not ended in all their partitions.
func (m *Machine) open() (out []openTransaction) {
	for _, id := range slices.Sorted(maps.Keys(m.transactions)) {
		t := m.transactions[id]
		if len(t.Partitions) == 0 || t.State.completed() {
			continue
		}
		o := openTransaction{id: id}
		for _, tp := range t.Partitions {
			o.partitions = append(o.partitions, tp.String())
		}
		out = append(out, o)
	}
	return out
}

func (l *leftOpen) add(transactions []openTransaction) {
	l.mu.Lock()
	l.transactions = append(l.transactions, transactions...)
	l.mu.Unlock()
	l.tell()
}

// topicDeleted says that whatever is left, or comes, was lost with Topic.
func (l *leftOpen) topicDeleted() {
	l.mu.Lock()
	l.deleted = true
	l.mu.Unlock()
	l.tell()
}

// forget says that Topic is there: another machine has the transactions now.
func (l *leftOpen) forget() {
	l.mu.Lock()
	l.transactions, l.deleted = nil, false
	l.mu.Unlock()
}

// namedMax bounds the ids and partitions that one line of the log names.
const namedMax = 10

func (l *leftOpen) tell() {
	l.mu.Lock()
	lost := l.transactions
	if !l.deleted {
		lost = nil
	} else {
		l.transactions = nil
	}
	l.mu.Unlock()
	if len(lost) == 0 {
		return
	}
	var ids, partitions []string
	for _, t := range lost {
		ids, partitions = append(ids, t.id), append(partitions, t.partitions...)
	}
	l.log.Warn(Topic+" was deleted with open transactions, which hang now: `barnabas txn producers` shows them, `barnabas txn abort --partition` ends them",
		"transactions", len(ids), "transactionalIds", ids[:min(len(ids), namedMax)], "partitions", partitions[:min(len(partitions), namedMax)])
}
