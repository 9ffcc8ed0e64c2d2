// Package segment keeps one .log file with its .index and .timeindex, byte for
// byte as Apache Kafka does.
//
// A Segment has one writer, which the owner of the partition's lock serialises;
// readers take no lock: they see the bytes and index entries that the writer
// has published. docs/format has the byte diagrams.
package segment
