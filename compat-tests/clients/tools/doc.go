// Package tools is the row of Kafka's own command-line tools in docs/compat.md: each is run as its users run it, and what
// it prints is looked at.
package tools
