//go:build unix

package vfs

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Only files are opened, also through a link; to open the pipe would wait for ever.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, err := range []error{
		os.WriteFile(in("file"), []byte("x"), 0o600), os.Symlink("file", in("link")),
		unix.Mkfifo(in("pipe"), 0o600), os.Symlink("pipe", in("pipelink")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		in("file"): "", in("link"): "", in("none"): "no such file", dir: "a folder, not a file", os.DevNull: "a device, not a file",
		in("socket"): "a socket, not a file", in("pipe"): "a named pipe, not a file", in("pipelink"): "a named pipe, not a file",
	} {
		f, err := OpenRegular(OS(), name)
		if err == nil {
			f.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
