// Package kafkagosuite runs segmentio/kafka-go's own test suite, as its module ships it, and is its row in docs/compat.md.
package kafkagosuite
