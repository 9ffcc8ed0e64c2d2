//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedPrivately says whether a folder is this user's, and nobody else can write to it.
func ownedPrivately(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm() == 0o700
}
