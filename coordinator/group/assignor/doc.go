// Package assignor divides the partitions of topics among the members of a
// consumer group, as the server-side assignors of Apache Kafka do (KIP-848).
//
// Everything here is a pure function: what Kafka leaves to the order of its hash
// maps goes by member id, topic id and partition here, so that the same group is
// always divided in the same way.
package assignor
