// Package batch views, validates, builds and compresses record batches of
// message format v2 as pure functions over bytes.
//
// It has no clock and no lock of its own: the time a check needs is an option.
package batch
