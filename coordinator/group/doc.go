// Package group decides the classic and the new consumer group protocol (KIP-848)
// and the committed offsets: a pure machine over the records of
// __consumer_offsets.
//
// What Replay rebuilds from the log (a group's last stable generation and its
// offsets) and what lives only while a rebalance goes on are two separate
// structs, stored and classic: Handle reads both and changes only the second.
//
// A consumer group is in the log as a whole, and a change (change.go) is one
// event's way through it: each record that it decides is applied to a copy, so
// that what follows in the same event sees it.
package group
