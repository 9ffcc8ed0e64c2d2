// Package rust holds the rows of the Rust clients in docs/compat.md: rdkafka, which binds librdkafka, and rskafka.
package rust
