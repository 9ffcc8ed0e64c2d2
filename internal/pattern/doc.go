// Package pattern compiles the regular expressions that clients send, within bounds.
package pattern
