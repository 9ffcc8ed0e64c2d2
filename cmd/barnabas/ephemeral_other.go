//go:build !unix

package main

import "io/fs"

// ownedPrivately is true: the temporary folder is a user's own.
func ownedPrivately(fs.FileInfo) bool { return true }
