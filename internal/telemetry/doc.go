// Package telemetry defines the broker's metrics and its logger.
//
// A nil *Registry, and every metric made from one, does nothing: code that counts
// needs no second path for tests.
package telemetry
