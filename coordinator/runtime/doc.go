// Package runtime runs one coordinator machine per partition of an internal
// topic: it loads the machine from the log, appends what the machine decides,
// replays it and answers once the high watermark has passed.
//
// The log is the truth. A store keeps a checkpoint of what was replayed below the
// high watermark, so that a load reads only what came later; a checkpoint that is
// lost, damaged or does not fit the log costs a full replay and nothing else.
//
// A shard is crash-only: when an append fails it fails its waiting calls, forgets
// its machine and loads again, so no decision is ever undone.
package runtime
