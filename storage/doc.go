// Package storage keeps record batches on disk, in Apache Kafka's own format: a
// Store is a data directory, a Log is one partition in it.
package storage
