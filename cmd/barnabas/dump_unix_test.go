//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A named pipe is said to be one: to open it would wait for ever.
func TestDumpOfAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "00000000000000000000.log")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if code := run([]string{"barnabas", "dump", pipe}, os.Stdin, discard{}, &said); code != exitFailure || !strings.Contains(said.String(), "it is a named pipe, not a file") {
		t.Errorf("exit code %d, said %q", code, said.String())
	}
}
