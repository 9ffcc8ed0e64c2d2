// Package producer remembers, per partition, what each producer with an id wrote
// last: the table behind duplicate detection and sequence checks (KIP-98,
// KIP-360, KIP-854), which transactions are open, which appends were verified
// (KIP-890), and the .snapshot file.
//
// The table is a pure value: no clock, no disk, no lock. The partition's log owns
// it.
package producer
