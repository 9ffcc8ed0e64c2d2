package main

import (
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A port on which something else listens is said to be that, and soon; wait says so
// however little time it has.
func TestNotKafka(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go http.Serve(l, http.NotFoundHandler()) //nolint:errcheck // ends with the listener
	for _, command := range []string{"topic list", "wait --timeout 1ms", "wait --timeout 100ms", "wait --timeout 2s"} {
		var errOut strings.Builder
		args := append(append([]string{"barnabas"}, strings.Fields(command)...), "-b", l.Addr().String())
		if code := run(args, os.Stdin, discard{}, &errOut); code != exitFailure {
			t.Errorf("%s: exit code %d", command, code)
		}
		if !strings.Contains(errOut.String(), "something listens there, but it does not speak Kafka") {
			t.Errorf("%s: said %q", command, errOut.String())
		}
	}
}

// A closed port refuses, also when the time was over while it was asked.
func TestClosedPortRefuses(t *testing.T) {
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	address := "localhost:" + strconv.Itoa(port)
	cut := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	if err := noAnswer([]string{address}, cut); !strings.Contains(err.Error(), "refused") {
		t.Errorf("after a dial that was cut short: %v", err)
	}
	for _, timeout := range []time.Duration{0, 20 * time.Millisecond, 130 * time.Millisecond} {
		var errOut strings.Builder
		run([]string{"barnabas", "wait", "-b", address, "--timeout", timeout.String()}, os.Stdin, discard{}, &errOut)
		if !strings.Contains(errOut.String(), "refused") {
			t.Errorf("wait --timeout %v: said %q", timeout, errOut.String())
		}
	}
}

// A folder that this user may not read is named with what to do; other failures are
// left as they are.
func TestImportNamesMissingRights(t *testing.T) {
	denied := &fs.PathError{Op: "open", Path: "data/meta.properties", Err: fs.ErrPermission}
	want := "import: open data/meta.properties: permission denied\n  -> give this user the right to it, or run the command as the user whose files they are"
	if got := importFailure(denied).Error(); got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	if got := importFailure(fs.ErrNotExist).Error(); got != "import: file does not exist" {
		t.Errorf("said %q", got)
	}
}
