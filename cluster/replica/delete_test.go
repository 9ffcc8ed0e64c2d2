package replica

import (
	"testing"
	"testing/synctest"
)

// A topic that is deleted while its log is being opened must not leave an open log
// behind: one that is made with its name could not be used until the next start.
func TestDeletedWhileItOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		orders := topic("orders", led(1, 0, 1))
		w.publish(nil, orders)
		w.store.gate = make(chan struct{})
		p := w.partition("orders", 0)
		go func() { _ = p.ensure() }()
		synctest.Wait()
		go w.publish(orders, nil)
		synctest.Wait()
		close(w.store.gate)
		synctest.Wait()
		if len(w.store.deleted) != 1 || len(w.store.logs) != 0 {
			t.Errorf("deleted %v, %d logs are open", w.store.deleted, len(w.store.logs))
		}
	})
}
