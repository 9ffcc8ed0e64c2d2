package txn

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/storage"
)

// TestLeftOpen deletes the topic of machines with open transactions, one of which
// has started over again and again: each transaction counts once, and no more of
// them are kept by name than the log of the broker shows.
func TestLeftOpen(t *testing.T) {
	var out bytes.Buffer
	l := leftOpen{log: slog.New(slog.NewTextHandler(&out, nil))}
	machineWith := func(prefix string, n int) *Machine {
		m := New(DefaultConfig())
		for i := range n {
			for state := Empty; int(state) < logStates; state++ {
				tx := &Transaction{State: state}
				if state == Ongoing {
					tx.Partitions = []storage.TopicPartition{{Topic: "t", Partition: int32(i)}}
				}
				m.Replay(0, Record{TransactionalID: fmt.Sprint(prefix, i, "-", state), Transaction: tx})
			}
		}
		return m
	}
	a, b := machineWith("a", 3), machineWith("b", 3000)
	l.gone(7, a.open())
	l.forget() // it was elected again
	for range 100 {
		l.gone(1, b.open())
	}
	l.gone(0, a.open())
	if n := len(l.machines[1].ids) + len(l.machines[1].partitions); n > 2*namedMax {
		t.Errorf("%d names are kept", n)
	}
	if out.Len() > 0 {
		t.Errorf("before it is deleted: %s", &out)
	}
	l.topicDeleted()
	if !strings.Contains(out.String(), "transactions=3003 ") || !strings.Contains(out.String(), "a0-Ongoing") || !strings.Contains(out.String(), "b0-Ongoing") {
		t.Error(out.String())
	}
	out.Reset()
	l.gone(2, a.open()) // it ends after the deletion
	if !strings.Contains(out.String(), "transactions=3 ") {
		t.Error(out.String())
	}
}
