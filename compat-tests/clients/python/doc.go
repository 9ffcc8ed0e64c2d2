// Package python holds the rows of the Python clients in docs/compat.md: kafka-python, aiokafka and confluent-kafka.
package python
