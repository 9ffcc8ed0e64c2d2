// Package kv is the one embedded store of a data folder, over pebble and
// internal/vfs. Keys under raft/ are written synced, keys under group/ are not.
package kv
