package storage

import "github.com/barnabas-mq/barnabas/internal/telemetry"

// metrics are the store's instruments; all of them do nothing without a
// registry.
type metrics struct {
	appends, appendBytes, slowAppends, refused *telemetry.Counter
	rolls, failures, deletedSegments           *telemetry.Counter
	flushSeconds                               *telemetry.Histogram
}

func newMetrics(r *telemetry.Registry, s *Store) metrics {
	m := metrics{
		appends:         r.Counter("barnabas_storage_appends_total", "Appends to partition logs."),
		appendBytes:     r.Counter("barnabas_storage_append_bytes_total", "Bytes appended to partition logs."),
		slowAppends:     r.Counter("barnabas_storage_slow_appends_total", "Appends that took a millisecond or more."),
		refused:         r.Counter("barnabas_storage_refused_appends_total", "Appends refused because the disk is nearly full."),
		rolls:           r.Counter("barnabas_storage_segment_rolls_total", "Segments rolled."),
		failures:        r.Counter("barnabas_storage_failures_total", "Partitions taken offline by an error of the disk."),
		deletedSegments: r.Counter("barnabas_storage_deleted_segments_total", "Segments deleted by retention."),
		flushSeconds:    r.Histogram("barnabas_storage_flush_seconds", "Time of a sync of a partition log."),
	}
	r.GaugeFunc("barnabas_storage_unflushed_bytes", "Bytes past the recovery points of all logs.", func() float64 { return float64(s.unflushed.Load()) })
	r.GaugeFunc("barnabas_storage_mapped_bytes", "Bytes of segment files that are mapped for sending.", func() float64 { return float64(s.seg.Maps.Bytes()) })
	r.GaugeFunc("barnabas_storage_open_files", "Open segment and index files.", func() float64 { return float64(s.seg.Files.Open()) })
	r.GaugeFunc("barnabas_storage_partitions", "Opened partition logs.", func() float64 { return float64(len(s.Logs())) })
	r.GaugeFunc("barnabas_storage_offline_partitions", "Partitions that are offline.", func() float64 { return float64(s.offlineCount()) })
	return m
}

func (s *Store) offlineCount() int {
	n := 0
	for _, l := range s.Logs() {
		if l.Err() != nil {
			n++
		}
	}
	return n
}
