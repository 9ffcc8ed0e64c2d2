// Package harness starts a broker as a process of its own, ours or Apache Kafka, and stops or kills it, for tests that
// know a broker only by its address.
package harness
