// Package replica serves the partitions that this broker holds: it knows each
// one's role, leader epoch, in-sync replicas and high watermark, and wakes the
// requests that wait for them to move.
//
// A Manager follows the metadata: an image is the only thing that makes a
// partition lead, follow or go. A Partition appends to and reads from its
// storage log, and never holds its own mutex over the disk: the log itself
// refuses an append of an older leader epoch, so a demotion cannot race a write.
package replica
