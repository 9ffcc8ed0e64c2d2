// Package vfs is the broker's only way to the disk.
//
// FS and File are small interfaces; OS is the machine's file system. Tests use
// Mem, which forgets unsynced writes on a crash and can fail the n-th operation.
package vfs
