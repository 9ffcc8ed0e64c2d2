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

	mu sync.Mutex
	// machines are by partition: one that starts over after a failure is gone each
	// time, with the same transactions.
	machines map[int32]openTransactions
	deleted  bool
}

// openTransactions are how many there are, and the first ones by name.
type openTransactions struct {
	n               int
	ids, partitions []string
}

// namedMax bounds the ids and partitions that are named.
const namedMax = 10

// add takes in others.
func (o *openTransactions) add(more openTransactions) {
	o.n += more.n
	o.ids = firstNames(append(o.ids, more.ids...))
	o.partitions = firstNames(append(o.partitions, more.partitions...))
}

func firstNames(names []string) []string { return slices.Clone(names[:min(len(names), namedMax)]) }

// open are the machine's transactions that have not ended in all their partitions.
func (m *Machine) open() (out openTransactions) {
	var ids []string
	for id, t := range m.transactions {
		if len(t.Partitions) > 0 && !t.State.completed() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	out = openTransactions{n: len(ids), ids: firstNames(ids)}
	for _, id := range out.ids {
		for _, tp := range m.transactions[id].Partitions {
			out.partitions = append(out.partitions, tp.String())
		}
	}
	out.partitions = firstNames(out.partitions)
	return out
}

// gone says what was open in a machine.
func (l *leftOpen) gone(partition int32, o openTransactions) {
	l.mu.Lock()
	if l.machines == nil {
		l.machines = map[int32]openTransactions{}
	}
	l.machines[partition] = o
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
	l.machines, l.deleted = nil, false
	l.mu.Unlock()
}

func (l *leftOpen) tell() {
	var lost openTransactions
	l.mu.Lock()
	if l.deleted {
		for _, partition := range slices.Sorted(maps.Keys(l.machines)) {
			lost.add(l.machines[partition])
		}
		l.machines = nil
	}
	l.mu.Unlock()
	if lost.n == 0 {
		return
	}
	l.log.Warn(Topic+" was deleted with open transactions, which hang now: `barnabas txn producers` shows them, `barnabas txn abort --partition` ends them",
		"transactions", lost.n, "transactionalIds", lost.ids, "partitions", lost.partitions)
}
