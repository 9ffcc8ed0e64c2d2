package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Suite is a client's own tests, run as the client ships them.
type Suite struct {
	Name, Version string
	// Install makes the suite ready, while there is a network, and returns the command that runs it.
	Install func() (*exec.Cmd, error)
	// Parse reads what the command prints.
	Parse func(line string, report func(SuiteOutcome))
	// OutOfScope are tests that ask for what is not offered; Oracle are those that do not pass against Apache Kafka either.
	// Each has its reason. A test on neither list must pass.
	OutOfScope, Oracle map[string]string
	// Crash says why the client itself may die of a segmentation fault, against Apache Kafka as well. The suite is then
	// run again, and one that does not exit after its last test is ended; empty where it must not.
	Crash string
	// Least is how many tests the version has at the least, so that none goes missing unseen.
	Least int
	Limit time.Duration

	command *exec.Cmd
	err     error
}

// SuiteOutcome is how a test of a suite went: pass, fail or skip.
type SuiteOutcome struct{ Test, Action, Output string }

// Prepare is Install with its outcome kept for Run.
func (s *Suite) Prepare() {
	Describe(s.Name, s.Version)
	s.command, s.err = s.Install()
	if s.err != nil && os.Getenv(isolated) == "" {
		fmt.Fprintf(os.Stderr, "compat: %s %s cannot be run: %v\n", s.Name, s.Version, s.err)
	}
}

// Run runs the suite and repeats each of its tests' outcomes as one of t's.
func (s *Suite) Run(t *testing.T, env ...string) {
	if s.err != nil {
		Skip(t, "%v", s.err)
	}
	const attempts = 10 // a file of node-rdkafka's tests dies so every second time
	outcomes, stderr, err := s.once(t, env)
	for i := 1; i < attempts && s.Crash != "" && segmentationFault(err); i++ {
		t.Logf("run again after a segmentation fault: %s", s.Crash)
		outcomes, stderr, err = s.once(t, env)
	}
	failed := t.Failed()
	s.repeat(t, outcomes)
	if err != nil && t.Failed() == failed && !s.expected(outcomes) {
		t.Errorf("the suite ended with %v: %s", err, tail(stderr, 4000))
	}
}

// whole says whether all tests have ended, as far as is known.
func (s *Suite) whole(outcomes map[string]SuiteOutcome) bool {
	return len(outcomes) >= s.Least
}

// once runs the command and returns what it said of its tests and how it ended.
func (s *Suite) once(t *testing.T, env []string) (outcomes map[string]SuiteOutcome, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.command.Path, s.command.Args[1:]...)
	cmd.Dir, cmd.Env = s.command.Dir, append(append(os.Environ(), s.command.Env...), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	read, write := io.Pipe()
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = write, &printed
	outcomes = map[string]SuiteOutcome{}
	done := make(chan error)
	go func() {
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			s.Parse(lines.Text(), func(o SuiteOutcome) { outcomes[o.Test] = o })
		}
		_, _ = io.Copy(io.Discard, read)
		done <- lines.Err()
	}()
	err = cmd.Run()
	write.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil && (s.Crash == "" || !s.whole(outcomes)) {
		t.Errorf("not done after %s", s.Limit)
	}
	return outcomes, printed.String(), err
}

func segmentationFault(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGSEGV
}

func (s *Suite) repeat(t *testing.T, outcomes map[string]SuiteOutcome) {
	names := make([]string, 0, len(outcomes))
	for name := range outcomes {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if i+1 < len(names) && strings.HasPrefix(names[i+1], name+"/") {
			continue // its parts speak for it
		}
		o := outcomes[name]
		t.Run(name, func(t *testing.T) {
			switch why, known := s.known(name); {
			case o.Action == "pass":
			case known:
				t.Skip(why)
			case o.Action == "skip":
				t.Errorf("skipped itself, and is not among the tests that may: %s", tail(o.Output, 1000))
			default:
				t.Error(tail(o.Output, 4000))
			}
		})
	}
	if len(names) < s.Least {
		t.Errorf("%d tests are reported, want %d at the least", len(names), s.Least)
	}
	for _, list := range []map[string]string{s.OutOfScope, s.Oracle} {
		for name := range list {
			if _, ok := outcomes[name]; !ok && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name+"/") }) {
				t.Errorf("%s is on a list, but is no test of the suite", name)
			}
		}
	}
}

// known finds the reason for which a test, or one that it is part of, may fail.
func (s *Suite) known(name string) (string, bool) {
	for {
		if why, ok := s.OutOfScope[name]; ok {
			return why, true
		}
		if why, ok := s.Oracle[name]; ok {
			return "does not pass against Apache Kafka either: " + why, true
		}
		i := strings.LastIndex(name, "/")
		if i < 0 {
			return "", false
		}
		name = name[:i]
	}
}

// expected says whether only tests that may fail have failed.
func (s *Suite) expected(outcomes map[string]SuiteOutcome) bool {
	failed := 0
	for _, o := range outcomes {
		if o.Action == "fail" {
			failed++
		}
	}
	return failed > 0
}

// ParseGoTest reads the lines of go test -json and of test2json.
func ParseGoTest() func(line string, report func(SuiteOutcome)) {
	output := map[string]string{}
	return func(line string, report func(SuiteOutcome)) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal([]byte(line), &e) != nil || e.Test == "" {
			return
		}
		switch e.Action {
		case "output":
			const keep = 1 << 18
			output[e.Test] = tail(output[e.Test]+e.Output, keep)
		case "pass", "fail", "skip":
			report(SuiteOutcome{e.Test, e.Action, output[e.Test]})
		}
	}
}
