// Package oldjava is the rows of old Java clients in docs/compat.md, of which some speak message formats and request
// versions that Apache Kafka 4 no longer serves.
package oldjava
