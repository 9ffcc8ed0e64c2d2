package telemetry

import (
	"fmt"
	"strings"
)

// Markdown renders docs/metrics.md: one table row per registered metric.
func (r *Registry) Markdown() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n" +
		"Served in Prometheus' text format at `/metrics` on the admin address. The `go_*` and `process_*`\n" +
		"metrics of the Prometheus client are there as well, and as `kafka_client_*` whatever clients push of their own (KIP-714):\n" +
		"`org.apache.kafka.producer.node.count` of a client is `kafka_client_producer_node_count` with the labels `client_id`,\n" +
		"`client_instance_id`, `client_software_name`, `client_software_version`, `client_source_address` and those that the client adds.\n" +
		"This page is generated; a test compares it.\n\n" +
		"| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range r.Defs() {
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Kind, labels, strings.ReplaceAll(d.Help, "|", "\\|"))
	}
	return b.String()
}
