// Package machine is the shape of the coordinators and of the controller: pure
// deciders with no clock, socket, disk or lock.
package machine
