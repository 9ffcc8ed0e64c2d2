// Package wire writes and reads the flexible encoding of Kafka's records (KIP-482),
// for those kinds of records that the codec has no types for.
package wire
