// Package confluent is the row of confluent-kafka-go, which binds librdkafka, in docs/compat.md.
package confluent
