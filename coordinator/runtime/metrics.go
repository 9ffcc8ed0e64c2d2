package runtime

import "github.com/barnabas-mq/barnabas/internal/telemetry"

// metrics are the instruments of one internal topic's coordinators; all of them
// do nothing without a registry.
type metrics struct {
	serving                                         *telemetry.Gauge
	loadSeconds                                     *telemetry.Histogram
	loadFailures, appendFailures, ckWrites, ckFails *telemetry.Counter
}

func newMetrics(r *telemetry.Registry, topic string) metrics {
	return metrics{
		serving:        r.Gauge("barnabas_coordinator_partitions", "Partitions of an internal topic whose coordinator is loaded here.", "topic").With(topic),
		loadSeconds:    r.Histogram("barnabas_coordinator_load_seconds", "Time in which a coordinator was loaded, the wait for its turn included.", "topic").With(topic),
		loadFailures:   r.Counter("barnabas_coordinator_load_failures_total", "Loads of a coordinator that failed and are tried again.", "topic").With(topic),
		appendFailures: r.Counter("barnabas_coordinator_append_failures_total", "Appends to an internal topic that failed or were not committed; the coordinator starts over.", "topic").With(topic),
		ckWrites:       r.Counter("barnabas_coordinator_checkpoint_writes_total", "Writes of the checkpoints that shorten loads.", "topic").With(topic),
		ckFails:        r.Counter("barnabas_coordinator_checkpoint_failures_total", "Checkpoints that are kept no longer because a write failed.", "topic").With(topic),
	}
}
