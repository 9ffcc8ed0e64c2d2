// Package group decides the classic and the new consumer group protocol (KIP-848)
// and the committed offsets: a pure machine over the records of
// __consumer_offsets.
//
// What Replay rebuilds from the log (a group's last stable generation and its
// offsets) and what lives only while a rebalance goes on are two separate
// structs, stored and classic: Handle reads both and changes only the second.
//
// What members of classic groups know is in memory only, for as long as they are
// members, and Kafka takes as much as they send. Here all of a partition have
// Config.MaxMemberBytes, which is eight times what one group may have in its record:
// who would be above that is told COORDINATOR_LOAD_IN_PROGRESS and tries again.
//
// A consumer group is in the log as a whole, and a change (change.go) is one
// event's way through it: each record that it decides is applied to a copy, so
// that what follows in the same event sees it.
package group
