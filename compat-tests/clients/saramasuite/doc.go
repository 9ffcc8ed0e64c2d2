// Package saramasuite runs IBM/sarama's functional tests, as its module ships them, against one node where they expect
// five, and is their row in docs/compat.md.
package saramasuite
