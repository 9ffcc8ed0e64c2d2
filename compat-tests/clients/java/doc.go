// Package java is the row of Apache Kafka's own Java clients in docs/compat.md.
package java
