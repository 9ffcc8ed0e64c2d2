// Package tidy tests the house style: import order, package purpose, and calls
// that would bypass the injected clock, disk and network.
package tidy
