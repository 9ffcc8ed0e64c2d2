// Package streams is the row of Kafka Streams in docs/compat.md: a word count with exactly_once_v2.
package streams
