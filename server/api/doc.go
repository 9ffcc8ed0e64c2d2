// Package api serves the Kafka APIs: one table, and one file per family.
//
// The dispatcher, ApiVersions, the metric labels and docs/apis.md all come from
// Table.
package api
