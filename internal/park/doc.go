// Package park holds requests that wait: for data, for acknowledgements, for a
// deadline.
//
// A parked request is a Waiter. Whoever changes what it waits for wakes it, and
// the wake-up runs on a Pool's bounded goroutines, never on the goroutine that
// made the change: an appender does not do its readers' work.
package park
