// Package kcat is the row of kcat, the librdkafka command-line client, in docs/compat.md.
package kcat
