// Package legacy compares answers to old request versions, and to message formats v0 and v1, with those of the last
// Apache Kafka that serves them.
package legacy
