// Package clock is the broker's only source of time.
//
// Everything that reads the time or waits takes a Clock; cmd/barnabas passes
// Real, tests pass Manual (or Real inside a testing/synctest bubble).
package clock
