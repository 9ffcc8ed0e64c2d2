// Package connect is the row of Kafka Connect in docs/compat.md: a worker with a file source and a file sink.
package connect
