// Package memnet is a network in memory: listeners by address, buffered
// connections with deadlines, and links between hosts that can be cut.
//
// It has no goroutines, and waits only in ways that testing/synctest counts as
// blocked, so that brokers and real clients run in one bubble.
package memnet
