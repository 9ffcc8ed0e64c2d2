// Package kafkago is the row of segmentio/kafka-go in docs/compat.md.
package kafkago
