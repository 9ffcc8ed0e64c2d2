// Package config declares every key once, with Kafka's names, types and
// defaults. Flags, environment, server.properties, topic overrides,
// DescribeConfigs and docs/config.md come from the declarations.
package config
