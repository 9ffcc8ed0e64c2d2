// Package importer takes topics over from the data folder of a stopped Apache
// Kafka broker: their partitions byte for byte, their names, ids and settings from
// the metadata log, and what groups have committed for them.
//
// The original is only read. A topic is copied beside the target's partitions, its
// groups' offsets are written, then it appears whole with one record batch of the
// target's metadata log: who is interrupted runs the import again.
package importer
