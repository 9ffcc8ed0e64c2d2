package storage

import (
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/storage/compact"
)

// metrics are the store's instruments; all of them do nothing without a
// registry.
type metrics struct {
	appends, appendBytes, slowAppends, refused *telemetry.Counter
	rolls, failures, deletedSegments           *telemetry.Counter
	flushSeconds                               *telemetry.Histogram

	cleanings, cleanerRead, cleanerWritten, cleanerRemoved *telemetry.Counter
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
		cleanings:       r.Counter("barnabas_log_cleaner_runs_total", "Rounds of compaction over a log."),
		cleanerRead:     r.Counter("barnabas_log_cleaner_read_bytes_total", "Bytes of segments that compaction has read to clean them."),
		cleanerWritten:  r.Counter("barnabas_log_cleaner_written_bytes_total", "Bytes of cleaned segments that compaction has written."),
		cleanerRemoved:  r.Counter("barnabas_log_cleaner_removed_records_total", "Records that compaction has removed."),
	}
	s.cleanerMetrics(r)
	r.GaugeFunc("barnabas_storage_unflushed_bytes", "Bytes past the recovery points of all logs.", func() float64 { return float64(s.unflushed.Load()) })
	r.GaugeFunc("barnabas_storage_mapped_bytes", "Bytes of segment files that are mapped for sending.", func() float64 { return float64(s.seg.Maps.Bytes()) })
	r.GaugeFunc("barnabas_storage_open_files", "Open segment and index files.", func() float64 { return float64(s.seg.Files.Open()) })
	r.GaugeFunc("barnabas_storage_partitions", "Opened partition logs.", func() float64 { return float64(len(s.Logs())) })
	r.GaugeFunc("barnabas_storage_offline_partitions", "Partitions that are offline.", func() float64 { return float64(s.offlineCount()) })
	r.GaugeFunc("barnabas_partitions_with_late_transactions", "Partitions whose oldest open transaction has had no record for transaction.max.timeout.ms and five minutes: `barnabas txn find-hanging` shows it.",
		func() float64 { return float64(s.lateTransactions()) })
	return m
}

// cleanerMetrics have Kafka's names, in our form.
func (s *Store) cleanerMetrics(r *telemetry.Registry) {
	c := s.cleaner
	r.GaugeFunc("barnabas_log_cleaner_max_dirty_percent", "Dirty part of the dirtiest compacted log, at the cleaner's last look.", func() float64 { return float64(c.maxDirty.Load()) })
	r.GaugeFunc("barnabas_log_cleaner_cleanable_bytes", "Bytes that are left to be compacted, at the cleaner's last look.", func() float64 { return float64(c.cleanable.Load()) })
	r.GaugeFunc("barnabas_log_cleaner_max_compaction_delay_seconds", "The most by which max.compaction.lag.ms has passed, at the cleaner's last look.", func() float64 { return float64(c.overdueMs.Load()) / 1000 })
	r.GaugeFunc("barnabas_log_cleaner_time_since_last_run_seconds", "Time since the cleaner last looked for something to do.", c.sinceLastRun)
	r.GaugeFunc("barnabas_log_cleaner_uncleanable_partitions", "Partitions that can't be compacted until the next start.", func() float64 { return float64(len(c.uncleanable())) })
	r.GaugeFunc("barnabas_log_cleaner_uncleanable_bytes", "Bytes that are left to be compacted in partitions that can't be.", c.uncleanableBytes)
	r.GaugeFunc("barnabas_log_cleaner_max_buffer_utilization_percent", "The fullest that a cleaner's memory for keys was in its last round.", func() float64 {
		return 100 * c.most(func(st compact.Stats, _ float64) float64 { return st.MapUtilization })
	})
	r.GaugeFunc("barnabas_log_cleaner_max_clean_seconds", "The longest of the cleaners' last rounds.", func() float64 {
		return c.most(func(_ compact.Stats, seconds float64) float64 { return seconds })
	})
	r.GaugeFunc("barnabas_log_cleaner_recopy_percent", "Part of what the cleaners' last rounds read that they wrote again.", c.recopyPercent)
}

// cleaned counts what a round did, whether it came to its end or not.
func (m *metrics) cleaned(st compact.Stats) {
	m.cleanerRead.Add(float64(st.BytesRead))
	m.cleanerWritten.Add(float64(st.BytesWritten))
	m.cleanerRemoved.Add(float64(st.RecordsRead - st.RecordsWritten))
}

// lateTransactions counts the partitions with a late transaction.
func (s *Store) lateTransactions() int {
	n, now := 0, nowMs(s.env.Clock)
	for _, l := range s.Logs() {
		if l.stable.late(now, s.cfg.TransactionMaxTimeoutMs) {
			n++
		}
	}
	return n
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
