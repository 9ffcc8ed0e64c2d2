// Package group decides the classic consumer group protocol and the committed
// offsets: a pure machine over the records of __consumer_offsets.
//
// What Replay rebuilds from the log (a group's last stable generation and its
// offsets) and what lives only while a rebalance goes on are two separate
// structs, stored and classic: Handle reads both and changes only the second.
package group
