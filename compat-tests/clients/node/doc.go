// Package node holds the rows of the Node.js clients in docs/compat.md: kafkajs, @platformatic/kafka and node-rdkafka.
package node
