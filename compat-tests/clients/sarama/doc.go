// Package sarama is the row of IBM/sarama in docs/compat.md.
package sarama
