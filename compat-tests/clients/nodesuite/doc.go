// Package nodesuite runs node-rdkafka's own end-to-end tests, as its package ships them, each file in a process of its
// own, and is their row in docs/compat.md.
package nodesuite
