package txn

import "github.com/barnabas-mq/barnabas/internal/telemetry"

// tally is what a machine's transactional ids add up to.
type tally struct {
	// ids is by state.
	ids [logStates]int
	// committed and aborted only grow: the transactions that became complete since
	// the load.
	committed, aborted int64
}

// replaced accounts for a record that stands for another one now; both may be nil.
func (c *tally) replaced(old, now *Transaction) {
	if old != nil {
		c.ids[old.State]--
	}
	if now == nil {
		return
	}
	c.ids[now.State]++
	if old == nil || !old.State.prepared() {
		return
	}
	switch now.State {
	case CompleteCommit:
		c.committed++
	case CompleteAbort:
		c.aborted++
	}
}

// metrics are the transactions' instruments; all of them do nothing without a
// registry.
type metrics struct {
	ids                [logStates]*telemetry.Gauge
	committed, aborted *telemetry.Counter
	markers            *telemetry.Counter
	markerFailures     *telemetry.Counter
}

func newMetrics(r *telemetry.Registry) *metrics {
	ended := r.Counter("barnabas_transactions_ended_total", "Transactions that were ended in all their partitions, by verdict.", "verdict")
	m := &metrics{
		committed: ended.With("commit"), aborted: ended.With("abort"),
		markers:        r.Counter("barnabas_transaction_markers_total", "Markers that this broker's coordinator has written to partitions."),
		markerFailures: r.Counter("barnabas_transaction_marker_failures_total", "Markers that could not be written and are tried again."),
	}
	ids := r.Gauge("barnabas_transactional_ids", "Transactional ids that this broker coordinates, by state.", "state")
	for state := range m.ids {
		m.ids[state] = ids.With(State(state).String())
		m.ids[state].Set(0)
	}
	return m
}

// observer carries one machine's counts over to the metrics.
type observer struct {
	*Machine
	partition int32
	metrics   *metrics
	told      tally
	// left hears of the machine's open transactions when it is gone.
	left *leftOpen
}

// observe tells of what has changed; with gone, the machine's ids are no longer
// this broker's.
func (o *observer) observe(gone bool) {
	now := o.tally
	if gone {
		now.ids = [logStates]int{}
		o.left.gone(o.partition, o.open())
	}
	for state, n := range now.ids {
		if d := n - o.told.ids[state]; d != 0 {
			o.metrics.ids[state].Add(float64(d))
		}
	}
	o.metrics.committed.Add(float64(now.committed - o.told.committed))
	o.metrics.aborted.Add(float64(now.aborted - o.told.aborted))
	o.told = now
}
