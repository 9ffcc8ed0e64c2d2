// Package kcat is the rows of kcat, the librdkafka command-line client, in docs/compat.md: with the librdkafka that it
// comes with, and with an older one.
package kcat
