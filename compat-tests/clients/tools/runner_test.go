package tools

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var (
	libs    string
	libsErr error
)

func TestMain(m *testing.M) {
	version := "not installed"
	if libs, libsErr = harness.JavaLibs(); libsErr == nil {
		if jars, _ := filepath.Glob(filepath.Join(libs, "kafka-clients-*.jar")); len(jars) == 1 {
			version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "kafka-clients-"), ".jar")
		}
	}
	harness.Describe("Apache Kafka's command-line tools", version)
	harness.Main(m, nil)
}

// runner is the JVM that runs the tools, started by the first.
var runner struct {
	mu     sync.Mutex // one tool runs at a time: they share the JVM's standard streams
	ready  bool
	stdin  io.Writer
	stdout *bufio.Reader
	stderr bytes.Buffer
}

func startRunner() error {
	source := filepath.Join(harness.Root(), "clients", "tools", "ToolRunner.java")
	args := append([]string{"--add-opens", "java.base/java.lang=ALL-UNNAMED"}, harness.JavaArgs(libs, 384, source)...)
	cmd := exec.Command("java", args...)
	runner.stderr.Reset()
	cmd.Stderr = &runner.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	runner.stdin, runner.stdout, runner.ready = stdin, bufio.NewReader(stdout), true
	return cmd.Start() // the JVM ends when its input does, with this program
}

// result is how a tool ended and what it printed.
type result struct {
	code        int
	out, errOut string
}

// try runs a tool whose class is below org.apache.kafka.tools, with input.
func try(t *testing.T, input, class string, args ...string) result {
	t.Helper()
	if errors.Is(libsErr, harness.ErrNoJVM) {
		harness.Skip(t, "%v", libsErr)
	}
	if libsErr != nil {
		t.Fatal(libsErr)
	}
	runner.mu.Lock()
	defer runner.mu.Unlock()
	if !runner.ready {
		if err := startRunner(); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	command := strings.Join(append([]string{"org.apache.kafka.tools." + class}, args...), "\x00")
	encode := base64.StdEncoding.EncodeToString
	if _, err := fmt.Fprintf(runner.stdin, "%s %s\n", encode([]byte(command)), encode([]byte(input))); err != nil {
		t.Fatal(err)
	}
	line, err := runner.stdout.ReadString('\n')
	if err != nil { // some tools end the JVM themselves when they do not understand their arguments
		runner.ready = false
		t.Fatalf("%s %s: the JVM ended: %s", class, strings.Join(args, " "), runner.stderr.String())
	}
	fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	var r result
	if _, err := fmt.Sscan(fields[0], &r.code); err != nil || len(fields) != 3 {
		t.Fatalf("the JVM says %q", line)
	}
	out, errOut := decode(t, fields[1]), decode(t, fields[2])
	r.out, r.errOut = out, errOut
	t.Logf("%s %s: %d after %s", class, strings.Join(args, " "), r.code, time.Since(start).Round(time.Millisecond))
	return r
}

func decode(t *testing.T, s string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tool runs a tool against the broker; it must end well. It returns what the tool printed.
func tool(t *testing.T, class string, args ...string) string {
	t.Helper()
	r := try(t, "", class, append([]string{"--bootstrap-server", harness.Shared.Addr()}, args...)...)
	return r.must(t, class, args)
}

func (r result) must(t *testing.T, class string, args []string) string {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("%s %s ends with %d:\n%s\n%s", class, strings.Join(args, " "), r.code, r.out, r.errOut)
	}
	return r.out
}

// refused runs a tool that must end badly and say why.
func refused(t *testing.T, why, class string, args ...string) {
	t.Helper()
	r := try(t, "", class, append([]string{"--bootstrap-server", harness.Shared.Addr()}, args...)...)
	if r.code == 0 && !strings.Contains(r.errOut, "Exception") || !strings.Contains(r.out+r.errOut, why) {
		t.Errorf("%s %s ends with %d, want a refusal with %q:\n%s\n%s", class, strings.Join(args, " "), r.code, why, r.out, r.errOut)
	}
}

// want fails the test unless text has each part.
func want(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// row finds the line of a table with each of the cells and returns its fields.
func row(t *testing.T, table string, cells ...string) []string {
	t.Helper()
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		missing := false
		for _, c := range cells {
			missing = missing || !strings.Contains("\x00"+strings.Join(fields, "\x00")+"\x00", "\x00"+c+"\x00")
		}
		if !missing {
			return fields
		}
	}
	t.Errorf("no line with %q in:\n%s", cells, table)
	return nil
}
