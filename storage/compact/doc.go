// Package compact is log compaction as Apache Kafka's cleaner does it: of the
// records with one key only the newest stays.
//
// It is pure: no disk, clock or lock. The caller gives it the segments to read as
// a Source each, a Sink for what stays, the time, and what it asks of the log.
package compact
